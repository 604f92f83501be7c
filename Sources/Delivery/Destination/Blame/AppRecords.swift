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
    }

    /// Most apps that are remembered. Senders can invent any number of app names.
    private static let mostApps = 1000
    /// Kept events of an app after which nothing of it is expected to be accepted.
    private static let hopeless = 50

    private var records: [String: Record] = [:]
    /// Number of records with a suspect. It is asked for with each batch.
    private var suspectCount = 0
    /// Number of records with kept events.
    private var keptCount = 0
    /// The share of refused events of all apps.
    private var overall = RefusalShare()

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
        guard keptCount > 0 else { return }
        changeAll(app) { $0.kept = 0 }
    }

    /// No event of an app, or of any (nil), fails any more.
    mutating func clear(_ app: String?) {
        guard suspectCount > 0 else { return }
        changeAll(app) { $0.suspect = nil }
    }

    /// Clears the suspects that meet a condition.
    mutating func clear(where isOver: (Suspect) -> Bool) {
        guard suspectCount > 0 else { return }
        for (app, record) in records {
            if let suspect = record.suspect, isOver(suspect) {
                change(app) { $0.suspect = nil }
            }
        }
    }

    private mutating func changeAll(_ app: String?, _ change: (inout Record) -> Void) {
        for name in app.map({ [$0] }) ?? Array(records.keys) where records[name] != nil {
            self.change(name, change)
        }
    }

    /// Changes a record and the totals with it.
    private mutating func change(_ app: String, _ change: (inout Record) -> Void) {
        if records[app] == nil, records.count >= AppRecords.mostApps {
            makeRoom()
        }
        var record = records.removeValue(forKey: app) ?? Record()
        count(record, -1)
        change(&record)
        records[app] = record
        count(record, 1)
    }

    private mutating func count(_ record: Record, _ sign: Int) {
        suspectCount += record.suspect == nil ? 0 : sign
        keptCount += record.kept == 0 ? 0 : sign
    }

    /// Forgets the apps of which only a share is known, and all if that is not enough.
    private mutating func makeRoom() {
        records = records.filter { $1.suspect != nil || $1.kept > 0 }
        guard records.count >= AppRecords.mostApps else { return }
        records = [:]
        suspectCount = 0
        keptCount = 0
    }

    // MARK: Questions

    var hasSuspects: Bool { suspectCount > 0 }

    /// Whether events of any app were refused and kept.
    var hasKept: Bool { keptCount > 0 }

    func suspect(_ app: String) -> Suspect? { records[app]?.suspect }

    /// The suspects that meet a condition, by app.
    func suspects(where isMeant: (Suspect) -> Bool) -> [String: Suspect] {
        guard suspectCount > 0 else { return [:] }
        return records.compactMapValues { record in record.suspect.flatMap { isMeant($0) ? $0 : nil } }
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
