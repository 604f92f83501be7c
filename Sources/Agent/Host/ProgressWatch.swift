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
    /// The pipeline at one moment, as its modules have published it.
    typealias State = (queue: QueueSnapshot, delivery: DeliverySnapshot, spool: SpoolFigures)

    /// How long something that should move may be stuck: longer than any wait that is within a module's rights.
    static let patience = Duration.seconds(150)

    /// How long a request may take, for each destination.
    var requestTimeouts: [DestinationName: Duration] = [:]
    /// How long reading may wait for a commit where there is room for it.
    private let readingPatience: Duration

    private var reading: (state: (bytesRead: ByteCount, commits: Int), since: BootInstant)?
    private var sendings: [DestinationName: (what: Sending, since: BootInstant)] = [:]

    private enum Sending: Equatable {
        /// Batches are being sent or settled, with these answers so far.
        case flight(DeliveryCounters)
        /// Nothing is, and something is next tried by itself at this time of day.
        case plan(Timestamp)
    }

    init(readingPatience: Duration = ProgressWatch.patience) { self.readingPatience = readingPatience }

    /// What is stuck although it should move: nothing when all is well. To be called now and then.
    mutating func stalls(_ state: State, at boot: BootInstant, wall: Timestamp) -> [String] {
        let stalls = readingStall(state, at: boot).map { [$0] } ?? []
        let destinations = state.delivery.destinations.sorted { $0.name < $1.name }
        sendings = sendings.filter { known in destinations.contains { $0.name == known.key } }
        return stalls + destinations.compactMap { sendingStall($0, at: boot, wall: wall) }
    }

    /// Reading waits for a commit, there is room, and nothing is committed.
    private mutating func readingStall(_ state: State, at boot: BootInstant) -> String? {
        // Other transactions than commits are no progress of reading.
        let now = (bytesRead: state.spool.bytesRead, commits: state.queue.commits)
        guard state.spool.isHeldBack, state.queue.isOpen, let before = reading, before.state == now else {
            reading = (now, boot)
            return nil
        }
        guard boot - before.since > readingPatience else { return nil }
        guard let failure = state.queue.commitFailure else { return "reading waits for a commit that does not end" }
        return "reading waits for a commit that fails again and again (\(failure.code.rawValue))"
    }

    /// Batches take longer than a request may and no answer comes, or the time for the next attempt passes without one.
    private mutating func sendingStall(
        _ destination: DeliverySnapshot.Destination, at boot: BootInstant, wall: Timestamp
    ) -> String? {
        let name = destination.name
        let now: Sending? =
            destination.attempts > 0 ? .flight(destination.counters) : destination.nextAttempt.map { .plan($0) }
        guard let now, let before = sendings[name], before.what == now else {
            // A plan counts from when it is due on the clock for waits, as the time of day is when it is first seen.
            let wait = if case .plan(let time) = now { max(.zero, time - wall) } else { Duration.zero }
            sendings[name] = now.map { ($0, boot + wait) }
            return nil
        }
        let isFlight = destination.attempts > 0
        let patience = ProgressWatch.patience + (isFlight ? requestTimeouts[name] ?? .zero : .zero)
        guard boot - before.since > patience else { return nil }
        return isFlight
            ? "\(name): \(destination.attempts) requests in flight do not end" : "\(name): the next attempt is overdue"
    }
}
