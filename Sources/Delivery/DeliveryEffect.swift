internal import EventLoops
internal import Model

/// What the machine wants done. The driver does it and returns the result as a `DeliveryInput`.
enum DeliveryEffect: Sendable, Equatable {
    /// Ask the queue for the next batch of a lane; answered with `.leased`.
    case leaseNext(AttemptID, LeaseRequest)
    /// Ask the queue for a batch that was given back; answered with `.leased`.
    case leaseAgain(AttemptID, BatchID)
    /// Send the attempt's batch; answered with `.sent`.
    case send(AttemptID)
    /// Cancel the attempt's request and drop its batch.
    case cut(AttemptID)
    /// Give a lease back: the batch stays in the queue as it is.
    case release(BatchID)
    /// Tell the queue how a batch ended; answered with `.settled`.
    case settle(AttemptID, Settlement)
    /// Count the batch's events from before that time: they arrived too late for the deadline's view. Never
    /// more than `atMost`, the number of acknowledged events.
    case countLate(AttemptID, Deadline, before: Timestamp, atMost: Int)
    /// Make a switch durable; a value of nil removes it.
    case persist(String, String?)
    /// Tell a command's client how one request ended.
    case report(CommandID, DispatchReport)
    /// Tell a command's client the result; the command is over.
    case finish(CommandID, CommandResult)
    /// The stop is over: everything was given back.
    case stopped
    /// Write a change of state to the log; without a destination it concerns all.
    case note(DestinationName?, DeliveryNote)

    /// Whether the effect wakes the queue's thread anyway. Acknowledgements that were collected go along with
    /// it.
    var asksQueue: Bool {
        switch self {
        case .leaseNext, .leaseAgain, .release: true
        case .settle(_, let settlement): !settlement.isAcknowledgement
        default: false
        }
    }

    /// Whether the effect belongs to the traffic of batches rather than to a change of state. Only a change
    /// of state makes the driver publish a snapshot at once.
    var isRoutine: Bool {
        switch self {
        case .leaseNext, .leaseAgain, .send, .cut, .release, .settle, .countLate: true
        case .note(_, let note): note.isAboutBatch
        case .persist, .report, .finish, .stopped: false
        }
    }
}

/// A change of state, for the log; `DeliveryNote.write` has the texts.
enum DeliveryNote: Sendable, Equatable {
    /// An attempt failed and the batch waits for its next retry.
    case failed(BatchID, Failure, attempt: Int, retryIn: Duration)
    /// The destination or its settings are wrong; only probes are sent.
    case held(Failure, probeIn: Duration)
    case holdLifted
    /// Retries are used up. A `probeIn` of nil: sending continues only after a resume or a network change.
    case breakerOpened(Failure, probeIn: Duration?)
    case breakerClosed
    /// An attempt went through after failures that did not open the breaker.
    case recovered(failures: Int)
    /// The destination asked for a wait.
    case retryAfter(Duration, Failure)
    /// No route leads to the destination.
    case offline
    case online
    /// A batch was replaced by smaller ones, each with an id of its own.
    case split(BatchID, events: Int, into: Int, Failure)
    /// Events were given up; they are kept as dead letters.
    case deadLettered(BatchID, events: Int, Failure)
    /// The destination accepted a batch and rejected some events without naming them: no dead letter is
    /// possible.
    case rejectedUnnamed(BatchID, events: Int, Failure)
    /// A batch waits beside the others; `app` is nil if its events are of several apps, or of unknown ones.
    case setAside(BatchID, events: Int, Failure, app: String?)
    /// A call of the queue failed, and the queue is left alone for that long.
    case storeFailed(again: Duration)
    case paused(token: String)
    /// A pause from before the restart is still in force.
    case pauseKept(token: String)
    case resumed(token: String)
    case network(on: Bool)
    case interval(DispatchInterval)

    /// Whether the note is about a single batch: a destination that refuses events causes a hundred of them a
    /// second.
    var isAboutBatch: Bool {
        switch self {
        case .failed, .split, .deadLettered, .rejectedUnnamed, .setAside: true
        default: false
        }
    }
}

/// Names a command, in the order in which commands arrived.
struct CommandID: Sendable, Hashable {
    let number: UInt64
}
