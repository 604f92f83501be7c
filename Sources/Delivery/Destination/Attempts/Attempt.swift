internal import EventLoops
internal import Model

/// Names one attempt, from the request to the queue to the settlement of its batch.
struct AttemptID: Sendable, Hashable {
    let destination: DestinationName
    /// Number within the destination; never used twice in a run.
    let number: UInt64

    /// Hashes the number only: it distinguishes nearly all attempts and costs a fraction of hashing the name.
    func hash(into hasher: inout Hasher) { hasher.combine(number) }
}

/// One batch on its way: being requested from the queue, sent, or settled.
///
/// All attempts are looked at about forty times per batch, and each look may copy them. So the fields that
/// are compared are a few bytes, and the batch and its settlement, which are large and rarely needed, are
/// each behind a reference (`Boxed`).
struct Attempt: Sendable {
    /// How far the attempt is, with the data that only this phase has.
    enum Phase: Sendable {
        /// The queue was asked for a batch.
        case leasing(Wish)
        /// The batch was leased ahead and waits for a place.
        case ready(Boxed<TrackedBatch>)
        /// The request is on its way to the destination.
        case sending(Boxed<TrackedBatch>)
        /// The destination rejected the only event, and answers in flight may show whose fault that is.
        case unproven(Boxed<Unproven>)
        /// The settlement is on its way to the queue.
        case settling(Boxed<Settling>)
    }

    /// Which batch the queue was asked for.
    enum Wish: Sendable {
        /// The next batch, formed of waiting events.
        case next
        /// The next batch, requested before there is a place for it.
        case nextAhead
        /// A free batch.
        case free
        /// A batch that is remembered, by its id.
        case known(Boxed<TrackedBatch>)
    }

    /// A rejected event that becomes a dead letter as soon as something is acknowledged that was sent after
    /// the rejection.
    ///
    /// Without this wait the event would be sent once more to be judged: with a fifth of the events rejected,
    /// that is a fifth of all requests.
    struct Unproven: Sendable {
        private static let wait = Duration.seconds(1)

        /// The batch with the single event.
        let batch: TrackedBatch
        /// The rejection, for the dead letter.
        let failure: Failure
        /// End of the wait; then the event is sent once more.
        let until: BootInstant

        /// A batch whose only event was rejected now.
        init(_ rejected: TrackedBatch, _ failure: Failure, at now: BootInstant) {
            until = now + Unproven.wait
            self.failure = failure
            var batch = rejected
            batch.history.postponements += 1
            batch.rejectedAt = batch.rejectedAt ?? now
            batch.notBefore = until
            self.batch = batch
        }
    }

    /// How the batch ended, until the queue has stored it.
    struct Settling: Sendable {
        let batch: Boxed<TrackedBatch>
        let settlement: Settlement
        /// What will be remembered of the batches that the settlement makes, in the order of their groups.
        /// Their headers come with the queue's answer.
        let children: [TrackedBatch]
        /// When a settlement that the queue failed to store is sent again; nil while the queue works on it.
        var againAt: BootInstant?
    }

    /// Lane of the batch, or of the request.
    let priority: Priority
    /// How far the attempt is.
    private(set) var phase: Phase
    /// Whether the attempt finds out if the destination has recovered.
    let isProbe: Bool
    /// Whether a command asked for the attempt and waits for its result.
    var isPushed: Bool
    /// Whether the batch was forgotten because collection was disabled; its answer is ignored.
    var isForgotten = false
    /// Whether retries were reset while the attempt was on its way. A failure then counts as the first one
    /// and holds nothing, since it is about the time before.
    var isBegunAgain = false

    /// An attempt begins with a request to the queue.
    init(_ wish: Wish, priority: Priority, isProbe: Bool, isPushed: Bool) {
        phase = .leasing(wish)
        self.priority = priority
        self.isProbe = isProbe
        self.isPushed = isPushed
    }

    /// The queue has handed over a batch that was requested ahead.
    mutating func wait(with batch: TrackedBatch) {
        assert(isLeasing, "only what was asked for can wait")
        phase = .ready(Boxed(batch))
    }

    mutating func send(_ batch: TrackedBatch) {
        assert(isLeasing || isReady, "a batch is sent once an attempt")
        phase = .sending(Boxed(batch))
    }

    /// The only event was rejected, and answers in flight may show whose fault that is.
    mutating func awaitProof(_ unproven: Unproven) {
        assert(isSending, "only what was sent can be refused")
        phase = .unproven(Boxed(unproven))
    }

    /// The batch has ended; its settlement goes to the queue.
    mutating func settle(_ settlement: Settlement, _ children: [TrackedBatch]) {
        guard isSending || isUnproven, let batch else { return assertionFailure("only what was sent ends") }
        phase = .settling(Boxed(Settling(batch: Boxed(batch), settlement: settlement, children: children)))
    }

    /// The queue failed to store the settlement, which is sent again at a time, or is on its way again now
    /// (nil).
    mutating func tell(again: BootInstant?) {
        guard case .settling(let current) = phase else {
            return assertionFailure("only a settlement is sent again")
        }
        var settling = current.content
        settling.againAt = again
        phase = .settling(Boxed(settling))
    }

