/// The share of events that a destination refuses, of one app or of all.
///
/// It decides into how many pieces a refused batch is cut. Older events fade, so that the share follows a
/// change within a batch or two.
struct RefusalShare: Sendable {
    /// Number of events that are remembered.
    private static let memory = 200.0
    /// Number of events below which the share is unknown.
    private static let leastEvents = 10.0

    private var events = 0.0
    private var refused = 0.0

    /// Counts events that the destination accepted or refused.
    mutating func note(refused isRefused: Bool, events count: Int) {
        let count = min(Double(count), RefusalShare.memory)
        events += count
        if isRefused {
            refused += count
        }
        guard events > RefusalShare.memory else { return }
        refused *= RefusalShare.memory / events
        events = RefusalShare.memory
    }

    /// The share, from 0 to 1; nil while too few events are known.
    var value: Double? { events < RefusalShare.leastEvents ? nil : refused / events }
}
