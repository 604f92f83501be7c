internal import EventLoops
internal import Model

/// Names one attempt, from the wish for a batch to its settlement.
struct AttemptID: Sendable, Hashable {
    let destination: DestinationName
    let number: UInt64

    /// The number alone tells nearly all attempts apart, and costs a fraction of the name.
    func hash(into hasher: inout Hasher) { hasher.combine(number) }
}

/// A batch that delivery keeps in mind between attempts: its waits live here, its events in the queue.
struct TrackedBatch: Sendable {
    var header: BatchHeader
    /// Failed attempts that count towards the schedule.
    var failures = 0
    var notBefore: BootInstant
    /// How many batches the destination had acknowledged when this one was first attempted; nil before.
    var acknowledgedBefore: Int?
    /// When it last failed; nil before.
    private(set) var failedAt: BootInstant?
    /// When it, or the batch that it is a piece of, last failed otherwise than by a refusal: it may be stored all the same. Twice is enough.
    private(set) var erredAt: BootInstant?
    /// It failed again with nothing taken in between: it waits for the destination, and no longer once that acknowledges.
    var waitsForDestination = false
    var attemptedAt: BootInstant?
    /// Why it waits beside the others; nil: it does not.
    var aside: Aside?
    /// Set aside, and tried again because others of its app were taken.
    var isTriedAgain = false
    /// How often it was this batch's answer that made the destination held.
    var holds = 0
    /// When it, or the batch that it is a piece of, was last rejected.
    var rejectedAt: BootInstant?
    /// Whose its events are, once it was rejected or parted; nil: several apps', or nobody knows.
    var app: String?
    /// It may have been taken: an attempt ended without an answer, or an earlier process may have sent it.
    var mayBeTaken = false
    /// Its place among the pieces of a batch that was split, split by split: pieces keep the order of their events.
    var place: [Int] = []
    /// How often its end was postponed because others of the same time were not answered yet.
    var postponements = 0

    /// Why a batch is set aside.
    enum Aside: Sendable {
        /// It alone fails, others do not (fault 11): tried now and then, and bisected when it fails again.
        case fails
        /// It was rejected, as too many of its app's events were to be given up.
        case rejected
    }

    func piece(_ number: Int, notBefore: BootInstant) -> TrackedBatch {
        var piece = TrackedBatch(header: header, notBefore: notBefore)
        (piece.holds, piece.app, piece.place) = (holds, app, place + [number])
        return piece
    }

    /// Whether it may be split or parted: what may have been taken would be stored again under other ids. An answer that refuses the request
    /// shows that it was not taken before either; a receiver that is in trouble may say so of what it has.
    func maySplit(after failure: Failure?) -> Bool { !mayBeTaken || failure?.isRefusal == true }

    mutating func note(_ failure: Failure, at now: BootInstant) {
        failedAt = now
        if !failure.isRefusal { erredAt = now }
    }

    /// When it failed before as it does now.
    func failed(before failure: Failure) -> BootInstant? { failure.isRefusal ? failedAt ?? rejectedAt : erredAt }

    var isSetAside: Bool { aside != nil }

    /// Whether it waits for a retry and so counts towards what a lane may have waiting.
    var waitsForRetry: Bool { failures > 0 && !isSetAside }

    /// Whether the left one was attempted longer ago; of equal ones the more important, then the older goes first.
    static func isRested(_ left: TrackedBatch, _ right: TrackedBatch) -> Bool {
        (left.attemptedAt?.nanoseconds ?? .min, right.header.priority, left.header.id)
            < (right.attemptedAt?.nanoseconds ?? .min, left.header.priority, right.header.id)
    }

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
/// is in a few bytes here; the batch and its end, which are long and seldom asked for, are behind a reference each.
struct Attempt: Sendable {
    /// How far it is, with what only an attempt that is so far has.
    enum Phase: Sendable {
        /// The queue was asked for a batch.
        case leasing(Wish)
        /// The batch is leased and waits for a place: it was asked for ahead.
        case ready(Boxed<TrackedBatch>)
        /// The destination is being asked.
        case sending(Boxed<TrackedBatch>)
        /// The queue is being told.
        case settling(Boxed<Settling>)
    }

    /// Which batch the queue was asked for.
    enum Wish: Sendable {
        /// The next one, formed of waiting events.
        case next
        /// The next one, before there is a place for it.
        case nextAhead
        /// One that is free since a restart.
        case free
        case known(Boxed<TrackedBatch>)
    }

    /// How the batch ended, until the queue knows.
    struct Settling: Sendable {
        let batch: Boxed<TrackedBatch>
        let settlement: Settlement
        /// What the batches that the settlement makes will be tracked as, by group; their headers are the queue's to make.
        let children: [TrackedBatch]
        /// When the queue is told again, after it could not take the settlement; nil while it is being told.
        var againAt: BootInstant?
    }

