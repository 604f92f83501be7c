internal import EventLoops
internal import Model

/// The fate of each event of a batch whose destination answered event by event.
///
/// The answer is not trusted: positions outside the batch are ignored, and for an event named more than once
/// a rejection counts.
struct PartialAnswer: Sendable {
    /// Fate of each event, in the batch's order.
    private(set) var fates: [Settlement.Disposition]
    /// Events that the destination rejected, in the batch's order.
    let rejected: [RejectedEvent]

    /// - Parameters:
    ///   - events: number of events in the batch.
    ///   - rejected: what the answer rejects, in any order.
    ///   - retry: positions of the events that the answer asks for again.
    init(events: Int, rejected: [RejectedEvent], retry: [Int]) {
        let named = Dictionary(rejected.map { ($0.index, $0) }) { $1 }
        let again = Set(retry)
        self.rejected = (0..<events).compactMap { named[$0] }
        fates = (0..<events).map { index in
            if let event = named[index] { return .deadLetter(event.failure) }
            return again.contains(index) ? .again(group: 0) : .acknowledged
        }
    }

    /// Positions of the events that the destination has.
    var acknowledged: [Int] { fates.indices.filter { fates[$0] == .acknowledged } }

    /// Rejected events of which the answer does not say that they stay rejected. They have to be judged: what
    /// is known of the destination may overrule the answer. The others, for example an event that the format
    /// cannot express, need no judgement.
    var open: [RejectedEvent] { rejected.filter { !$0.isFinal } }

    /// Rejected events that become dead letters.
    var givenUp: [RejectedEvent] { rejected.filter { fates[$0.index] == .deadLetter($0.failure) } }

    /// What is remembered of the events that are sent again: one piece, or none.
    ///
    /// If the answer rejects events for good and asks for the others again, the others are sent without them
    /// at once. That ends, since there are fewer each time.
    func piecesAgain(
        of batch: TrackedBatch, _ options: DestinationOptions, using random: inout some RandomNumberGenerator,
        at now: BootInstant
    ) -> [TrackedBatch] {
        guard fates.contains(.again(group: 0)) else { return [] }
        let isSmaller = acknowledged.isEmpty && rejected.contains(where: \.isFinal)
        let failures = isSmaller ? batch.failures : batch.failures + 1
        let wait = isSmaller ? .zero : options.retryWait(afterFailures: failures, using: &random)
        var piece = batch.piece(0, notBefore: now + wait)
        piece.failures = min(failures, options.retry.intervals.count)
        return [piece]
    }

    /// Keeps rejected events: they are sent again in the batch of a group.
    mutating func keep(_ events: [RejectedEvent], group: Int) {
        for event in events { fates[event.index] = .again(group: group) }
    }
}

extension Blame {
    /// What an answer about single events is about.
    enum Scope: Equatable {
        /// Each event has its own fate.
        case events
        /// Nothing is accepted, so that the first rejection may be about the destination, or the batch stays
        /// whole because its app's events may not be given up.
        case rejectsBatch(Failure)
        /// Every event is requested again, as after a failure.
        case wantsAllAgain(Failure)
    }

    /// Whether an answer about single events is about the whole batch.
    ///
    /// - Parameters:
    ///   - apps: app of each event; empty if the apps are unknown.
    ///   - app: app of all events; nil if there are several or it is unknown.
    ///   - isFull: whether no more rejected batches can be kept.
    func scope(
        of answer: PartialAnswer, _ batch: TrackedBatch, apps: [String], app: String?, isFull: Bool
    ) -> Scope {
        guard answer.acknowledged.isEmpty else { return .events }
        let open = answer.open
        guard let first = open.first else {
            guard answer.rejected.isEmpty else { return .events }
            let message = "the destination requests every event of the batch again"
            return .wantsAllAgain(Failure(kind: .status, message: message))
        }
        let events = batch.header.events
        let isOfOneApp = open.count == events && Set(apps).count <= 1
        let mayEnd = isFull || mayGiveUp(events, of: events, app: app)
        let isAboutBatch = events == 1 || !isProven(batch) || isOfOneApp && !mayEnd
        return isAboutBatch ? .rejectsBatch(first.failure) : .events
    }

    /// The verdict on events of one app that an answer rejects by name.
    struct NamedVerdict: Sendable {
        /// App of the events; nil if it is unknown.
        let app: String?
        /// In the batch's order, at least one.
        let events: [RejectedEvent]
        /// Whether the events become dead letters. Otherwise too many of the app's events were rejected, and
        /// these are kept.
        let isGivenUp: Bool
    }

    /// Judges the events that an answer rejects by name while it accepts others, app by app. Those that are
    /// given up count at once: they leave less room for the next app's.
    ///
    /// - Parameters:
    ///   - size: number of events in the answered batch.
    ///   - isFull: whether no more rejected batches can be kept.
    ///   - app: the app of the event at a position.
    mutating func judgeNamed(
        _ rejected: [RejectedEvent], of size: Int, isFull: Bool, app: (Int) -> String?
    ) -> [NamedVerdict] {
        let byApp = Dictionary(grouping: rejected) { app($0.index) ?? "" }
        return byApp.sorted { $0.key < $1.key }.map { name, events in
            let app = name.isEmpty ? nil : name
            let isGivenUp = isFull || mayGiveUp(events.count, of: size, app: app)
            if isGivenUp {
                noteGivenUp(events.count, of: size, app: app)
            }
            return NamedVerdict(app: app, events: events, isGivenUp: isGivenUp)
        }
    }
}

extension Settlement {
    /// A settlement that gives each event its fate; neighbours with the same fate become one part.
    init(_ batch: TrackedBatch, _ fates: [Disposition]) {
        var parts: [Part] = []
        for (index, fate) in fates.enumerated() {
            if let last = parts.last, last.disposition == fate {
                parts[parts.count - 1].events = last.events.lowerBound..<index + 1
            } else {
                parts.append(Part(index..<index + 1, fate))
            }
        }
        self.init(batch: batch.header.id, parts: parts)
    }
}
