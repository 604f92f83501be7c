/// Fates of the last 1,000 events of a destination: accepted or rejected.
///
/// A destination that rejects a tenth of the events, or more than it accepts, is set up wrongly, or its
/// senders are. Giving up further events would empty the queue into dead letters without a person's decision.
///
/// Each app may have a tenth rejected by itself: once 50 of its events are rejected, they no longer count
/// against the other apps.
struct RejectionWindow: Sendable {
    /// Number of events that are remembered.
    private static let length = 1000
    /// Rejected events at which no more are given up: a tenth of `length`.
    private static let tolerated = 100
    /// Number of rejected events of one app from which on that app's rejections count only against the app,
    /// not against the destination.
    private static let ownMatter = 50
    /// Most events given up one after the other without any accepted in between.
    private static let longestRow = 10

    /// Runs of equal fates, oldest first. The list is short, because equal neighbours join. `app` is nil for
    /// events of unknown or several apps.
    private var runs: [(isRejected: Bool, app: String?, events: Int)] = []
    /// Rejected events since anything was accepted.
    private var inARow = 0

    /// - Parameter trusted: number of accepted events that the window begins with, if an earlier run had
    ///   events accepted.
    init(trusted: Int = 0) { note(rejected: false, events: trusted, of: trusted) }

    private var events: Int { runs.reduce(0) { $0 + $1.events } }

    /// Number of rejected events among the last 1,000.
    var rejected: Int { runs.reduce(0) { $1.isRejected ? $0 + $1.events : $0 } }

    /// Number of rejected events by app.
    private var rejectedOf: [String?: Int] {
        runs.reduce(into: [:]) { if $1.isRejected { $0[$1.app, default: 0] += $1.events } }
    }

    /// Whether a number of an app's events may still be given up: fewer than 100 are rejected, without apps
    /// that count by themselves, and no more than were accepted.
    func tolerates(_ more: Int = 0, of app: String? = nil) -> Bool {
        let counted = rejectedOf.filter {
            $0.key == app || $0.key == nil || $0.value < RejectionWindow.ownMatter
        }
        return counted.values.reduce(0, +) < RejectionWindow.tolerated && rejected + more <= events - rejected
    }

    /// Whether an event may be given up without proof that the destination accepts others right now.
    var toleratesAlone: Bool { inARow < RejectionWindow.longestRow }

    /// What a part of a large answer counts for. Answers about more than 1,000 events are scaled down, so
    /// that one part does not push the other out of memory.
    static func share(_ count: Int, of answer: Int) -> Int {
        answer > length ? (count * length + answer - 1) / answer : count
    }

    /// Notes the fate of a number of events, of an answer about `answer` events.
    mutating func note(rejected isRejected: Bool, events: Int, of answer: Int, by app: String? = nil) {
        let count = RejectionWindow.share(events, of: answer)
        guard count > 0 else { return }
        inARow = isRejected ? inARow + count : 0
        if let last = runs.last, last.isRejected == isRejected, last.app == app {
            runs[runs.count - 1].events += count
        } else {
            runs.append((isRejected, app, count))
        }
        var surplus = self.events - RejectionWindow.length
        while surplus > 0 {
            let gone = min(runs[0].events, surplus)
            surplus -= gone
            runs[0].events -= gone
            if runs[0].events == 0 {
                runs.removeFirst()
            }
        }
    }

    /// Whether fifty of an app's events were rejected, while others were accepted: the app's rejections say
    /// nothing about the destination.
    func isOwnMatter(of app: String?) -> Bool {
        app != nil && toleratesAlone && rejectedOf[app] ?? 0 >= RejectionWindow.ownMatter
    }

    /// Counts rejected events whose batch was kept instead of given up.
    mutating func noteKept(_ events: Int) { inARow += events }
}
