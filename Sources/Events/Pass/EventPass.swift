//  Events: one pass over a line: is it an event, whose, how important, of when; limits applied, members added.
//
//  It promises that what it accepts is one JSON object on one line, with an id and the time of its observation;
//  that all it does not have to change travels byte for byte; and that each line is accounted for by one verdict.
//  It knows nothing of files, of the queue and of where events go.

public import EventLoops
internal import Glibc
internal import Model

/// The one pass over each line.
///
/// Use: `begin` for each block of a source; `read` line after line; after each accepted one `write` into the buffer of its
/// priority, before the next `read` and while the block is still there. One pass belongs to one thread.
///
/// What it adds to an event, in this order, where the event does not have it: `timestamp` (if another member says the time), `app`,
/// `session_id`, `country`, `device`, `observed_at`, `id`; to a record `name`, `timestamp`, `app`, `country`, `host_name`,
/// `observed_at`, `id`. A member that is `null` counts as not there.
public struct EventPass: ~Copyable {
    /// What happened so far.
    public internal(set) var counts = EventCounts()
    /// What is wrong with the line of the last verdict, if that was `quarantined` or `refused`.
    public internal(set) var problem: Problem?

    /// Which texts go to the quarantine instead, as of the next `read`.
    public var withheld = WithheldTexts.none
    /// Whether patterns look for parts of texts, as of the next `begin`: no limit cuts these before.
    public var isSearched = false
    /// Which members tags hide, as of the next `begin`: no name, time or severity is made of them.
    public var hiding: HiddenPaths?

    /// The name of the event of the last verdict, if that was `accepted`; valid until the next `read`.
    public internal(set) var name = UnsafeBufferPointer<UInt8>(start: nil, count: 0)

    var scanner: JSONScanner
    var options: EventOptions
    /// How many apps are remembered; in the drop box each user may be one.
    static let mostApps = 1024
    var states: [String: AppState] = [:]
    /// Counts what sources were begun: the app with the lowest count was not read for longest.
    private var uses = 0

    // The source whose lines are read, and what of it each line needs.
    var state: AppState?
    var limits = EventLimits()
    var names: UnsafeMutablePointer<DistinctNames>?
    var defaultPriority = Priority.normal
    var mayBeCritical = true
    var block = BlockSource()
    var hasRules = false
    var now = Timestamp(nanoseconds: 0)
    var oldest = Timestamp(nanoseconds: .min)
    var newest = Timestamp(nanoseconds: .max)

    var kind = LineKind.event
    var format: LineFormat?
    /// The pod that a CRI file belongs to, as the member that each record gets; empty for none.
    var pod: [UInt8] = []
    /// When the container's runtime got the line.
    var outerTime: Timestamp?
    /// The streams whose last line was a piece, or ended before a value, each behind its file's producer.
    var unfinished: Set<[UInt8]> = []
    var producer: [UInt8] = []
    var isShared = false

    // The line that was read last.
    var base: UnsafePointer<UInt8>
    var wanted: Additions = []
    var edits: [Edit] = []
    var scratch: [UInt8] = []
    /// The name where it is not in the block as it is.
    var nameText = LineBuffer(capacity: 1024)
    var cutNotedAt: Timestamp?
    /// What happens to the line when a check has failed.
    var failure = Verdict.Kind.quarantined
    /// The members that go before the others that are added, without the comma before the first.
    var front: [UInt8] = []
    /// Whether it is a record.
    public internal(set) var isRecord = false
    /// What ours is called where the record has its own `id`, which is data; nil: `id`.
    var otherIDName: Tail.OtherIDName?
    /// The line as it is read where its bytes could not be.
    var repaired = LineBuffer(capacity: 1024)
    var address: Range<Int>?
    var hasAddress = false
    /// Whether the properties have a member of the address's name.
    var hasAddressProperty = false

    var times = TimestampReader()
    var timeWriter = TimestampWriter()

    // What is added.
    var ids = EventIDs()
    var tail = Tail()
    var recordTail = Tail()
    var added = AddedMembers()

    // Sessions.
    var sessions = Sessions()
    var processText = LineBuffer(capacity: 128)
    var processPlace = -1

    // Countries by address.
    var lookup: ((String) -> CountryCode?)?

    private var watched: WatchedNames

    package init(options: EventOptions = EventOptions()) {
        self.options = options
        watched = WatchedNames([])
        scanner = JSONScanner()
        base = UnsafePointer(bitPattern: 8).unsafelyUnwrapped
        configure(options)
    }

    // MARK: Sources

