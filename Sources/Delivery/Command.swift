internal import EventLoops
internal import Model

/// A dispatch or drain whose client waits for the result.
///
/// A command is open at each destination until its push there has ended. It ends exactly once: when it is
/// open nowhere, with a reason for each destination that was not sent everything.
struct Command: Sendable {
    /// How long requests in flight may take after the deadline. Shorter than the caller of a drain waits for
    /// its answer; otherwise the caller would give up first and see no result.
    private static let grace = Duration.seconds(8)

    /// Destinations that the command was given for.
    let destinations: [DestinationName]
    /// End of a drain's time; nil for a dispatch, which ends once its batches were tried.
    private let deadline: BootInstant?
    /// Destinations for which the command is not over yet.
    private(set) var open: Set<DestinationName>
    /// Whether the deadline has passed: no request begins, those in flight have `grace` to end.
    private(set) var isTimedOut = false
    /// Why the command ended at a destination without success.
    private var reasons: [DestinationName: DestinationStateName] = [:]
    /// Destinations that got at least one request of the command; without one, "no data" is reported.
    private var requested: Set<DestinationName> = []

    /// - Parameters:
    ///   - timeout: how long a drain begins requests; zero begins none. Nil for a dispatch.
    init(for destinations: [DestinationName], timeout: Duration?, at now: BootInstant) {
        self.destinations = destinations
        deadline = timeout.map { now + $0 }
        isTimedOut = timeout.map { $0 <= .zero } ?? false
        open = isTimedOut ? [] : Set(destinations)
    }

    /// Whether the command waits for requests to a destination.
    func isOpen(at name: DestinationName) -> Bool { open.contains(name) }

    /// Whether the command is over at every destination.
    var isOver: Bool { open.isEmpty }

    /// When the command needs attention: at the deadline, then at the end of the grace; nil for a dispatch.
    var due: BootInstant? { deadline.map { isTimedOut ? $0 + Command.grace : $0 } }

    /// The deadline has passed, or the grace after it.
    ///
    /// - Returns: destinations at which no more requests may begin for the command.
    mutating func expire(at now: BootInstant) -> Set<DestinationName> {
        guard let due, due <= now else { return [] }
        guard !isTimedOut else {
            // The client is about to give up; what is still in flight is reported as waiting.
            open = []
            return []
        }
        isTimedOut = true
        return open
    }

    /// A request of the command to a destination has ended.
    mutating func noteRequest(to name: DestinationName) { requested.insert(name) }

    /// The push of a destination has ended.
    ///
    /// - Parameter reason: why; nil if everything was sent.
    /// - Returns: the report for the client, if no request tells how the push went.
    mutating func close(_ name: DestinationName, _ reason: DestinationStateName?) -> DispatchReport? {
        guard open.remove(name) != nil, !isTimedOut else { return nil }
        reasons[name] = reason
        return reason != nil || !requested.contains(name) ? .noData(name, reason) : nil
    }

    /// A drain found new events at a destination that was over already.
    mutating func reopen(_ name: DestinationName) { open.insert(name) }

    /// The result of a command that is over; nil for a drain that has to continue.
    ///
    /// - Parameters:
    ///   - waiting: events that are left at the command's destinations.
    ///   - isEnabled: whether collection is enabled. After `disable` the queue is emptied, so that nothing
    ///     waits, but the events were not delivered.
    func result(waiting: Int, isEnabled: Bool) -> CommandResult? {
        guard deadline != nil else { return reasons.isEmpty ? .done : .stuck(reasons) }
        if !isEnabled, !destinations.isEmpty { return stuck(.disabled) }
        if waiting == 0 { return .done }
        if isTimedOut { return .timedOut(waiting: waiting) }
        return reasons.isEmpty ? nil : .stuck(reasons)
    }

    /// The result if the command cannot continue at any destination, for the same reason.
    func stuck(_ reason: DestinationStateName) -> CommandResult {
        .stuck(Dictionary(uniqueKeysWithValues: destinations.map { ($0, reason) }))
    }
}
