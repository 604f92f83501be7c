internal import EventLoops
internal import Model

/// What the machine wants done. The driver does it and brings the result back as an input.
enum DeliveryEffect: Sendable, Equatable {
    /// Ask the queue for the next batch of a lane.
    case leaseNext(AttemptID, LeaseRequest)
    /// Ask the queue for a batch that was given back.
    case leaseAgain(AttemptID, BatchID)
    case send(AttemptID)
    /// Give up an attempt that is being sent.
    case cut(AttemptID)
    /// Give a lease back.
    case release(BatchID)
    /// Tell the queue how a batch ended.
    case settle(AttemptID, Settlement)
    /// Count the batch's events before that time: they are late for the deadline's view.
    case countLate(AttemptID, Deadline, before: Timestamp, atMost: Int)
    /// Make a switch durable; nil removes it.
    case persist(String, String?)
    /// Tell a command about a request.
    case report(CommandID, DispatchReport)
    case finish(CommandID, CommandResult)
    /// All is given back: the driver may go.
    case stopped
    /// Something that an operator wants to read.
    case note(DestinationName?, DeliveryNote)

    var asksQueue: Bool {
        switch self {
        case .leaseNext, .leaseAgain, .release: true
        case .settle(_, let settlement): !settlement.isAcknowledgement
        default: false
        }
    }

    /// Whether it belongs to every batch that comes and goes.
    var isRoutine: Bool {
        switch self {
        case .leaseNext, .leaseAgain, .send, .settle: true
        default: false
        }
    }
}

/// A change of state, for the log.
enum DeliveryNote: Sendable, Equatable {
    case failed(BatchID, Failure, attempt: Int, retryIn: Duration)
    case held(Failure, probeIn: Duration)
    case holdLifted
    case breakerOpened(Failure, probeIn: Duration?)
    case breakerClosed
    /// After failed attempts one went through, before the breaker opened.
    case recovered(failures: Int)
    case retryAfter(Duration, Failure)
    case offline
    case online
    case split(BatchID, events: Int, into: Int, Failure)
    case deadLettered(BatchID, events: Int, Failure)
    case rejectedUnnamed(BatchID, events: Int, Failure)
    case setAside(BatchID, events: Int, Failure, app: String?)
    case storeFailed(again: Duration)
    case paused(token: String)
    /// A pause from before the restart still holds sending back.
    case pauseKept(token: String)
    case resumed(token: String)
    case network(on: Bool)
    case interval(DispatchInterval)
}

struct CommandID: Sendable, Hashable {
    let number: UInt64
}
