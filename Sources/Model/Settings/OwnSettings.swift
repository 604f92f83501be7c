/// What a `[[destination]]` sets for itself of `[dispatch]` and `[queue]`; nil where those hold for it too.
public struct OwnSettings: Sendable, Equatable {
    package var interval: DispatchInterval?
    package var batchEvents: Int?
    package var batchMostEvents: Int?
    package var batchSize: Int?
    package var parallelBatches: Int?
    package var criticalDelay: Duration?
    package var maxAge: Duration?
    package var whenBehind = WhenBehind.wait

    /// What becomes of a destination's events where they alone keep those of others out of a full queue.
    public enum WhenBehind: String, Sendable, CaseIterable {
        /// They stay, and reading waits.
        case wait
        /// The oldest are given up for it.
        case skip
    }
}
