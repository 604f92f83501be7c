/// Share of events that a destination refuses, by app.
///
/// It decides into how many pieces a refused batch is cut. Events of all apps together are counted under the
/// empty name.
struct RefusalShare: Sendable {
    /// Number of events that are remembered. Older ones fade, so that the share follows a change within a
    /// batch or two.
    private static let memory = 200.0
    /// Number of events below which the share is unknown.
    private static let leastEvents = 10.0
    /// Most apps that are remembered. Senders can invent any number of app names.
    private static let mostApps = 1000

    /// Counted events and refused ones among them, by app.
    private var tallies: [String: (events: Double, refused: Double)] = [:]

    /// Counts events that the destination accepted or refused.
    mutating func note(refused isRefused: Bool, events: Int, of app: String?) {
        guard events > 0 else { return }
        if tallies.count >= RefusalShare.mostApps {
            tallies = [:]
        }
        var tally = tallies[app ?? ""] ?? (0, 0)
        let count = min(Double(events), RefusalShare.memory)
        tally.events += count
        if isRefused {
            tally.refused += count
        }
        if tally.events > RefusalShare.memory {
            tally.refused *= RefusalShare.memory / tally.events
            tally.events = RefusalShare.memory
        }
        tallies[app ?? ""] = tally
    }

    /// Share of an app's events that are refused, from 0 to 1; nil while too few are known.
    func share(of app: String?) -> Double? {
        guard let tally = tallies[app ?? ""], tally.events >= RefusalShare.leastEvents else { return nil }
        return tally.refused / tally.events
    }
}
