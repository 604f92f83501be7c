internal import EventLoops
internal import Model

/// What each app may have written to the quarantine: at once as much as the quarantine holds, and as much again each minute.
///
/// An app with more bad lines than that would only replace its own of a moment ago, and everybody else's, while the
/// transactions that write them keep batches from being leased and acknowledged. What is beyond it is counted as purged.
struct QuarantineBudget {
    /// How long it takes until an app may have as much written as the quarantine holds.
    private static let period = Duration.seconds(60)
    /// Apps that are remembered at most; one that is not may have all written.
    private static let most = 1_024

    private struct Use {
        var bytes: Double
        var at: BootInstant
    }

    private var uses: [String: Use] = [:]

    /// Whether a record may be written; it is charged for then.
    mutating func takes(_ record: QuarantineRecord, bound: Int, at now: BootInstant) -> Bool {
        var use = uses[record.app] ?? Use(bytes: 0, at: now)
        if now > use.at {
            let part = Double((now - use.at).nanosecondsClamped) / Double(QuarantineBudget.period.nanosecondsClamped)
            use.bytes = max(0, use.bytes - part * Double(bound))
            use.at = now
        }
        let bytes = use.bytes + Double(record.cost)
        guard bytes <= Double(bound) else {
            uses[record.app] = use
            return false
        }
        use.bytes = bytes
        if uses.count >= QuarantineBudget.most, uses[record.app] == nil { uses = [:] }
        uses[record.app] = use
        return true
    }
}
