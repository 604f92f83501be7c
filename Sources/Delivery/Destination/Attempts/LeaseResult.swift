internal import Model

/// The queue's answer to a request for a batch.
enum LeaseResult: Sendable, Equatable {
    /// A leased batch.
    ///
    /// - Parameter mayBeTaken: whether an earlier attempt may have reached the destination, as far as the
    ///   queue knows.
    case batch(BatchHeader, mayBeTaken: Bool)
    /// The queue has no batch to give.
    case none
    /// The call failed.
    case failed
}
