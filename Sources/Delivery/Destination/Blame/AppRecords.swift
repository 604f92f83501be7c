internal import EventLoops
internal import Model

/// What is remembered of apps whose events were refused, or were in requests that failed: one record each.
struct AppRecords: Sendable {
    /// An app whose events were in a failed request.
    struct Suspect: Sendable, Equatable {
        /// First failure that is remembered.
        let since: BootInstant
        /// Last failure.
        let at: BootInstant
        /// Failures in a row without anything accepted in between.
        let inARow: Int
        /// Whether a failed request held events of this app only.
        let isAlone: Bool
        /// The destination's last answer.
        let failure: Failure
    }

    private struct Record {
        var suspect: Suspect?
        /// Refused and kept events since the last one that was accepted.
        var kept = 0
        var share = RefusalShare()
        /// Number of the change of records that was this one's last.
        var change = 0
    }

    /// Most apps that are remembered. Senders can invent any number of app names.
    private static let mostApps = 1000
    /// Kept events of an app after which nothing of it is expected to be accepted.
    private static let hopeless = 50

    private var records: [String: Record] = [:]
    /// Apps with a suspect. They are looked at with each input, when a thousand others may be remembered.
    private var suspectApps: Set<String> = []
    /// Apps with kept events.
    private var keptApps: Set<String> = []
    /// The share of refused events of all apps.
    private var overall = RefusalShare()
    /// Number of changes of records so far.
    private var changes = 0

    // MARK: Changes

    /// Counts events towards the share of their app, or of all (nil).
    mutating func note(refused: Bool, events: Int, of app: String?) {
        guard events > 0 else { return }
        guard let app else { return overall.note(refused: refused, events: events) }
        change(app) { $0.share.note(refused: refused, events: events) }
    }

    /// Refused events of an app were kept.
    mutating func noteKept(_ events: Int, of app: String) { change(app) { $0.kept += events } }

    /// An app's request has failed.
    mutating func suspect(_ app: String, _ suspect: Suspect) { change(app) { $0.suspect = suspect } }

    /// Events of an app, or of all (nil), are accepted: those that were kept no longer count.
    mutating func forgive(_ app: String?) {
        for name in app.map({ [$0] }) ?? Array(keptApps) where keptApps.contains(name) {
            change(name) { $0.kept = 0 }
        }
    }

    /// No event of an app, or of any (nil), fails any more.
    mutating func clear(_ app: String?) {
        for name in app.map({ [$0] }) ?? Array(suspectApps) where suspectApps.contains(name) {
            change(name) { $0.suspect = nil }
        }
    }

    /// Clears the suspects that meet a condition.
    mutating func clear(where isOver: (Suspect) -> Bool) {
        for app in suspects(where: isOver).keys { clear(app) }
    }

    /// Changes a record, and the sets of apps with it.
    private mutating func change(_ app: String, _ change: (inout Record) -> Void) {
        if records[app] == nil, records.count >= AppRecords.mostApps {
            makeRoom()
        }
        changes += 1
        var record = records.removeValue(forKey: app) ?? Record()
        change(&record)
        record.change = changes
        records[app] = record
        note(app)
    }

    /// Puts an app into the sets that its record belongs to, and takes it out of the others.
    private mutating func note(_ app: String) {
        let record = records[app]
        if record?.suspect == nil {
            suspectApps.remove(app)
        } else {
            suspectApps.insert(app)
        }
        if record?.kept ?? 0 == 0 {
            keptApps.remove(app)
        } else {
            keptApps.insert(app)
        }
    }

    /// Forgets the apps of which only a share is known. If that is not enough, the half that changed longest
    /// ago: otherwise a thousand invented names would make the destination forget whose events fail now.
    private mutating func makeRoom() {
        records = records.filter { $1.suspect != nil || $1.kept > 0 }
        guard records.count >= AppRecords.mostApps else { return }
        for (app, _) in records.sorted(by: { $0.value.change < $1.value.change }).prefix(records.count / 2) {
            records[app] = nil
            note(app)
        }
    }

    // MARK: Questions

    var hasSuspects: Bool { !suspectApps.isEmpty }

    /// Whether events of any app were refused and kept.
    var hasKept: Bool { !keptApps.isEmpty }

    func suspect(_ app: String) -> Suspect? { records[app]?.suspect }

    /// The suspects that meet a condition, by app.
    func suspects(where isMeant: (Suspect) -> Bool) -> [String: Suspect] {
        var found: [String: Suspect] = [:]
        for app in suspectApps {
            if let suspect = records[app]?.suspect, isMeant(suspect) {
                found[app] = suspect
            }
        }
        return found
    }

    /// Whether fifty events of an app were refused and kept, and none accepted since.
    func isHopeless(_ app: String?) -> Bool {
        app.flatMap { records[$0] }.map { $0.kept >= AppRecords.hopeless } ?? false
    }

    /// The share of an app's events, or of all (nil or the empty name of an unknown app), that are refused;
    /// nil while too few are known.
    func share(of app: String?) -> Double? {
        guard let app, !app.isEmpty else { return overall.value }
        return records[app]?.share.value
    }
}
