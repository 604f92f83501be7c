internal import Model
internal import TextFormats

/// How a container's runtime has wrapped the lines of the file, and which lines were read before their turn.
///
/// A runtime writes a long line of a program in pieces, and lines of the program's other stream may come
/// between them; the same holds for the lines of a record of several lines. The record is made at its first
/// piece, and the other pieces are passed over when the reader comes to them. No commit may come between them
/// (`holdsLines`): after a restart these pieces would be read as lines of their own.
struct Wrapping {
    /// The runtime's format; nil if lines are not wrapped.
    private(set) var format: LineWrapper?
    /// The member `kubernetes` that each record of a CRI file gets; empty for other files.
    private(set) var pod: [UInt8] = []
    /// Most bytes that a record with pieces read before their turn may span; 0 joins no pieces across lines
    /// of the other stream.
    var mostAhead = 64 << 10
    /// Whether `message` or `stream` is looked for. If not, records of plain text need no scan.
    var readsTextMembers = true
    /// Whether a member of the records that the app's format parses is looked for.
    private(set) var readsParsedMembers = true
    /// `readsParsedMembers` of each format that was used since the settings changed.
    var readingFormats: [ObjectIdentifier: Bool] = [:]

    /// Offsets in the block of the lines that were read before their turn.
    private var starts: Set<Int> = []
    /// Beginning of the first record with lines in `starts`. `mostAhead` counts from here, because records
    /// may overlap.
    private var start = 0
    /// Beginning of the last record with lines that were read ahead; nil if there was none.
    private var lastStart: Int?

    /// Offsets in the block of the lines behind the first of records that were not accepted when they were
    /// joined across lines of the other stream. Without them each of these lines would be joined with all
    /// that follow, and refused, again.
    private var refused: Set<Int> = []

    /// Whether lines behind the present one belong to a record that was read.
    var holdsLines: Bool { !starts.isEmpty }

    /// Begins another block, whose offsets mean other lines.
    ///
    /// - Parameter path: the file, whose name contains the pod.
    mutating func begin(_ format: LineWrapper?, path: String, readsParsed: Bool) {
        self.format = format
        pod = format == .cri ? WrappedLine.pod(ofFile: path) : []
        readsParsedMembers = readsParsed
        starts = []
        refused = []
        lastStart = nil
    }

    /// Whether the record that begins at `record`, the last one that was read, has lines that were read
    /// before their turn.
    func hasReadAhead(of record: Int) -> Bool { lastStart == record }

    /// Whether the line at this offset was read early, joined to an earlier piece.
    func holds(_ line: Int) -> Bool { starts.contains(line) }

    /// Whether the line at this offset, which is next in order, was read before. It is then forgotten.
    mutating func passesOver(_ line: Int) -> Bool { holdsLines && starts.remove(line) != nil }

    /// Whether the line at this offset may be joined with others across lines of the other stream.
    func joinsAcross(_ line: Int) -> Bool { mostAhead > 0 && (refused.isEmpty || !refused.contains(line)) }

    /// Whether the record that begins at `record` may have pieces up to an offset.
    func mayHold(upTo end: Int, of record: Int) -> Bool { end - (holdsLines ? start : record) <= mostAhead }

    /// Notes lines that were read with the record that begins at `record`.
    mutating func noteReadAhead(_ lines: [Int], of record: Int) {
        if !holdsLines {
            start = record
        }
        starts.formUnion(lines)
        lastStart = record
    }

    /// Notes the lines of a record that was not accepted, without its first: each is read alone.
    mutating func noteRefused(_ lines: [Int]) { refused.formUnion(lines) }
}

/// One record of a program, joined from wrapped lines: a line, or several of one stream that the app's format
/// joins.
struct WrappedRecord {
    var content: [UInt8] = []
    /// The stream of the pieces; nil until the first one was added.
    private(set) var stream: [UInt8]?
    private(set) var time: [UInt8] = []
    /// Whether the last line continues in another piece.
    private(set) var isPiece = true
    /// The offset after the pieces that follow the first one without a line between them.
    private(set) var next: Int
    /// Offsets of the other pieces.
    private(set) var ahead: [Int] = []
    /// Number of lines of the program.
    private(set) var lines = 1
    /// Whether a piece was left out because no commit may wait that long for the lines before it.
    var isCutShort = false
    /// Offset in `content` at which the last line begins.
    private var lastStart = 0

    init(at start: Int) { next = start }

    /// Adds a piece. The record's time is that of the first one.
    mutating func add(_ line: WrappedLine, at offset: Int) {
        if stream == nil {
            time = line.time
        }
        stream = line.stream
        content += line.text
        isPiece = !line.isLast
        if offset == next {
            next = line.next
        } else {
            ahead.append(offset)
        }
    }

    /// Begins another line of the record.
    mutating func beginLine() {
        content.append(.lineFeed)
        lines += 1
        isPiece = true
        lastStart = content.count
    }

    /// Whether the last line is whole and continues the record, and the record is within the bounds of a
    /// record of several lines.
    ///
    /// - Parameter length: the record before that line.
    func isContinued(after length: Length, by format: TextFormat) -> Bool {
        guard !isPiece, content.count <= TextFormat.mostRecordBytes else { return false }
        return content.withUnsafeBytes {
            !format.begins(
                UnsafeRawBufferPointer(rebasing: $0[lastStart...]),
                after: UnsafeRawBufferPointer(rebasing: $0[length.lastStart..<length.content]))
        }
    }

    /// What `beginLine` and the calls of `add` after it change.
    struct Length {
        fileprivate let content: Int
        fileprivate let next: Int
        fileprivate let ahead: Int
        fileprivate let lastStart: Int
    }

    var length: Length {
        Length(content: content.count, next: next, ahead: ahead.count, lastStart: lastStart)
    }

    /// Removes the last line, because it belongs to another record.
    mutating func cut(to length: Length) {
        content.removeLast(content.count - length.content)
        ahead.removeLast(ahead.count - length.ahead)
        next = length.next
        lastStart = length.lastStart
        lines -= 1
        isPiece = false
    }
}
