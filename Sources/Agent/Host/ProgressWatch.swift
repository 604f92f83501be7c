internal import Delivery
internal import EventLoops
internal import Model
internal import Queue
internal import Spool

/// Judges, by what the modules have published, whether the pipeline moves: what systemd's watchdog is fed by.
///
/// Only what a restart can fix counts as a stall. A full queue, a full disk, a destination that fails, a pause: the agent
/// says so elsewhere, and goes on.
struct ProgressWatch {
    /// The pipeline at one moment.
    struct State: Sendable {
        /// A destination's part.
        struct Sending: Sendable, Equatable {
            /// Batches that are being sent or settled.
            var inFlight = 0
            /// What was asked and answered; it changes with each answer.
            var counters = DeliveryCounters()
            /// When something is next tried by itself, in time of day.
            var nextAttempt: Timestamp?
        }

        /// Whether reading waits for commits.
        var isHeldBack = false
        /// Whether the queue stores what it is given.
        var isStoring = true
        /// What the reader has handed over, in bytes.
        var bytesRead: ByteCount = 0
        /// Commits of the queue: what the reader has handed over and may forget. Other transactions are no progress of its.
        var commits = 0
        /// Why commits fail again and again; nil while they do not.
        var commitFailure: String?
        /// The destinations.
        var destinations: [DestinationName: Sending] = [:]
    }

    /// How long something that should move may be stuck: longer than any wait that is within a module's rights.
    static let patience = Duration.seconds(150)

    /// How long a request may take, for each destination.
    var requestTimeouts: [DestinationName: Duration] = [:]
    /// How long reading may wait for a commit where there is room for it.
    private let readingPatience: Duration

    private var reading: (state: (bytesRead: ByteCount, commits: Int), since: BootInstant)?
    private var flights: [DestinationName: (counters: DeliveryCounters, since: BootInstant)] = [:]
    /// The next attempt and when it is due on the clock for waits, as the time of day was when it was first seen.
    private var plans: [DestinationName: (nextAttempt: Timestamp, due: BootInstant)] = [:]

    init(readingPatience: Duration = ProgressWatch.patience) { self.readingPatience = readingPatience }

    /// What is stuck although it should move: nothing when all is well. To be called now and then.
    ///
    /// - Parameters:
    ///   - state: the pipeline now.
    ///   - boot: now, on the clock for waits.
    ///   - wall: now, in time of day.
    mutating func stalls(_ state: State, at boot: BootInstant, wall: Timestamp) -> [String] {
        var stalls: [String] = []
        if let stall = readingStall(state, at: boot) { stalls.append(stall) }
        flights = flights.filter { state.destinations[$0.key] != nil }
        plans = plans.filter { state.destinations[$0.key] != nil }
        for (name, sending) in state.destinations.sorted(by: { $0.key < $1.key }) {
            if let stall = flightStall(name, sending, at: boot) { stalls.append(stall) }
            if let stall = planStall(name, sending, at: boot, wall: wall) { stalls.append(stall) }
        }
        return stalls
    }

    /// Reading waits for a commit, there is room, and nothing is committed.
    private mutating func readingStall(_ state: State, at boot: BootInstant) -> String? {
        let now = (bytesRead: state.bytesRead, commits: state.commits)
        guard state.isHeldBack, state.isStoring, let before = reading, before.state == now else {
            reading = (now, boot)
            return nil
        }
        guard boot - before.since > readingPatience else { return nil }
        guard let failure = state.commitFailure else { return "reading waits for a commit that does not come" }
        return "reading waits for a commit that fails again and again (\(failure))"
    }

    /// Batches are on their way for longer than a request may take, and no answer has come meanwhile.
    private mutating func flightStall(
        _ name: DestinationName, _ sending: State.Sending, at boot: BootInstant
    ) -> String? {
        guard sending.inFlight > 0 else {
            flights[name] = nil
            return nil
        }
        guard let before = flights[name], before.counters == sending.counters else {
            flights[name] = (sending.counters, boot)
            return nil
        }
        guard boot - before.since > ProgressWatch.patience + (requestTimeouts[name] ?? .zero) else { return nil }
        return "\(name): \(sending.inFlight) requests in flight do not end"
    }

    /// The time for the next attempt has come and gone, and nothing was attempted.
    private mutating func planStall(
        _ name: DestinationName, _ sending: State.Sending, at boot: BootInstant, wall: Timestamp
    ) -> String? {
        guard sending.inFlight == 0, let nextAttempt = sending.nextAttempt else {
            plans[name] = nil
            return nil
        }
        guard let plan = plans[name], plan.nextAttempt == nextAttempt else {
            plans[name] = (nextAttempt, boot + max(.zero, nextAttempt - wall))
            return nil
        }
        guard boot - plan.due > ProgressWatch.patience else { return nil }
        return "\(name): the next attempt is overdue"
    }
}

extension ProgressWatch.State {
    /// What the modules have published.
    init(queue: QueueSnapshot, delivery: DeliverySnapshot, spool: SpoolFigures) {
        isHeldBack = spool.isHeldBack
        isStoring = queue.isOpen
        bytesRead = spool.bytesRead
        commits = queue.commits
        commitFailure = queue.commitFailure?.code.rawValue
        for destination in delivery.destinations {
            destinations[destination.name] = Sending(
                inFlight: destination.attempts, counters: destination.counters, nextAttempt: destination.nextAttempt)
        }
    }
}
