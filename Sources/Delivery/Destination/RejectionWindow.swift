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

    /// Runs of equal fates, oldest first; short, because runs join. An app of nil: those events are nobody's.
    private var runs: [(isRejected: Bool, app: String?, events: Int)] = []
    /// How many of an app's events were rejected and kept since the last that was taken.
    private(set) var kept: [String: Int] = [:]
    /// How many of all were rejected since anything was taken.
    private var inARow = 0

    /// - Parameter trusted: what it was seen to take before this process began, in events.
    init(trusted: Int = 0) { note(rejected: false, events: trusted, of: trusted) }

    private var events: Int { runs.reduce(0) { $0 + $1.events } }

    /// How many of the last 1,000 were rejected.
    var rejected: Int { runs.reduce(0) { $1.isRejected ? $0 + $1.events : $0 } }

    private var rejectedOf: [String?: Int] {
        runs.reduce(into: [:]) { if $1.isRejected { $0[$1.app, default: 0] += $1.events } }
    }

    /// Whether so many more events, of an app, may be given up.
    func tolerates(_ more: Int = 0, of app: String? = nil) -> Bool {
        let counted = rejectedOf.filter { $0.key == app || $0.key == nil || $0.value < RejectionWindow.ownMatter }
        return counted.values.reduce(0, +) < RejectionWindow.tolerated && rejected + more <= events - rejected
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
            if runs[0].events == 0 { runs.removeFirst() }
        }
    }

    /// Whether so many of an app's events were rejected, while others were taken, that another one tells nothing of the destination.
    func isOwnMatter(of app: String?) -> Bool {
        isHopeless(app) || app != nil && rejectedOf[app] ?? 0 >= RejectionWindow.ownMatter && toleratesAlone
    }

    /// Whether of an app, beyond what may be given up, fifty events were rejected and none taken.
    func isHopeless(_ app: String?) -> Bool { app.map { kept[$0] ?? 0 >= RejectionWindow.ownMatter } ?? false }

    /// So many events of an app were rejected and are kept.
    mutating func noteKept(_ events: Int, of app: String?) {
        inARow += events
        guard let app else { return }
        // Names may be many, memory is not.
        if kept.count >= RejectionWindow.length { kept = [:] }
        kept[app, default: 0] += events
    }

    /// Events of an app are taken, or of all.
    mutating func forgive(_ app: String? = nil) { kept = app == nil ? [:] : kept.filter { $0.key != app } }
}
