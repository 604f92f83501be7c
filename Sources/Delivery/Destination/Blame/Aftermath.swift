internal import Model

/// What becomes of a batch after a failure that may pass (5xx, 429, time-out, broken connection), if neither
/// its events nor their app are known to be at fault.
///
/// In this order: does the destination's state decide, is the batch the cause although it was set aside
/// already, is a smaller batch better, are retries left, do others go through.
struct Aftermath: Sendable {
    enum Step: Equatable {
        /// The batch keeps failing alone: halve it.
        case halve
        /// The batch takes longer than a request may, and the receiver would store repeats: halve it.
        case halveSlow
        /// The batch exceeds the burst of the receiver's rate limiter: halve it.
        case halveLarge
        /// Keep the batch; the next probe or its turn among the set-aside ones decides.
        case wait
        /// Try again after the schedule's next wait.
        case retry
        /// Retries are used up while others go through: set the batch aside.
        case setAside
        /// Retries are used up and the destination is at fault: open the breaker.
        case openBreaker
    }

    var order = DestinationOptions.Order.free
    /// Whether the receiver recognises a batch that it has stored already.
    var recognisesRepeats = true
    /// Number of retries in the schedule.
    var retries = 3
    /// Whether the failure belongs to a probe, or the breaker is open. Then the destination's state decides
    /// when the batch is tried again, not the batch's own schedule.
    var isDecidedByState = false
    /// Whether other batches were acknowledged since the first attempt of this one.
    var othersWentThrough = false
    /// See `Blame.isTooMuch`.
    var isTooMuch = false

    /// The next step for a batch; its failures do not include this one yet.
    func step(for batch: TrackedBatch, _ failure: Failure) -> Step {
        guard !isDecidedByState else { return .wait }
        if batch.aside == .fails, othersWentThrough, batch.header.events > 1,
            batch.maySplit(after: failure)
        {
            return .halve
        }
        if isTooSlow(batch, failure) { return .halveSlow }
        if isTooMuch { return .halveLarge }
        guard !batch.isSetAside else { return .wait }
        if batch.failures < retries { return .retry }
        return othersWentThrough && order != .promised ? .setAside : .openBreaker
    }

    /// Whether the batch has timed out twice by itself and must be halved, since each further attempt could
    /// store it once more. A receiver that recognises repeats gets the same batch with more time instead
    /// (`TrackedBatch.timeFactor`).
    private func isTooSlow(_ batch: TrackedBatch, _ failure: Failure) -> Bool {
        failure.kind == .timeout && !recognisesRepeats && batch.history.timeouts > 1
            && batch.header.events > 1
    }
}
