internal import EventLoops
internal import Model

/// What is remembered of a batch that the queue has handed out.
///
/// A request for the next batch may cross with a batch that is being formed or given back; the queue then
/// hands out a batch that is remembered here. Taken for a new one, it would lose its waits and be split
/// although it may be stored.
enum Recognition: Sendable {
    /// The batch is new to this run.
    case new
    /// The batch was requested by id, by this attempt or by another one. The other one will get an empty
    /// answer, and this attempt continues with it.
    case known(TrackedBatch)
    /// The batch waits between attempts and may be sent now.
    case kept(TrackedBatch)
    /// The batch waits between attempts, and its wait is not over.
    case notYet
    /// Another attempt holds the batch.
    case isOnItsWay

    /// - Parameter wish: what the attempt that got the batch had asked for; it holds no batch yet.
    init(
        of id: BatchID, _ wish: Attempt.Wish, _ kept: Kept, _ attempts: Attempts, at now: BootInstant
    ) {
        if case .known(let batch) = wish {
            self = .known(batch.content)
        } else if let batch = kept[id] {
            self = batch.notBefore <= now && !batch.isSetAside ? .kept(batch) : .notYet
        } else if let other = attempts.of(id) {
            self = attempts.look(other) { $0.wishedBatch }.map { .known($0) } ?? .isOnItsWay
        } else {
            self = .new
        }
    }
}
