internal import EventLoops
internal import Model

/// A doubt: events are rejected, and nothing shows yet whether they or the destination are at fault.
///
/// What is likely to pass is tried then, one request at a time: events that were not offered yet, alternating
/// with untried pieces of rejected batches. This type decides of which kind the next new event is: its lane,
/// another app, or the newest that waits. Without these turns, thousands of rejected events of one app would
/// precede the first good one of another.
struct Doubt: Sendable, Equatable {
    /// How long attempts follow each other at once before the destination counts as held.
    static let patience = Duration.seconds(30)
    /// Longest wait between two attempts from then on.
    static let step = Duration.seconds(10)

    /// Batches attempted before this time are untried in this doubt.
    let began: BootInstant
    /// Whether the log says that the destination is held.
    private(set) var isAnnounced = false
    /// Whether the last new event was requested of an app without rejected events.
    private(set) var looksElsewhere = false
    /// Whether events of other apps may wait that were not searched for yet.
    private var mayFindOthers = true
    /// Lane of the last search for another app's event; nil once all lanes had their turn.
    private var laneElsewhere: Priority?
    /// Lane of the last new event of any app.
    private(set) var lane: Priority?
    /// Whether the last new probe was the newest event of its lane.
    private var wasNewest = true
    /// Whether events arrived since the newest one was tried.
    private var hasNewer = true

    /// Whether the last attempt was one with a set-aside batch.
    private var wasRefused = false

    /// Whether a set-aside batch is next, if there is one: every other time once the destination counts as
    /// held.
    var prefersRefused: Bool { isAnnounced && !wasRefused }

    /// A doubt that begins now; it is announced from the start if the destination was held before.
    init(began: BootInstant, isAnnounced: Bool) { (self.began, self.isAnnounced) = (began, isAnnounced) }

    /// Whether the doubt has lasted long enough for the destination to count as held.
    ///
    /// With a promised order, rejected events are passed only one after the other, so the doubt also lasts
    /// until memory is full of them.
    func hasWaited(_ order: DestinationOptions.Order, hasRoom: Bool, at now: BootInstant) -> Bool {
        began + Doubt.patience <= now && (order != .promised || !hasRoom)
    }

    /// The log has said that the destination is held.
    mutating func announce() { isAnnounced = true }

    /// An attempt begins.
    mutating func noteAttempt(isRefused: Bool) { wasRefused = isRefused }

    /// Longest wait before the next attempt. Set-aside batches have turns of their own between the others,
    /// which they must not delay.
    func step(hasRefused: Bool) -> Duration { hasRefused ? Doubt.step / 2 : Doubt.step }

    /// Which new events are tried next.
    struct NewProbe: Sendable, Equatable {
        let lane: Priority
        /// Apps whose events the queue passes over.
        var notOf: Set<String> = []
        /// Whether the newest event is wanted instead of the next in line.
        var isNewest = false
    }

    /// The next new probe: of an app without rejected events, the newest event, or the next in line.
    ///
    /// - Parameters:
    ///   - wanted: the lane unless another app is searched for.
    ///   - lanes: lanes with new events, critical before normal.
    ///   - refused: apps of which rejected events are kept.
    mutating func newProbe(
        from wanted: Priority, _ order: DestinationOptions.Order, lanes: [Priority], refused: Set<String>,
        at now: BootInstant
    ) -> NewProbe {
        if order == .free, isAnnounced || !refused.isEmpty, let lane = laneOfOtherApp(lanes) {
            return NewProbe(lane: lane, notOf: refused)
        }
        lane = wanted
        return NewProbe(lane: wanted, isNewest: looksAtNewest(order, at: now))
    }

    /// New events arrived.
    mutating func noteNew() { (hasNewer, mayFindOthers) = (true, true) }

    /// The lane whose next new event must be of another app; nil if any app will do.
    ///
    /// Every other new event is of another app, and the lanes alternate. Searching what waits costs the queue
    /// milliseconds; so until the destination counts as held, it is done once for the new events.
    ///
    /// - Parameter lanes: lanes with new events, critical before normal.
    mutating func laneOfOtherApp(_ lanes: [Priority]) -> Priority? {
        guard isAnnounced || mayFindOthers else { return nil }
        looksElsewhere.toggle()
        guard looksElsewhere, let next = nextLane(lanes) ?? lanes.first else { return nil }
        laneElsewhere = next
        return next
    }

    /// The lane had no event of another app: the next lane is searched, and after the last one the next
    /// events in line are tried.
    mutating func foundNoOther(_ lanes: [Priority]) {
        looksElsewhere = nextLane(lanes) == nil
        guard looksElsewhere else { return }
        laneElsewhere = nil
        mayFindOthers = false
    }

    /// The lane with new events after the one searched last.
    private func nextLane(_ lanes: [Priority]) -> Priority? {
        lanes.first { lane in laneElsewhere.map { lane < $0 } ?? true }
    }

    /// Whether a new probe is the newest waiting event, which is so every other time.
    ///
    /// A destination may refuse everything older than it likes and accept only the newest events. Until the
    /// destination counts as held, this is done once for the new events, because each of them becomes a batch
    /// of its own. If the order is kept, the next event in line goes first for 10 s; if it is promised,
    /// always.
    mutating func looksAtNewest(_ order: DestinationOptions.Order, at now: BootInstant) -> Bool {
        switch order {
        case .promised: return false
        case .kept where now < began + Doubt.step: return false
        case .free, .kept: break
        }
        wasNewest = !wasNewest && (hasNewer || isAnnounced)
        if wasNewest {
            hasNewer = false
        }
        return wasNewest
    }
}
