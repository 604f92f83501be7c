internal import EventLoops

/// The reader's time that each app has used. The app with the least goes first.
///
/// So an app only waits for its own work and for one piece of another app's work, however much work the other
/// app has and however long its pieces take. Unused time is not saved up: an app that comes back starts level
/// with the app that was served last (start-time fair queueing, Goyal, Vin and Cheng, SIGCOMM 1996).
/// Otherwise an app that was idle for a day could occupy the reader for hours.
struct Shares {
    /// Most apps that are remembered: app names come from users of the spool, so the table must be bounded.
    private static let most = 4_096

    /// Time used by each app in nanoseconds. An app never counts for less than `level`.
    private var spent: [String: Int64] = [:]
    /// The used time of the app that was served last (the virtual time of fair queueing).
    private var level: Int64 = 0

    /// The used time of an app in nanoseconds, at least the level.
    func spent(by app: String) -> Int64 { max(level, spent[app] ?? 0) }

    /// A piece of an app's work begins: its share becomes the level for apps that come back.
    mutating func begin(_ app: String) { level = spent(by: app) }

    /// Adds time to an app's share. Beyond the bound apps at the level are forgotten, which changes nothing
    /// for them; if too many are above it, all start again.
    mutating func charge(_ app: String, _ time: Duration) {
        let nanoseconds = max(0, time.nanosecondsClamped)
        let (sum, isTooMuch) = spent(by: app).addingReportingOverflow(nanoseconds)
        spent[app] = isTooMuch ? .max : sum
        guard spent.count > Shares.most else { return }
        spent = spent.filter { $0.value > level }
        if spent.count > Shares.most {
            spent = [:]
        }
    }
}
