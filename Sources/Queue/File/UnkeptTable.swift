internal import Model

/// Bad lines that the quarantine could not hold: rows of table `memory`.
struct UnkeptTable {
    private let file: QueueFile

    init(_ file: QueueFile) { self.file = file }

    /// The lines with the names of their rows: of all files, or of one.
    func lines(of handle: String = "") throws(QueueError) -> [(name: String, lines: UnkeptLines)] {
        // "0" follows "/" in ASCII, so the range covers all names with the prefix.
        try file.statement("SELECT name, value FROM memory WHERE name > ? AND name < ? ORDER BY name").with(
            UnkeptLines.prefix + (handle.isEmpty ? "" : handle + "/"),
            handle.isEmpty ? "unkept0" : UnkeptLines.prefix + handle + "0"
        ).all { ($0.text(0), UnkeptLines($0.bytes(1))) }.compactMap { name, lines in lines.map { (name, $0) }
        }
    }

    /// Path by file handle of the files with bad lines that could not be kept.
    func filesToStay() throws(QueueError) -> [String: String] {
        try lines().reduce(into: [:]) { $0[UnkeptLines.file(ofRow: $1.name)] = $1.lines.path }
    }
}