    var isLeasing: Bool { if case .leasing = phase { true } else { false } }
    var isReady: Bool { if case .ready = phase { true } else { false } }
    var isSending: Bool { if case .sending = phase { true } else { false } }
    var isUnproven: Bool { if case .unproven = phase { true } else { false } }

    /// The rejected event that waits for proof; nil in other phases.
    var unproven: Unproven? { if case .unproven(let unproven) = phase { unproven.content } else { nil } }

    /// Whether the attempt holds a leased batch whose end is not decided.
    var isLeased: Bool { isReady || isSending || isUnproven }

    /// Whether the queue is storing how the batch ended.
    var isBeingTold: Bool {
        if case .settling(let settling) = phase {
            settling.content.againAt == nil
        } else {
            false
        }
    }

    /// When the settlement is sent to the queue again; nil unless the queue failed to store it.
    var settleAgainAt: BootInstant? {
        if case .settling(let settling) = phase {
            settling.content.againAt
        } else {
            nil
        }
    }

    /// Number of batches that the settlement makes.
    var batchesToCome: Int {
        if case .settling(let settling) = phase {
            settling.content.children.count
        } else {
            0
        }
    }

    /// Whether the destination has the whole batch and only the queue must store that. The place is free for
    /// the next batch then.
    ///
    /// The queue gets the settlement before the request for that batch, so at most one of them per place is
    /// outstanding.
    var isDone: Bool { isBeingTold && batchesToCome == 0 }

    /// Whether the attempt holds one of the destination's places.
    var takesPlace: Bool { !isDone && !isWaitingAhead && !isUnproven }

    /// Whether the attempt was begun ahead of a free place.
    var isWaitingAhead: Bool {
        switch phase {
        case .ready, .leasing(.nextAhead): true
        case .leasing, .sending, .unproven, .settling: false
        }
    }

    /// Whether the queue has yet to form the batch from waiting events.
    var awaitsNewBatch: Bool {
        switch phase {
        case .leasing(.next), .leasing(.nextAhead): true
        case .leasing, .ready, .sending, .unproven, .settling: false
        }
    }

    /// Whether the queue was asked for a batch that exists already.
    var awaitsKnownBatch: Bool { isLeasing && !awaitsNewBatch }

    /// The batch; nil while it is unknown which one the queue will give.
    var batch: TrackedBatch? {
        switch phase {
        case .leasing(.next), .leasing(.nextAhead), .leasing(.free): nil
        case .leasing(.known(let batch)), .ready(let batch), .sending(let batch): batch.content
        case .unproven(let unproven): unproven.content.batch
        case .settling(let settling): settling.content.batch.content
        }
    }

    /// Whether the batch was set aside.
    var holdsSetAside: Bool {
        switch phase {
        case .leasing(.next), .leasing(.nextAhead), .leasing(.free): false
        case .leasing(.known(let batch)), .ready(let batch), .sending(let batch): batch.content.isSetAside
        case .unproven(let unproven): unproven.content.batch.isSetAside
        case .settling(let settling): settling.content.batch.content.isSetAside
        }
    }

    /// The batch that the queue was asked for by its id; nil in other phases and for other requests.
    var wishedBatch: TrackedBatch? {
        if case .leasing(.known(let batch)) = phase {
            batch.content
        } else {
            nil
        }
    }

    /// The settlement that goes to the queue; nil in other phases.
    var settlement: Settlement? {
        if case .settling(let settling) = phase {
            settling.content.settlement
        } else {
            nil
        }
    }

    /// Number of the batch's events that the destination does not have.
    var eventsLeft: Int {
        guard let settlement else { return batch?.header.events ?? 0 }
        return settlement.parts.reduce(0) { sum, part in
            if case .again = part.disposition {
                sum + part.events.count
            } else {
                sum
            }
        }
    }
}

/// A value behind a reference, so that copying it only counts a reference, however large the value is.
final class Boxed<Value: Sendable>: Sendable {
    let content: Value

    init(_ content: Value) { self.content = content }
}

/// The events that a command still has to send.
struct Push: Sendable {
    /// Whether all that waits and comes is wanted (drain), rather than what waited at the beginning
    /// (dispatch).
    let everything: Bool
    /// Waiting events of each lane that are still wanted.
    var events: PerPriority<Int>
    /// Revisions of the summaries by which these were counted. Leases that they include already are not
    /// subtracted.
    var revisions = PerPriority(both: 0)
    /// Free batches of each lane that are still wanted.
    var free: PerPriority<Int>
    /// Remembered batches that are still wanted.
    var batches: Set<BatchID>
    /// Whether one attempt may still pass an open breaker or a hold.
    var probe = true
}

extension Push {
    /// What waits now.
    ///
    /// - Parameter batches: remembered batches that are wanted too.
    init(everything: Bool, _ backlog: Backlog, batches: Set<BatchID>) {
        self.everything = everything
        self.batches = batches
        events = PerPriority(critical: backlog.waiting(.critical), normal: backlog.waiting(.normal))
        free = PerPriority(critical: backlog.freeToTake(.critical), normal: backlog.freeToTake(.normal))
        revisions = PerPriority(
            critical: backlog.views.critical.summary.revision, normal: backlog.views.normal.summary.revision)
    }
}