    /// Takes up new settings; they hold from the next `begin` on.
    public mutating func configure(_ options: EventOptions) {
        self.options = options
        let apps = [options.defaults] + options.apps.sorted { $0.key < $1.key }.map(\.value)
        watched = WatchedNames(apps.flatMap(\.paths))
        scanner.watch(watched)
        scanner.addressName = Array(options.addressMember.utf8)
        hasAddress = !options.addressMember.isEmpty
        address = nil
        hasAddressProperty = false
        for state in states.values { state.configure(options, watched) }
    }

    /// A source of lines.
    ///
    /// - Parameters:
    ///   - app: whose they are.
    ///   - isShared: whether they come through the drop box that everybody may write to.
    ///   - isBackfill: whether their age counts from now: nothing of it expires.
    ///   - random: where the seed comes from that keeps others from foreseeing collisions of names.
    public mutating func source(
        app: String, isShared: Bool = false, isBackfill: Bool = false, using random: inout some RandomNumberGenerator
    ) -> EventSource {
        EventSource(state: state(of: app, using: &random), isShared: isShared, isBackfill: isBackfill)
    }

    private mutating func state(of app: String, using random: inout some RandomNumberGenerator) -> AppState {
        if let known = states[app] { return known }
        let made = AppState(app, seed: random.next(), options, watched)
        states[app] = made
        return made
    }

    // MARK: Memory

    /// What has changed since the last call and must be durable with the events read: for `Commit.memory`.
    ///
    /// - Parameter hides: what of an app is stored nowhere, because tags hide it: its sessions, the names of its events.
    public mutating func takeMemory(
        hides: (String) -> (sessions: Bool, names: Bool) = { _ in (false, false) }
    ) -> [String: [UInt8]?] {
        var memory: [String: [UInt8]?] = [:]
        for state in states.values {
            let stores = !hides(state.name).names
            guard state.names.pointee.isChanged && stores || state.storesNames && !stores else { continue }
            (state.names.pointee.isChanged, state.storesNames) = (false, stores)
            memory.updateValue(stores ? state.names.pointee.saved() : nil, forKey: "names/\(state.name)")
        }
        for state in forgetIdleApps() { memory.updateValue(nil, forKey: "names/\(state.name)") }
        memory.merge(sessions.changes(isHidden: { hides($0).sessions })) { _, new in new }
        return memory
    }

    /// Beyond the most, those that were not read for longest; their next event makes them anew, without the names of their day.
    private mutating func forgetIdleApps() -> ArraySlice<AppState> {
        guard states.count > EventPass.mostApps else { return [] }
        let idle = states.values.sorted { $0.lastUse < $1.lastUse }.dropLast(EventPass.mostApps * 3 / 4)
        for state in idle { states[state.name] = nil }
        return idle
    }

    /// How many different names the events of each app had, in the UTC day in which the app was last read.
    public var nameCounts: [String: NameCount] {
        states.mapValues { NameCount(day: $0.names.pointee.day, names: $0.names.pointee.count) }
    }

    /// Takes up what an earlier process remembered; entries of others are left alone.
    public mutating func restore(_ memory: [String: [UInt8]], using random: inout some RandomNumberGenerator) {
        for (key, bytes) in memory {
            let parts = key.split(separator: "/", maxSplits: 2, omittingEmptySubsequences: false)
            switch parts.first {
            case "names":
                state(of: String(key.dropFirst(6)), using: &random).names.pointee.restore(bytes)
            case "session" where parts.count > 1:
                sessions.restore(key, app: String(parts[1]), bytes)
            default: break
            }
        }
    }

    // MARK: Reading

    /// Prepares for lines of a source. Costs about as much as an event: once a block or file.
    ///
    /// - Parameters:
    ///   - producer: names the append file that the lines come from; nil for drop files.
    ///   - path: the file, for what its name says of a container.
    ///   - wasClosed: whether a writer has closed that file since the lines before: only then may its producer be gone.
    ///   - now: the time of day; events read until the next `begin` were observed then.
    ///   - isSynchronised: whether the clock can be trusted; while not, nothing expires and nothing is ahead.
    public mutating func begin(
        _ source: EventSource, producer: [UInt8]? = nil, path: String = "", wasClosed: Bool = true, at now: Timestamp,
        isSynchronised: Bool, using random: inout some RandomNumberGenerator
    ) {
        self.now = now
        ids.begin(at: now, using: &random)
        let state = source.state
        self.state = state
        uses += 1
        state.lastUse = uses
        if state.hiding != hiding?.number { state.configure(options, watched, hiding) }
        let settings = state.settings
        names = state.names
        defaultPriority = settings.priority
        limits = isSearched ? settings.limits.withWholeTexts : settings.limits
        mayBeCritical = settings.mayBeCritical ?? !source.isShared
        kind = settings.kind
        format = settings.format
        outerTime = nil
        self.producer = producer ?? []
        pod = format == .cri ? WrappedLine.pod(ofFile: path) : []
        // A journal has everybody's entries, and what a container prints is not its pod's name.
        isShared = source.isShared || settings.isJournal || format == .cri || format == .docker
        hasRules = !state.rules.isEmpty
        newest = isSynchronised ? now + settings.maxAhead : Timestamp(nanoseconds: .max)
        if isSynchronised, !source.isBackfill, let maxAge = options.maxAge {
            oldest = now - maxAge
        } else {
            oldest = Timestamp(nanoseconds: .min)
        }
        state.names.pointee.turn(to: now.nanoseconds.floored(by: TimestampReader.day).quotient)
        scanner.keyThreshold = limits.propertyKeyLength.value > 0 ? limits.propertyKeyLength.value : .max
        scanner.valueThreshold = limits.propertyValueLength.value > 0 ? limits.propertyValueLength.value : .max
        beginSessions(state, producer, wasClosed)
        beginAdditions(state)
    }

