internal import EventLoops
internal import Model

/// How much of a full quarantine each app may replace: an eighth at once, and as much again each minute.
///
/// An app with more bad lines than that would only purge its own of a moment ago, and everybody else's, while the
/// transactions that write them keep batches from being leased and acknowledged. What is beyond it is counted as purged.
struct QuarantineBudget {
    private static let part = 8
    /// How long it takes until an app may replace as much again.
    private static let period = Duration.seconds(60)
    /// Apps that are remembered at most; one that is not has its whole part.
    private static let mostApps = 1_024

    private struct Use {
        var bytes: Double
        var at: BootInstant
    }

    private var uses: [String: Use] = [:]

    /// Whether a record may be written; it is charged for then.
    ///
    /// - Parameter bound: what the quarantine holds.
    mutating func takes(_ record: QuarantineRecord, bound: Int, at now: BootInstant) -> Bool {
        let most = Double(bound / QuarantineBudget.part)
        var use = uses[record.app] ?? Use(bytes: 0, at: now)
        if now > use.at {
            let part = Double((now - use.at).nanosecondsClamped) / Double(QuarantineBudget.period.nanosecondsClamped)
            use.bytes = max(0, use.bytes - part * most)
            use.at = now
        }
        let bytes = use.bytes + Double(record.cost)
        // One that is larger than an app's part goes when the app has replaced nothing for long.
        guard bytes <= most || use.bytes == 0 else {
            uses[record.app] = use
            return false
        }
        use.bytes = bytes
        if uses.count >= QuarantineBudget.mostApps, uses[record.app] == nil { uses = [:] }
        uses[record.app] = use
        return true
    }
}
