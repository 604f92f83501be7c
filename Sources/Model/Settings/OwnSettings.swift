/// Settings of `[dispatch]` and `[queue]` that a destination overrides; nil if the general ones apply.
public struct OwnSettings: Sendable, Equatable {
    package var interval: DispatchInterval?
    /// Largest share of a wait that is left out.
    package var jitter: Double?
    package var batchEvents: Int?
    package var batchMostEvents: Int?
    package var batchSize: Int?
    package var parallelBatches: Int?
    package var criticalDelay: Duration?
    package var maxAge: Duration?
    package var whenBehind = WhenBehind.wait

    /// What happens to a destination's events if they alone keep other destinations' events out of a
    /// full queue.
    public enum WhenBehind: String, Sendable, CaseIterable {
        /// Events stay in the spool and reading waits.
        case wait
        /// The destination's oldest events are evicted.
        case skip
    }
}
