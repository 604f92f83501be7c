internal import Delivery
internal import EventLoops
internal import Model
internal import Queue
internal import Spool

/// Judges, by what the modules have published, whether the pipeline moves. systemd's watchdog is fed only if
/// it does.
///
/// Only what a restart can fix counts as a stall. A full queue, a full disk, a failing destination and a
/// pause do not: otherwise one dead destination would restart all agents of a fleet every few minutes.
/// `status` and the metrics report these conditions.
///
/// Each value is compared with the value of the call before, so the judgement is pure and is tested with a
/// clock that is moved by hand.
struct ProgressWatch {
    /// The pipeline at one moment, as its modules have published it.
    typealias State = (queue: QueueSnapshot, delivery: DeliverySnapshot, spool: SpoolFigures)

    /// How long something that should move may be stuck. It is longer than any wait that a module is
    /// permitted.
    static let patience = Duration.seconds(150)

    /// How long a request may take, for each destination.
    var requestTimeouts: [DestinationName: Duration] = [:]
    /// How long reading may wait for a commit although the queue has room. The watchdog uses `patience`;
    /// `/readyz` uses less, because a false alarm there restarts nothing.
    private let readingPatience: Duration

    /// Counters of reading when they last advanced, and the time at which that was noticed.
    private var reading: (state: (bytesRead: ByteCount, commits: Int), since: BootInstant)?
    /// State of each destination at the last check, and since when it has not changed.
    private var sendings: [DestinationName: (what: Sending, since: BootInstant)] = [:]

    /// What a destination is doing. Two equal values in a row mean that nothing has happened in between.
    private enum Sending: Equatable {
        /// Batches are being sent or settled; any answer changes the counters.
        case flight(DeliveryCounters)
        /// No request is in flight; the next attempt is due at this time of day.
        case plan(Timestamp)
    }

    init(readingPatience: Duration = ProgressWatch.patience) { self.readingPatience = readingPatience }

    /// What is stuck although it should move; empty if all is well. The caller decides how often to look: a
    /// stall is found at the first call after the patience is over.
    mutating func stalls(_ state: State, at boot: BootInstant, wall: Timestamp) -> [String] {
        let stalls = readingStall(state, at: boot).map { [$0] } ?? []
        let destinations = state.delivery.destinations.sorted { $0.name < $1.name }
        sendings = sendings.filter { known in destinations.contains { $0.name == known.key } }
        return stalls + destinations.compactMap { sendingStall($0, at: boot, wall: wall) }
    }

    /// A stall of reading: it waits for a commit, the queue has room, and nothing is committed.
    private mutating func readingStall(_ state: State, at boot: BootInstant) -> String? {
        // Only commits count: other transactions of the queue, such as acknowledgements, are not progress of
        // reading.
        let now = (bytesRead: state.spool.bytesRead, commits: state.queue.health.commits)
        guard state.spool.isHeldBack, state.queue.isOpen, let before = reading, before.state == now else {
            reading = (now, boot)
            return nil
        }
        guard boot - before.since > readingPatience else { return nil }
        guard let failure = state.queue.health.commitFailure else {
            return "reading waits for a commit that does not end"
        }
        return "reading waits for a commit that fails again and again (\(failure.code.rawValue))"
    }

    /// A stall of sending: requests get no answer for longer than their timeout, or the planned time of the
    /// next attempt has passed.
    private mutating func sendingStall(
        _ destination: DeliverySnapshot.Destination, at boot: BootInstant, wall: Timestamp
    ) -> String? {
        let name = destination.name
        let now: Sending? =
            destination.attempts > 0
            ? .flight(destination.counters) : destination.nextAttempt.map { .plan($0) }
        guard let now, let before = sendings[name], before.what == now else {
            // Convert the plan to the boot clock when it is first seen: the time of day may be set later.
            let wait = if case .plan(let time) = now { max(.zero, time - wall) } else { Duration.zero }
            sendings[name] = now.map { ($0, boot + wait) }
            return nil
        }
        let isFlight = destination.attempts > 0
        // Delivery lengthens timeouts by this factor, so a request may rightly take that much longer.
        let request = (requestTimeouts[name] ?? .zero) * destination.timeFactor
        let patience = ProgressWatch.patience + (isFlight ? request : .zero)
        guard boot - before.since > patience else { return nil }
        return isFlight
            ? "\(name): \(destination.attempts) requests in flight do not end"
            : "\(name): the next attempt is overdue"
    }
}
