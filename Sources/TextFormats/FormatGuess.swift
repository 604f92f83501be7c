/// The built-in format that lines look like, as a hint of `check` for an app whose lines are not JSON.
public struct FormatGuess: Sendable, Equatable {
    /// Name of the format.
    public let name: String
    /// Number of records that were parsed by it.
    public let matched: Int
    /// Number of records that were tried.
    public let records: Int

    /// Most lines that are tried, so that a guess about a large file is quick.
    public static let mostLines = 1000

    /// Guesses the format of some lines.
    ///
    /// - Parameter bytes: lines with line feeds between them; only the first 1000 are tried.
    /// - Returns: the format that parses most records, and among equals the one that finds most times, then
    ///   most members; nil if no format parses at least four in five of its records.
    public static func of(_ bytes: UnsafeRawBufferPointer) -> FormatGuess? {
        var best: (guess: FormatGuess, times: Int, members: Int)?
        for row in FormatTable.rows {
            guard let (guess, times, members) = attempt(row, bytes), guess.matched * 5 >= guess.records * 4
            else { continue }
            // More records parsed is better: a format that joins lines finds fewer records in lines that
            // another format reads one by one. A time is worth more than any members: logfmt finds a pair in
            // nearly every line, and would be guessed for auditd's log and for Dovecot's.
            let isBetter = best.map {
                (guess.matched, times, members) > ($0.guess.matched, $0.times, $0.members)
            }
            if isBetter ?? true {
                best = (guess, times, members)
            }
        }
        return best?.guess
    }

    /// Reads the lines by one format; nil if it fits too badly to be compared.
    ///
    /// The members are counted by `":` in the written objects, which a quoted text cannot contain unescaped.
    private static func attempt(
        _ row: FormatTable.Row, _ bytes: UnsafeRawBufferPointer
    ) -> (guess: FormatGuess, times: Int, members: Int)? {
        var settings = TextFormatSettings()
        settings.parse = row.name
        guard let format = try? TextFormat(settings) else {
            preconditionFailure("the built-in format \(row.name) does not compile")
        }
        var writer = RecordWriter()
        var matched = 0
        var records = 0
        var times = 0
        var members = 0
        var count = 0
        // Counts a record, and its members if the format parses it. Lines before the first beginning are a
        // record that the format does not know, even if it could parse them: it would never begin a second
        // one.
        func read(_ record: UnsafeRawBufferPointer, _ writer: inout RecordWriter) {
            records += 1
            let first = UnsafeRawBufferPointer(rebasing: record.prefix { $0 != 0x0A })
            guard record.count > 0, !format.joinsLines || format.begins(first, after: piece(0..<0)),
                format.parse(record, readable: record.count, into: &writer) == nil
            else { return }
            matched += 1
            times += writer.timestamp.isEmpty ? 0 : 1
            let bytes = writer.bytes
            members += bytes.indices.dropLast().count {
                bytes[$0] == UInt8(ascii: "\"") && bytes[$0 + 1] == UInt8(ascii: ":")
            }
        }
        func piece(_ range: Range<Int>) -> UnsafeRawBufferPointer {
            UnsafeRawBufferPointer(rebasing: bytes[range])
        }
        // Frame records as the reader of files does, without its bounds: the lines are few.
        var start: Int?
        var position = 0
        var previous = 0..<0
        while position < bytes.count, count < mostLines {
            let feed = bytes[position...].firstIndex(of: 0x0A) ?? bytes.count
            let line = position..<feed
            let isStart = !format.joinsLines || format.begins(piece(line), after: piece(previous))
            if isStart || start == nil {
                if let start {
                    read(piece(start..<max(start, position - 1)), &writer)
                }
                start = position
            }
            previous = line
            position = feed + 1
            count += 1
        }
        if let start {
            read(piece(start..<max(start, min(position - 1, bytes.count))), &writer)
        }
        // If fewer than one line in 20 begins a record, the format has joined nearly everything, which says
        // nothing.
        guard matched > 0, records * 20 >= count else { return nil }
        return (FormatGuess(name: row.name, matched: matched, records: records), times, members)
    }
}
