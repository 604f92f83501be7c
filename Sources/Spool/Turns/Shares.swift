internal import EventLoops

/// How much of the reader's time each app has had. The app that has had least goes first.
///
/// So an app waits for what it uses itself, and for one piece of another app's work, however much that one has and
/// however long its pieces take. Time that an app did not use is not saved up: one that comes back starts level with the app
/// that was served last (start-time fair queueing).
struct Shares {
    /// Apps that are remembered at most; names of apps come from users of the spool.
    private static let most = 4_096

    /// In nanoseconds; nobody counts for less than `level`.
    private var spent: [String: Int64] = [:]
    private var level: Int64 = 0
    /// Counts pieces of work: where shares are equal, the kinds of work take turns.
    var turn: UInt64 = 0

    func spent(by app: String) -> Int64 { max(level, spent[app] ?? 0) }

    mutating func begin(_ app: String) { level = spent(by: app) }

    mutating func charge(_ app: String, _ time: Duration) {
        let nanoseconds = max(0, time.nanosecondsClamped)
        let (sum, isTooMuch) = spent(by: app).addingReportingOverflow(nanoseconds)
        spent[app] = isTooMuch ? .max : sum
        guard spent.count > Shares.most else { return }
        spent = spent.filter { $0.value > level }
        if spent.count > Shares.most { spent = [:] }
    }
}
