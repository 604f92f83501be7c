internal import CSQLite
internal import Glibc
public import Model

/// What lies in a state directory's queue, read without an agent and without changing it.
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
        /// The destination's name.
        public let destination: DestinationName
        /// How many deliveries wait.
        public let deliveries: Int
    }

    /// Looks into the queue of a state directory.
    ///
    /// Where the agent runs, or ended in the middle of something, changes lie in the WAL: it is read as well, which needs
    /// the file's owner. Takes no lock that an agent would meet.
    /// - Returns: nil when there is no queue, or it cannot be read: the start will say why.
    public static func look(in stateDirectory: String) -> StoredQueue? {
        let path = "\(stateDirectory)/queue.sqlite"
        var status = stat()
        guard stat(path, &status) == 0, access(path, R_OK) == 0 else { return nil }
        let owner = status.st_uid
        // bounded: compared only.
        let hasWAL = stat(path + "-wal", &status) == 0 && status.st_size > 0
        // Anybody else's look would leave files beside it that the agent may not write.
        guard !hasWAL || owner == geteuid() else { return nil }
        var database: OpaquePointer?
        defer { sqlite3_close(database) }
        // Immutable: no lock is taken, and no file is made beside it.
        let name = "file:\(escaped(path))?\(hasWAL ? "mode=ro" : "immutable=1")"
        guard sqlite3_open_v2(name, &database, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nil) == SQLITE_OK else {
            return nil
        }
        var found = StoredQueue()
        var version = 0
        var application = 0
        guard rows(database, "PRAGMA user_version", { version = Int(sqlite3_column_int64($0, 0)) }),
            rows(database, "PRAGMA application_id", { application = Int(sqlite3_column_int64($0, 0)) })
        else { return nil }
        var tables = 0
        _ = rows(database, "SELECT count(*) FROM sqlite_schema") { tables = Int(sqlite3_column_int64($0, 0)) }
        guard version != 0 || application != 0 || tables != 0 else { return found }
        found.refusal = Schema.refusal(version: version, application: application, path: path)
        guard found.refusal == nil else {
            var columns: [String] = []
            _ = rows(database, Schema.columnsQuery) { row in
                if let text = sqlite3_column_text(row, 0) { columns.append(String(cString: text)) }
            }
            // The start saves what is in such a file.
            let isDamaged = try? Schema.isDamaged(version: version, application: application, columns)
            return isDamaged == true ? nil : found
        }
        found.isOlder = version < Schema.version
        _ = rows(database, "SELECT stored_bytes FROM total") { found.storedBytes = Int(sqlite3_column_int64($0, 0)) }
        _ = rows(
            database,
            "SELECT name, sum(queued) FROM ledger JOIN destination ON destination.id = destination GROUP BY destination.id"
        ) { row in
            guard let text = sqlite3_column_text(row, 0) else { return }
            let deliveries = Int(sqlite3_column_int64(row, 1))
            found.waiting.append(Waiting(destination: DestinationName(String(cString: text)), deliveries: deliveries))
        }
        return found
    }

    private static func rows(_ database: OpaquePointer?, _ sql: String, _ body: (OpaquePointer?) -> Void) -> Bool {
        var statement: OpaquePointer?
        defer { sqlite3_finalize(statement) }
        guard sqlite3_prepare_v2(database, sql, -1, &statement, nil) == SQLITE_OK else { return false }
        while true {
            switch sqlite3_step(statement) {
            case SQLITE_ROW: body(statement)
            case SQLITE_DONE: return true
            default: return false
            }
        }
    }

    private static func escaped(_ path: String) -> String {
        var name = ""
        for character in path.unicodeScalars {
            switch character {
            case "%": name += "%25"
            case "?": name += "%3f"
            case "#": name += "%23"
            default: name.unicodeScalars.append(character)
            }
        }
        return name
    }
}
