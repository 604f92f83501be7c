internal import EventLoops
internal import Glibc
package import Model

/// The content of a queue, read without an agent and without changing any file. `check` uses it to say
/// what a start would find.
public struct StoredQueue: Sendable, Equatable {
    /// Bytes that count toward `queue.max_size`; nil if they cannot be determined.
    public var storedBytes: Int?
    /// Queued deliveries by destination, in the order in which the destinations were first configured.
    public var waiting: [Waiting] = []
    /// Why a start would refuse the file: it belongs to a newer version or another program. Nil if it
    /// would not.
    public var refusal: String?

    /// Whether an older version wrote the file; a start would upgrade it.
    public var isOlder = false

    /// Queued deliveries of one destination.
    public struct Waiting: Sendable, Equatable {
        package let destination: DestinationName
        package let deliveries: Int
    }

    /// Looks into the queue of a state directory.
    ///
    /// Recent changes may be in the WAL only. To read it SQLite needs the WAL's index, which it creates
    /// if it is missing, so only the file's owner may look. No lock is acquired that an agent would run
    /// into.
    ///
    /// - Returns: nil if there is no queue that this user can read, or if another user owns a queue
    ///   whose WAL is not empty.
    /// - Throws: why the file cannot be read; `corrupt` if a start would salvage it.
    public static func look(in stateDirectory: String) throws(QueueError) -> StoredQueue? {
        let path = "\(stateDirectory)/queue.sqlite"
        guard let status = FileStatus(path), access(path, R_OK) == 0 else { return nil }
        let hasWAL = FileStatus(path + "-wal")?.size ?? 0 > 0
        // Another user, such as root, would create a `-shm` file that the agent may not write.
        guard !hasWAL || status.owner == geteuid() else { return nil }
        // `immutable` takes no lock and creates no file: https://www.sqlite.org/uri.html#uriimmutable
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
        // A version number below the newest one, with the newest tables, also means a damaged header.
        if found.refusal != nil || version < Schema.version {
            let columns = try Schema.columns(of: database)
            let isDamaged = try Schema.isDamaged(version: version, application: application, columns)
            if isDamaged { throw QueueError(.corrupt, "\(path) is damaged (its head)") }
        }
        guard found.refusal == nil else { return found }
        found.isOlder = version < Schema.version
        found.storedBytes = try database.integer("SELECT stored_bytes FROM total")
        found.waiting = try database.prepare(
            "SELECT name, sum(queued) FROM ledger JOIN destination ON destination.id = destination GROUP BY "
                + "destination.id"
        ).all { Waiting(destination: DestinationName($0.text(0)), deliveries: $0.integer(1)) }
        return found
    }

    /// A path as part of a `file:` URI: https://www.sqlite.org/uri.html
    private static func escaped(_ path: String) -> String {
        let special: [Unicode.Scalar: String] = ["%": "%25", "?": "%3f", "#": "%23"]
        return path.unicodeScalars.reduce(into: "") { $0 += special[$1] ?? String($1) }
    }
}
