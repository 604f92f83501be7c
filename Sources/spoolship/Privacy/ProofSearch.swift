internal import CSQLite
internal import Containers
internal import EventLoops
internal import Glibc

/// The search through what the proof's agent has written, and through what was sent, for the marker.
struct ProofSearch {
    /// The directory of the proof. Names of files are relative to it.
    let directory: String
    /// The text that is searched for.
    let marker: String
    /// The text that shows where events have been.
    let control: String

    /// The largest file that is searched, in bytes.
    private static let mostBytes = 1 << 28

    /// The bytes of a file of the proof; empty if it does not exist or is too large.
    func contents(_ file: String) -> [UInt8] {
        (try? WholeFile.bytes(of: "\(directory)/\(file)", atMost: ProofSearch.mostBytes)) ?? []
    }

    /// Counts the marker and the control in a file of the proof; or `text`, if there is one, instead of the
    /// marker.
    func searched(file: String, _ name: String, for text: String? = nil) -> ProofPlace {
        // One read decides both what is found and whether the file was searched: a second look, such as
        // stat(2), could see another file.
        let bytes: [UInt8]?
        do throws(SystemError) {
            bytes = try WholeFile.bytes(of: "\(directory)/\(file)", atMost: ProofSearch.mostBytes)
        } catch {
            // A file that does not exist has nothing. Any other may have the marker.
            bytes = error.number == ENOENT ? [] : nil
        }
        var place = searched(bytes ?? [], name, for: text)
        place.isSearched = bytes != nil
        return place
    }

    /// Counts the same in some bytes.
    func searched(_ bytes: [UInt8], _ name: String, for text: String? = nil) -> ProofPlace {
        ProofPlace(
            name: name, found: ProofSearch.mentions(of: text ?? marker, in: bytes),
            controls: ProofSearch.count(control, in: bytes))
    }

    /// How often a text occurs in bytes, also where it is spelled with escapes.
    static func mentions(of text: String, in bytes: [UInt8]) -> Int {
        SpelledText.decodings(of: bytes).map { count(text, in: $0) }.max() ?? 0
    }

    /// Counts in all files of a directory and of those below it. Sockets have no content.
    func files(_ folder: String, as name: String) -> ProofPlace {
        guard let names = try? WholeFile.names(in: "\(directory)/\(folder)") else {
            return ProofPlace(name: name, isSearched: false)
        }
        return names.map { file in
            let path = "\(folder)/\(file)"
            let status = FileStatus(link: "\(directory)/\(path)")
            if status?.isSocket == true { return ProofPlace(name: name) }
            return status?.isDirectory == true ? files(path, as: name) : searched(file: path, name)
        }
        .reduce(ProofPlace(name: name), +)
    }

    /// Whether a table of the queue has a row. Reading all of them would take seconds each time.
    func hasRows(_ table: String) -> Bool {
        var database: OpaquePointer?
        defer { sqlite3_close(database) }
        let file = "\(directory)/state/queue.sqlite"
        guard sqlite3_open_v2(file, &database, SQLITE_OPEN_READONLY, nil) == SQLITE_OK else { return false }
        var statement: OpaquePointer?
        defer { sqlite3_finalize(statement) }
        let query = "SELECT 1 FROM \(table) LIMIT 1"
        return sqlite3_prepare_v2(database, query, -1, &statement, nil) == SQLITE_OK
            && sqlite3_step(statement) == SQLITE_ROW
    }

    /// The rows of the queue's tables. The file is searched, too, but a page can end within a value, so that
    /// a value in two pages would not be found there.
    func tables() -> [ProofPlace] {
        var database: OpaquePointer?
        defer { sqlite3_close(database) }
        let file = "\(directory)/state/queue.sqlite"
        guard sqlite3_open_v2(file, &database, SQLITE_OPEN_READONLY, nil) == SQLITE_OK else {
            return [ProofPlace(name: "tables of the queue", isSearched: false)]
        }
        // Without it a moment in which the agent has the file for itself would be an error.
        sqlite3_busy_timeout(database, 10_000)
        // A place also without rows: some lines of the proof are too long in any configuration.
        var quarantine =
            rows(of: "quarantine", in: database, as: "quarantine") ?? ProofPlace(name: "quarantine")
        quarantine.kind = .lines
        return [
            rows(of: "chunk", in: database, as: "queue"),
            rows(of: "dead_letter", in: database, as: "dead letters"), quarantine,
            rows(of: "memory", in: database, as: "data layer"),
        ].compactMap { $0 }
    }

    /// The rows of a table; nil if it has none, or does not exist yet.
    private func rows(of table: String, in database: OpaquePointer?, as name: String) -> ProofPlace? {
        var statement: OpaquePointer?
        defer { sqlite3_finalize(statement) }
        let found = sqlite3_prepare_v2(database, "SELECT * FROM \(table)", -1, &statement, nil)
        // The code for a table that does not exist.
        guard found != SQLITE_ERROR else { return nil }
        var place: ProofPlace?
        var step = found
        if found == SQLITE_OK {
            step = sqlite3_step(statement)
        }
        while step == SQLITE_ROW {
            place = (place ?? ProofPlace(name: name)) + ProofPlace(name: name, rows: 1)
            for column in 0..<sqlite3_column_count(statement) {
                let bytes = UnsafeRawBufferPointer(
                    start: sqlite3_column_blob(statement, column),
                    count: Int(sqlite3_column_bytes(statement, column)))
                place = (place ?? ProofPlace(name: name)) + searched(Array(bytes), name)
            }
            step = sqlite3_step(statement)
        }
        // Any other end is an error, and the rest was not read.
        guard step != SQLITE_DONE else { return place }
        return (place ?? ProofPlace(name: name)) + ProofPlace(name: name, isSearched: false)
    }

    /// How often a text occurs in bytes, overlapping occurrences included.
    static func count(_ text: String, in bytes: [UInt8]) -> Int {
        let part = Array(text.utf8)
        var count = 0
        var start = 0
        while let offset = offset(of: part, in: bytes, from: start) {
            count += 1
            start = offset + 1
        }
        return count
    }

    /// The offset at which some bytes first occur in others from `start` on; nil if they do not.
    static func offset(of part: [UInt8], in bytes: [UInt8], from start: Int = 0) -> Int? {
        bytes.withUnsafeBytes { all in
            guard let base = all.baseAddress else { return nil }
            var offset = start
            while offset + part.count <= all.count,
                let found = memchr(base + offset, Int32(part[0]), all.count - part.count - offset + 1)
            {
                offset = UnsafeRawPointer(found) - base
                if memcmp(found, part, part.count) == 0 { return offset }
                offset += 1
            }
            return nil
        }
    }
}
