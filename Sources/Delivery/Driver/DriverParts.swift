internal import EventLoops
internal import Model

/// Requests in flight, by attempt.
struct Requests {
    /// Leased batches with their events; dropped when the attempt has been answered or cut.
    var batches: [AttemptID: Batch] = [:]
    /// Tasks that send, so that a cut can cancel them.
    var tasks: [AttemptID: Task<Void, Never>] = [:]
}

/// Clients that wait for the result of a dispatch or drain.
struct Clients {
    var waiting:
        [CommandID: (
            report: DeliveryDriver.Report, continuation: CheckedContinuation<CommandResult, Never>
        )] = [:]
    private var next: UInt64 = 1

    /// The name of a new command.
    mutating func nextCommand() -> CommandID {
        defer { next += 1 }
        return CommandID(number: next)
    }

    /// Gives a command's client the result; a second result is ignored.
    mutating func finish(_ id: CommandID, _ result: CommandResult) {
        waiting.removeValue(forKey: id)?.continuation.resume(returning: result)
    }
}

/// Callers that wait for an end.
struct Ends {
    /// Whether the stop is over.
    private(set) var isStopped = false
    /// Callers of `stop`.
    var stopWaiters: [CheckedContinuation<Void, Never>] = []
    /// Callers that wait until nothing is in flight (`disable`).
    var quietWaiters: [CheckedContinuation<Void, Never>] = []

    /// The stop is over.
    mutating func stopped() {
        isStopped = true
        for waiter in stopWaiters { waiter.resume() }
        stopWaiters = []
    }

    /// Nothing is in flight, or the wait for that is over.
    mutating func quiet() {
        for waiter in quietWaiters { waiter.resume() }
        quietWaiters = []
    }
}

/// Inputs for the next turn of the machine.
struct Inbox {
    var inputs: [DeliveryInput] = []
    /// Whether a turn is posted already.
    var isPosted = false
    /// The summaries that the machine was last given.
    var lanes: [DestinationName: Lanes] = [:]

    /// Takes the inputs out; room for as many stays.
    mutating func take() -> [DeliveryInput] {
        isPosted = false
        let taken = inputs
        inputs.removeAll(keepingCapacity: true)
        return taken
    }
}

/// When the snapshot is published.
struct Publication {
    /// Time of the last one.
    var at: BootInstant?
    /// Fires when a postponed one is due.
    var timer: EventLoop.TimerID?
}

/// Calls of the queue that are gathered, because each one wakes the queue's thread.
struct QueueCalls {
    /// Acknowledged batches that the queue does not know of yet.
    var acknowledged: [(id: AttemptID, batch: BatchID)] = []
    /// Fires when the queue has to learn of them at the latest.
    var tellTimer: EventLoop.TimerID?
    /// Batches to request at the end of this turn, all by the same request.
    var wishes: [(id: AttemptID, request: LeaseRequest)] = []
    /// Calls under way that store something.
    var storing = StoringCalls()
}

/// Calls that store something in the queue. `stop` waits for them, because the queue is closed after it.
struct StoringCalls {
    /// Number of calls that have not ended.
    private(set) var count = 0
    /// Callers that wait until no call is left.
    var waiters: [CheckedContinuation<Void, Never>] = []

    mutating func begin() { count += 1 }

    mutating func end() {
        count -= 1
        guard count == 0 else { return }
        for waiter in waiters { waiter.resume() }
        waiters = []
    }
}

/// Switches to make durable, oldest first, one at a time.
struct KeptSwitches {
    var waiting: [(name: String, value: String?)] = []
    /// Whether a task is storing them.
    var isBusy = false
}
