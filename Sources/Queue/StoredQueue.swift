internal import EventLoops
internal import Glibc
package import Model

/// The content of a state directory's queue, read without an agent and without changing it.
public struct StoredQueue: Sendable, Equatable {
    /// What the queue holds, as `queue.max_size` counts it, in bytes; nil when it cannot be told.
    public var storedBytes: Int?
    /// The deliveries that wait, by destination, in the order in which the destinations came.
    public var waiting: [Waiting] = []
    /// Why a start would refuse the file for good: a newer version's, or not ours.
    public var refusal: String?

    /// Whether an older version wrote it, which the start then brings up to date.
    public var isOlder = false

    /// What waits for a destination.
    public struct Waiting: Sendable, Equatable {
        package let destination: DestinationName
        package let deliveries: Int
    }

    /// Looks into the queue of a state directory.
    ///
    /// Where the agent runs, or ended in the middle of something, changes are in the WAL: it is read too, which needs
    /// the file's owner. Takes no lock that an agent would meet.
    /// - Returns: nil when there is no queue, or others own it and may read it.
    /// - Throws: why it cannot be read; `corrupt` where a start would save what can be.
    public static func look(in stateDirectory: String) throws(QueueError) -> StoredQueue? {
        let path = "\(stateDirectory)/queue.sqlite"
        guard let status = FileStatus(path), access(path, R_OK) == 0 else { return nil }
        let hasWAL = FileStatus(path + "-wal")?.size ?? 0 > 0
        // Anybody else's look would leave files beside it that the agent may not write.
        guard !hasWAL || status.owner == geteuid() else { return nil }
        // Immutable: no lock is taken, and no file is made beside it.
        let name = "file:\(escaped(path))?\(hasWAL ? "mode=ro" : "immutable=1")"
        return try look(into: Database(path: name, vfs: nil, readOnly: true), path)
    }

    private static func look(into database: Database, _ path: String) throws(QueueError) -> StoredQueue {
        var found = StoredQueue()
        let version = try database.integer("PRAGMA user_version") ?? 0
        let application = try database.integer("PRAGMA application_id") ?? 0
        let tables = try database.integer("SELECT count(*) FROM sqlite_schema")
        guard version != 0 || application != 0 || tables != 0 else { return found }
        found.refusal = Schema.refusal(version: version, application: application, path: path)
        // An older version's number above the newest tables is damaged, too.
        if found.refusal != nil || version < Schema.version {
            let columns = try Schema.columns(of: database)
            let isDamaged = try Schema.isDamaged(version: version, application: application, columns)
            if isDamaged { throw QueueError(.corrupt, "\(path) is damaged (its head)") }
        }
        guard found.refusal == nil else { return found }
        found.isOlder = version < Schema.version
        found.storedBytes = try database.integer("SELECT stored_bytes FROM total")
        found.waiting = try database.prepare(
            "SELECT name, sum(queued) FROM ledger JOIN destination ON destination.id = destination GROUP BY destination.id"
        ).all { Waiting(destination: DestinationName($0.text(0)), deliveries: $0.integer(1)) }
        return found
    }

    private static func escaped(_ path: String) -> String {
        let special: [Unicode.Scalar: String] = ["%": "%25", "?": "%3f", "#": "%23"]
        return path.unicodeScalars.reduce(into: "") { $0 += special[$1] ?? String($1) }
    }
}
