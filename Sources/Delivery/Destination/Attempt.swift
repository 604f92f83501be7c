internal import EventLoops
internal import Model

/// Names one attempt, from the wish for a batch to its settlement.
struct AttemptID: Sendable, Hashable {
    let destination: DestinationName
    let number: UInt64
}

/// A batch that delivery keeps in mind between attempts: its waits live here, its events in the queue.
struct TrackedBatch: Sendable {
    let header: BatchHeader
    /// Failed attempts that count towards the schedule.
    var failures = 0
    /// No attempt before this point.
    var notBefore: BootInstant
    /// How many batches the destination had acknowledged when this one was first attempted; nil before.
    var acknowledgedBefore: Int?
    /// When it was last attempted.
    var attemptedAt: BootInstant?
    /// It alone fails, others do not (fault 11): tried now and then, and bisected after some rounds.
    var isSetAside = false
    /// Failed attempts since it was set aside.
    var rounds = 0
    /// Made by bisecting a batch that was set aside: one failure is enough to bisect it again.
    var isSuspect = false
    /// How often it was this batch's answer that made the destination held.
    var holds = 0
    /// For a piece of a batch that was rejected: how many batches the destination had acknowledged by then.
    var rejectedAt: Int?
    /// How often its end was put off because others of the same time were not answered yet.
    var postponements = 0

    init(_ header: BatchHeader, notBefore: BootInstant) {
        self.header = header
        self.notBefore = notBefore
    }

    /// Whether it waits for a retry and so counts towards what a lane may have waiting.
    var waitsForRetry: Bool { failures > 0 && !isSetAside }

    /// Forgets failures, as after a change of the network.
    mutating func reset(at now: BootInstant) {
        guard !isSetAside else { return }
        failures = 0
        notBefore = now
        acknowledgedBefore = nil
    }
}

/// A place that is taken: a batch is asked for, on its way, or being settled.
///
/// All attempts are looked at some forty times a batch, and to look at one may copy it. So what tells one from another
/// lies in a few bytes here; the batch and its end, which are long and seldom asked for, lie behind a reference each.
struct Attempt: Sendable {
    enum Phase: Sendable {
        /// The queue was asked for a batch.
        case leasing
        /// The batch is leased and waits for a place: it was asked for ahead.
        case ready
        /// The destination is being asked.
        case sending
        /// The queue is being told.
        case settling
    }

    /// What a new batch will be tracked as, once the queue has made it.
    struct Child: Sendable {
        var failures = 0
        var notBefore: BootInstant
        var isSuspect = false
        var holds = 0
        var rejectedAt: Int?
    }

    let priority: Priority
    var phase = Phase.leasing
    /// Tells whether the destination is well again.
    let isProbe: Bool
    /// Takes up a batch that is free since a restart, rather than new events.
    let takesFree: Bool
    /// A command asked for it and is told how it ends.
    var isPushed: Bool
    /// It was asked for before there was a place for it.
    var isAhead = false
    /// The batch is none of ours any more (collection was disabled): its answer is ignored.
    var isForgotten = false
    /// Whether the settlement makes batches.
    private(set) var makesBatches = false
    /// When the queue is told again, after it could not take the settlement.
    var settleAgainAt: BootInstant?
    private var batchBox: Boxed<TrackedBatch>?
    private var endingBox: Boxed<Ending>?

    init(
        priority: Priority, batch: TrackedBatch? = nil, isProbe: Bool, takesFree: Bool, isPushed: Bool,
        isAhead: Bool = false
    ) {
        self.priority = priority
        self.isProbe = isProbe
        self.takesFree = takesFree
        self.isPushed = isPushed
        self.isAhead = isAhead
        self.batch = batch
    }

    /// What is attempted; nil while the queue is still to form it.
    var batch: TrackedBatch? {
        get {
            guard case .value(let batch) = batchBox else { return nil }
            return batch
        }
        set { batchBox = newValue.map { .value($0) } }
    }

    /// How it ends; nil while the destination has not answered.
    var ending: Ending? {
        get {
            guard case .value(let ending) = endingBox else { return nil }
            return ending
        }
        set {
            endingBox = newValue.map { .value($0) }
            makesBatches = newValue?.children.isEmpty == false
        }
    }

    /// How many of the batch's events the destination has not got.
    var eventsLeft: Int {
        guard let settlement = ending?.settlement else { return batch?.header.events ?? 0 }
        return settlement.parts.reduce(0) { sum, part in
            if case .again = part.disposition { sum + part.events.count } else { sum }
        }
    }

    /// Whether the destination has the whole batch and the queue is only being told: the place is free for the next.
    ///
    /// The queue is asked for that one in the same turn, after it was told, so no more than a place each are ahead of it.
    var isDone: Bool { phase == .settling && !makesBatches && settleAgainAt == nil }

    /// Whether it takes one of the destination's places: it is being sent, or will be as soon as the queue answers.
    var takesPlace: Bool { !isDone && !isWaitingAhead }

    /// Whether it waits for a place, with its batch or for it.
    var isWaitingAhead: Bool { phase == .ready || phase == .leasing && isAhead }

    /// Whether the queue still has to hand over a batch that it formed from waiting events.
    var awaitsNewBatch: Bool { phase == .leasing && batchBox == nil && !takesFree }

    /// Whether the queue was asked for a batch that it has already.
    var awaitsKnownBatch: Bool { phase == .leasing && (takesFree || batchBox != nil) }
}

/// How an attempt's batch ends, until the queue knows.
struct Ending: Sendable {
    /// What happened to each event.
    let settlement: Settlement
    /// What becomes of the batches that the settlement makes, by group.
    let children: [Attempt.Child]
    /// What commands are told when it is settled.
    let end: AttemptEnd
}

/// A value behind a reference: to copy it takes a count, however large it is.
private indirect enum Boxed<Value: Sendable>: Sendable {
    case value(Value)
}

/// How an attempt ended, for commands that wait for it.
enum AttemptEnd: Sendable, Equatable {
    /// The destination has the batch, or it was split or given up: what is left goes on.
    case good
    /// It failed, and stays where it is.
    case error(Failure)
}

/// What commands make a destination do.
struct Push: Sendable {
    /// All that waits and comes, rather than what waits at the beginning.
    let everything: Bool
    /// How many waiting events of each lane are still to go.
    var events: PerPriority<Int>
    /// How many batches free since a restart are still to go.
    var free: PerPriority<Int>
    /// Batches that are ready and still to go.
    var batches: Set<BatchID>
    /// Whether one attempt may pass an open breaker.
    var probe = true
}
