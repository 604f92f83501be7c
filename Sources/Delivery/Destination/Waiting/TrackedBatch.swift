internal import EventLoops
internal import Model

/// What delivery remembers of a batch between attempts. Its events are in the queue, so that losing this
/// costs time but no events.
struct TrackedBatch: Sendable {
    /// The queue's description of the batch: id, lane, number of events, sizes, times.
    var header: BatchHeader
    /// Failed attempts that count towards the retry schedule.
    var failures = 0
    /// The batch is not sent before this time.
    var notBefore: BootInstant
    /// Number of batches acknowledged before this one was first attempted; nil before. If it has grown when
    /// this batch fails again, the cause is the batch and not the destination.
    var acknowledgedBefore: Int?
    /// When and how the batch failed.
    var history = History()
    /// Beginning of the last attempt.
    var attemptedAt: BootInstant?
    /// Why the batch is set aside; nil if it is not.
    var aside: Aside?
    /// Whether a set-aside batch is being tried again because others of its app were accepted.
    var isTriedAgain = false
    /// Last rejection of the batch, or of the batch that it is a piece of.
    var rejectedAt: BootInstant?
    /// App of all events, known once the batch was rejected or parted; nil if there are several or it is
    /// unknown.
    var app: String?
    /// Whether the receiver may have stored the batch already: an attempt ended without an answer, or an
    /// earlier run may have sent it. Such a batch is not split, since its pieces would be stored once more.
    var mayBeTaken = false
    /// Order of the piece among the pieces of a batch that was split.
    var place = PiecePlace()

    /// When and how a batch failed.
    struct History: Sendable {
        fileprivate(set) var failedAt: BootInstant?
        /// Last failure other than a refusal; the receiver may have stored the batch all the same.
        fileprivate(set) var erredAt: BootInstant?
        /// Time-outs while other batches went through: this batch itself takes that long.
        var timeouts = 0
        /// Whether the batch failed again without an acknowledgement in between. It then waits for the
        /// destination, and is sent as soon as that acknowledges anything.
        var waitsForDestination = false
        /// Number of times the answer to the batch made the destination held.
        var holds = 0
        /// Number of times a verdict on the event was postponed because other answers were outstanding.
        var postponements = 0
        /// Number of answers in which the destination refused the batch's events, and of other failures in a
        /// doubt while the batch was set aside for a refusal.
        var tries = 0
        /// Whether an earlier run may have sent the batch, as far as the queue knows.
        var isOfEarlierRun = false
    }

    /// Why a batch is set aside.
    enum Aside: Sendable {
        /// The batch fails while others succeed. It is tried now and then, and halved if it fails again.
        case fails
        /// Too many events of its app were rejected for this one to be given up.
        case rejected
    }

    /// A piece of this batch; its header comes with the queue's answer to the settlement.
    func piece(_ number: Int, notBefore: BootInstant) -> TrackedBatch {
        var piece = TrackedBatch(header: header, notBefore: notBefore)
        piece.history.holds = history.holds
        piece.app = app
        piece.place = place.piece(number)
        return piece
    }

    /// What is remembered of the pieces into which the batch is cut, in the order of their numbers.
    ///
    /// - Parameters:
    ///   - numbers: the number of the piece for each event.
    ///   - apps: app of each event; empty if the apps are unknown.
    func pieces(_ numbers: [Int], apps: [String], notBefore: BootInstant) -> [TrackedBatch] {
        Set(numbers).sorted().map { number in
            var piece = piece(number, notBefore: notBefore)
            let mine = Set(zip(apps, numbers).lazy.filter { $0.1 == number }.map(\.0))
            piece.app = mine.count == 1 && mine != [""] ? mine.first : nil
            return piece
        }
    }

    /// The same for a batch that is split because of an answer.
    ///
    /// - Parameters:
    ///   - isRejected: whether the answer was about the events, so that the pieces count as rejected.
    ///   - aside: why the pieces wait beside the others.
    func pieces(
        _ numbers: [Int], apps: [String], after failure: Failure, isRejected: Bool, aside: Aside?,
        at now: BootInstant
    ) -> [TrackedBatch] {
        pieces(numbers, apps: apps, notBefore: now).map { piece in
            var piece = piece
            piece.aside = aside
            piece.rejectedAt = isRejected ? now : nil
            if aside == .fails {
                piece.note(failure, at: now)
            }
            return piece
        }
    }

    /// Whether the batch may be split or parted. A batch that may be stored already must not be: its pieces
    /// would be stored again under other ids.
    ///
    /// After a refusal (4xx except 408 and 429) it may be, since what refuses the request now did not store
    /// the batch before either. A receiver in trouble (5xx) may say so of a batch that it has.
    func maySplit(after failure: Failure?) -> Bool { !mayBeTaken || failure?.isRefusal == true }

    var failedAt: BootInstant? { history.failedAt }

    mutating func note(_ failure: Failure, at now: BootInstant) {
        history.failedAt = now
        if !failure.isRefusal {
            history.erredAt = now
        }
    }

    /// An attempt failed without a verdict on the events. In a doubt this counts as a turn of a batch that
    /// was set aside for a refusal; otherwise it would have every turn of its app.
    ///
    /// Outside of a doubt there are no turns, and a failure says nothing about the batch: after an outage of
    /// a day it would come last in the next doubt.
    mutating func noteFailedTurn(isInDoubt: Bool) {
        if isInDoubt, aside == .rejected {
            history.tries += 1
        }
    }

    /// Factor for the request time-out of the next attempt. Without it, a batch that takes longer than the
    /// time-out would be sent again for ever.
    var timeFactor: Int { [1, 4, 8][min(history.timeouts, 2)] }

    /// The last earlier failure of the same kind: refusals count any failure or rejection, others only
    /// failures after which the batch may be stored.
    func failed(before failure: Failure) -> BootInstant? {
        failure.isRefusal ? failedAt ?? rejectedAt : history.erredAt
    }

    /// Whether the batch waits for the next acknowledgement of anything.
    var waitsForDestination: Bool { history.waitsForDestination }

    var isSetAside: Bool { aside != nil }

    /// Whether the batch waits for a retry; limits the new batches of its lane.
    var waitsForRetry: Bool { failures > 0 && !isSetAside }

    /// Forgets failures, because what caused them is over. A set-aside batch keeps its wait.
    mutating func reset(at now: BootInstant) {
        guard !isSetAside else { return }
        failures = 0
        notBefore = now
        acknowledgedBefore = nil
    }
}
