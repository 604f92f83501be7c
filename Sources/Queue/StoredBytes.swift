internal import CSQLite
internal import Glibc

/// Looks into a queue that nobody has open, without touching it.
public enum StoredBytes {
    /// What the queue of a state directory holds, as `queue.max_size` counts it, in bytes.
    ///
    /// - Returns: nil when there is no queue, when it was not closed properly (its last changes lie in the WAL), and when it
    ///   cannot be read: the start will say why.
    public static func of(stateDirectory: String) -> Int? {
        let path = "\(stateDirectory)/queue.sqlite"
        var status = stat()
        if stat(path + "-wal", &status) == 0, status.st_size > 0 { return nil }
        guard access(path, R_OK) == 0 else { return nil }
        // Immutable: no lock is taken, and no file is made beside it, which might belong to the wrong user.
        var name = ""
        for character in path.unicodeScalars {
            switch character {
            case "%": name += "%25"
            case "?": name += "%3f"
            case "#": name += "%23"
            default: name.unicodeScalars.append(character)
            }
        }
        var database: OpaquePointer?
        defer { sqlite3_close(database) }
        guard
            sqlite3_open_v2("file:\(name)?immutable=1", &database, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nil)
                == SQLITE_OK
        else { return nil }
        var statement: OpaquePointer?
        defer { sqlite3_finalize(statement) }
        guard sqlite3_prepare_v2(database, "SELECT stored_bytes FROM total", -1, &statement, nil) == SQLITE_OK,
            sqlite3_step(statement) == SQLITE_ROW
        else { return nil }
        return Int(sqlite3_column_int64(statement, 0))
    }
}