    /// Reads the line that begins at `start`, in a block whose last byte, before `end`, is a line feed.
    public mutating func read(_ base: UnsafePointer<UInt8>, from start: Int, to end: Int) -> Verdict {
        self.base = base
        if let format { return readWrapped(format, from: start, to: end) }
        let (next, isObject) = scanner.scanLine(base, from: start, to: end)
        guard isObject else { return repair(start, next, end) }
        if !unfinished.isEmpty, unfinished.remove(producer) != nil, withheld == .members { return withhold(next) }
        return judge(next)
    }

    /// How long the object is that was read last, in bytes. Mutating, or each use would copy the whole pass: see `JSONScanner`.
    public var length: Int { mutating get { scanner.close - scanner.open + 1 } }

    /// Appends the event that was read last, as one line.
    ///
    /// It is at most `maxAddition` bytes longer than what was read.
    public mutating func write(into buffer: inout LineBuffer) {
        let length = scanner.close - scanner.open
        buffer.reserve(length + scratch.count + front.count + tail.count + recordTail.count + Tail.idLength + 64)
        var out = buffer.cursor
        if edits.isEmpty, !scanner.hasLineBreaks {
            memcpy(out, base + scanner.open, length)
            out += length
        } else {
            out = copyEdited(to: out)
        }
        if !front.isEmpty { out = writeFront(out) }
        if isRecord {
            out = recordTail.write(wanted, to: out)
        } else if wanted == .usual {
            memcpy(out, tail.start, tail.count)
            out += tail.count
        } else {
            out = tail.write(wanted, to: out)
        }
        buffer.wrote(to: writeEnd(out))
    }

    /// Writes the id, if one is wanted, and the end of the line.
    @inline(__always)
    private mutating func writeEnd(_ start: UnsafeMutablePointer<UInt8>) -> UnsafeMutablePointer<UInt8> {
        var out = start
        if wanted.contains(.id) {
            out = if let otherIDName { Tail.write(otherIDName, to: out) } else { Tail.writeIDName(to: out) }
            ids.write(to: out)
            out += EventIDs.length
            out[0] = .quote
            out += 1
        }
        out[0] = .closeBrace
        out[1] = .lineFeed
        return out + 2
    }

    /// Appends the event that says that a session has begun: to the normal lane, before the event whose verdict said
    /// `startsSession` (or after `startSession` has returned true).
    ///
    /// It is an event more: read and accepted, by the ledger's words. Until it is written, verdicts go on asking for it.
    public mutating func writeSessionStart(into buffer: inout LineBuffer) {
        let text =
            "{\"type\":\"start_session\",\"name\":\"start_session\",\"timestamp\":\""
            + "\(Timestamp(nanoseconds: sessions.slot(block.startPlace).start))\""
        var line = Array(text.utf8)
        line.withUnsafeMutableBytes { buffer.append(UnsafeRawBufferPointer($0)) }
        buffer.reserve(tail.count + Tail.idLength + 16)
        var out = buffer.cursor
        memcpy(out, tail.start, tail.count)
        out += tail.count
        let ofEvent = (wanted, otherIDName)
        (wanted, otherIDName) = (.usual, nil)
        out = writeEnd(out)
        (wanted, otherIDName) = ofEvent
        buffer.wrote(to: out)
        announceSession()
    }

    /// How many bytes the object of an event or record of the present source can grow by.
    public var maxAddition: Int {
        // The session's id may be replaced by a longer one, and the offset of the time zone by one of more digits.
        max(tail.count + Sessions.maxIDLength, recordTail.count) + Tail.idLength + 64
            + max(state?.defaultNameMember.count ?? 0, EventPass.mostNameBytes) + EventPass.frontBytes
            + pod.count
    }
}
