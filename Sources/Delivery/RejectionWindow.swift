/// Which of the last 1,000 events of a destination were rejected (fault 11).
///
/// A destination that rejects a tenth of what it gets is set up wrongly, or its senders are: turning the queue into
/// dead letters would not help it.
struct RejectionWindow: Sendable {
    private static let length = 1000
    private static let tolerated = 100

    /// Runs of equal fates, oldest first; short, because runs join.
    private var runs: [(rejected: Bool, events: Int)] = []
    private var events = 0
    /// How many of the last 1,000 were rejected.
    private(set) var rejected = 0

    /// Whether events may still be given up one by one.
    var isTolerable: Bool { rejected < RejectionWindow.tolerated }

    /// So many events had this fate.
    mutating func note(rejected isRejected: Bool, events count: Int) {
        guard count > 0 else { return }
        let count = min(count, RejectionWindow.length)
        if let last = runs.last, last.rejected == isRejected {
            runs[runs.count - 1].events += count
        } else {
            runs.append((isRejected, count))
        }
        events += count
        if isRejected { rejected += count }
        while events > RejectionWindow.length, let first = runs.first {
            let gone = min(first.events, events - RejectionWindow.length)
            events -= gone
            if first.rejected { rejected -= gone }
            runs[0].events -= gone
            if runs[0].events == 0 { runs.removeFirst() }
        }
    }
}