    let priority: Priority
    private(set) var phase: Phase
    /// Tells whether the destination has recovered.
    let isProbe: Bool
    /// A command asked for it and is told how it ends.
    var isPushed: Bool
    /// The batch is none of ours any more (collection was disabled): its answer is ignored.
    var isForgotten = false
    /// Retries began again while it was on its way: should it fail, that is the first time.
    var isBegunAgain = false

    /// An attempt begins with a wish for a batch.
    init(_ wish: Wish, priority: Priority, isProbe: Bool, isPushed: Bool) {
        phase = .leasing(wish)
        self.priority = priority
        self.isProbe = isProbe
        self.isPushed = isPushed
    }

    /// The queue has handed over a batch that was asked for ahead.
    mutating func wait(with batch: TrackedBatch) {
        assert(isLeasing, "only what was asked for can wait")
        phase = .ready(Boxed(batch))
    }

    mutating func send(_ batch: TrackedBatch) {
        assert(isLeasing || isReady, "a batch is sent once an attempt")
        phase = .sending(Boxed(batch))
    }

    /// The destination has answered, and the queue is told.
    mutating func settle(_ settlement: Settlement, _ children: [TrackedBatch]) {
        guard case .sending(let batch) = phase else { return assertionFailure("only what was sent ends") }
        phase = .settling(Boxed(Settling(batch: batch, settlement: settlement, children: children)))
    }

    /// The queue could not be told, or is told again (nil).
    mutating func tell(again: BootInstant?) {
        guard case .settling(let told) = phase else { return assertionFailure("only an end is told") }
        var settling = told.content
        settling.againAt = again
        phase = .settling(Boxed(settling))
    }

    var isLeasing: Bool { if case .leasing = phase { true } else { false } }
    var isReady: Bool { if case .ready = phase { true } else { false } }
    var isSending: Bool { if case .sending = phase { true } else { false } }

    /// Whether it has a leased batch whose end is not known.
    var isLeased: Bool { isReady || isSending }

    /// Whether the queue is being told how its batch ended, and has not failed to take it.
    var isBeingTold: Bool {
        if case .settling(let settling) = phase { settling.content.againAt == nil } else { false }
    }

    /// When the queue is told again how its batch ended; nil unless it could not take that.
    var settleAgainAt: BootInstant? {
        if case .settling(let settling) = phase { settling.content.againAt } else { nil }
    }

    /// How many batches its settlement makes.
    var batchesToCome: Int { if case .settling(let settling) = phase { settling.content.children.count } else { 0 } }

    /// Whether the destination has the whole batch and the queue is only being told: the place is free for the next.
    ///
    /// The queue is asked for that one in the same turn, after it was told, so no more than a place each are ahead of it.
    var isDone: Bool { isBeingTold && batchesToCome == 0 }

    /// Whether it takes one of the destination's places: it is being sent, or will be as soon as the queue answers.
    var takesPlace: Bool { !isDone && !isWaitingAhead }

    var isWaitingAhead: Bool {
        switch phase {
        case .ready, .leasing(.nextAhead): true
        case .leasing, .sending, .settling: false
        }
    }

    /// Whether the queue still has to hand over a batch that it formed from waiting events.
    var awaitsNewBatch: Bool {
        switch phase {
        case .leasing(.next), .leasing(.nextAhead): true
        case .leasing, .ready, .sending, .settling: false
        }
    }

    /// Whether the queue was asked for a batch that it has already.
    var awaitsKnownBatch: Bool { isLeasing && !awaitsNewBatch }

    /// What is attempted; nil while the queue is still to say which.
    var batch: TrackedBatch? {
        switch phase {
        case .leasing(.next), .leasing(.nextAhead), .leasing(.free): nil
        case .leasing(.known(let batch)), .ready(let batch), .sending(let batch): batch.content
        case .settling(let settling): settling.content.batch.content
        }
    }

    /// The batch that the queue was asked for by its id; nil in other phases and for other wishes.
    var wishedBatch: TrackedBatch? { if case .leasing(.known(let batch)) = phase { batch.content } else { nil } }

    var settlement: Settlement? {
        if case .settling(let settling) = phase { settling.content.settlement } else { nil }
    }

    /// How many of the batch's events the destination has not got.
    var eventsLeft: Int {
        guard let settlement else { return batch?.header.events ?? 0 }
        return settlement.parts.reduce(0) { sum, part in
            if case .again = part.disposition { sum + part.events.count } else { sum }
        }
    }
}

/// A value behind a reference: to copy it takes a count, however large it is.
final class Boxed<Value: Sendable>: Sendable {
    let content: Value

    init(_ content: Value) { self.content = content }
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
