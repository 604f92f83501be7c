/// What happened to the last 1,000 events of a destination: taken, or rejected (fault 11).
///
/// A destination that rejects a tenth of what it gets, or more than it takes, is set up wrongly, or its senders are: turning
/// the queue into dead letters would not help it.
///
/// What one app has rejected is its own matter: it has the tenth to itself, and once it is half of it, it counts no more towards that of
/// the others.
struct RejectionWindow: Sendable {
    private static let length = 1000
    private static let tolerated = 100
    private static let ownMatter = 50
    /// How many events may be given up one after the other without anything being taken between them.
    private static let longestRow = 10

    /// Runs of equal fates, oldest first; short, because runs join.
    private var runs: [(rejected: Bool, app: String?, events: Int)] = []
    /// How many of them were rejected, by app; nil: of which nobody knows whose they are.
    private var rejectedOf: [String?: Int] = [:]
    private var events = 0
    /// How many of the last 1,000 were rejected.
    private(set) var rejected = 0
    /// How many were given up since the last that was taken.
    private(set) var inARow = 0

    /// - Parameter trusted: what it was seen to take before this process began, in events.
    init(trusted: Int = 0) { note(rejected: false, events: trusted, of: trusted) }

    /// Whether so many more events may be given up.
    ///
    /// - Parameters:
    ///   - app: whose they are.
    ///   - taken: how many others the same answer takes.
    func tolerates(_ more: Int = 0, of app: String? = nil, taken: Int = 0) -> Bool {
        let counted = rejectedOf.filter { $0.key == app || $0.key == nil || $0.value < RejectionWindow.ownMatter }
        return counted.values.reduce(0, +) < RejectionWindow.tolerated && rejected + more <= events - rejected + taken
    }

    /// Whether an event may be given up although nothing tells that the destination takes others right now.
    var toleratesAlone: Bool { inARow < RejectionWindow.longestRow }

    /// What a part of a large answer counts for, so that its other part is not forgotten for it.
    static func share(_ count: Int, of answer: Int) -> Int {
        answer > length ? (count * length + answer - 1) / answer : count
    }

    /// So many events had this fate, of an answer about so many.
    mutating func note(rejected isRejected: Bool, events: Int, of answer: Int, by app: String? = nil) {
        let count = RejectionWindow.share(events, of: answer)
        guard count > 0 else { return }
        inARow = isRejected ? inARow + count : 0
        if let last = runs.last, last.rejected == isRejected, last.app == app {
            runs[runs.count - 1].events += count
        } else {
            runs.append((isRejected, app, count))
        }
        self.events += count
        if isRejected {
            rejected += count
            rejectedOf[app, default: 0] += count
        }
        while self.events > RejectionWindow.length, let first = runs.first {
            let gone = min(first.events, self.events - RejectionWindow.length)
            self.events -= gone
            if first.rejected {
                rejected -= gone
                let left = (rejectedOf[first.app] ?? 0) - gone
                rejectedOf[first.app] = left > 0 ? left : nil
            }
            runs[0].events -= gone
            if runs[0].events == 0 { runs.removeFirst() }
        }
    }
}
