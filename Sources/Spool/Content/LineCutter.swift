internal import Glibc
internal import Model

/// Cuts blocks into runs of whole lines without examining every line: a run ends at a line feed, and no line
/// in it is longer than the limit. A value without I/O.
struct LineCutter {
    /// The beginning of a block, with its length in bytes.
    enum Piece: Equatable {
        /// Whole lines; the last byte is an LF.
        case lines(Int)
        /// A line that exceeds the limit. If `isWhole`, its LF is the last byte; otherwise the line continues
        /// beyond the block.
        case tooLong(Int, isWhole: Bool)
        /// A line, or lines of a record, whose end has not come yet.
        case partial(Int)
    }

    /// The longest line in bytes, its LF not counted.
    let longest: Int
    /// The format that wraps lines and may split a record (CRI, Docker); nil if each line is a record.
    var format: LineWrapper?
    /// Whether consecutive lines of text belong together.
    var joinsText = false
    /// The beginning of a record of several lines, which may still grow; nil if each line is a record.
    var recordStart: RecordStart?

    /// The piece at the beginning of a block. The block is not empty.
    func piece(of block: UnsafeRawBufferPointer) -> Piece {
        var end = 0
        // No line is too long as long as the next `longest + 1` bytes after a line feed contain another one.
        // Searching these bytes backwards finds the last line feed in them at once, and skips the others.
        while end < block.count {
            let stretch = UnsafeRawBufferPointer(rebasing: block[end..<min(block.count, end + longest + 1)])
            guard let last = LineCutter.lastLineFeed(in: stretch) else { break }
            end += last + 1
        }
        if end > 0, format != nil || joinsText || recordStart != nil {
            let lines = UnsafeRawBufferPointer(rebasing: block[..<end])
            let whole = self.end(ofRecordsIn: lines)
            // A record that exceeds the limit is handed over in parts; otherwise it would never be handed
            // over.
            if whole == 0, block.count <= longest { return .partial(block.count) }
            return .lines(whole > 0 ? whole : end)
        }
        if end > 0 { return .lines(end) }
        guard block.count > longest else { return .partial(block.count) }
        guard let feed = LineCutter.firstLineFeed(in: block) else {
            return .tooLong(block.count, isWhole: false)
        }
        return .tooLong(feed + 1, isWhole: true)
    }

    /// The last position in whole lines at which no record may go on; 0 if one may go on everywhere.
    private func end(ofRecordsIn lines: UnsafeRawBufferPointer) -> Int {
        guard let recordStart else {
            return format?.end(ofRecordsIn: lines) ?? LineCutter.start(ofTextEnding: lines)
        }
        guard let format else { return LineCutter.start(ofRecordEnding: lines, recordStart) }
        return WrappedRecords(lines, in: format, beginning: recordStart).end
    }

    /// The offset of the trailing lines of text, of which more may come; the end of the lines if there are
    /// none or too many.
    private static func start(ofTextEnding lines: UnsafeRawBufferPointer) -> Int {
        var start = lines.count
        while start > 0, lines.count - start < TextHandling.mostBlockBytes {
            let line = self.start(ofLineEndingAt: start, in: lines)
            if lines[line] == UInt8(ascii: "{") { return start }
            start = line
        }
        return start > 0 ? lines.count : 0
    }

    /// The offset of the last record, of which more may come; the end of the lines if the record has too many
    /// bytes or lines to wait for more.
    private static func start(ofRecordEnding lines: UnsafeRawBufferPointer, _ start: RecordStart) -> Int {
        var end = lines.count
        var count = 0
        while end > 0, lines.count - end < RecordStart.mostBytes, count < RecordStart.mostLines {
            let lineStart = self.start(ofLineEndingAt: end, in: lines)
            let before = lineStart > 0 ? self.start(ofLineEndingAt: lineStart, in: lines) : 0
            let line = UnsafeRawBufferPointer(rebasing: lines[lineStart..<(end - 1)])
            let previous = UnsafeRawBufferPointer(rebasing: lines[before..<max(lineStart - 1, before)])
            if start.begins(line, after: previous) { return lineStart }
            end = lineStart
            count += 1
        }
        return end > 0 ? lines.count : 0
    }

    /// The offset of the line whose LF is right before `end`.
    static func start(ofLineEndingAt end: Int, in lines: UnsafeRawBufferPointer) -> Int {
        (lastLineFeed(in: UnsafeRawBufferPointer(rebasing: lines[..<(end - 1)])) ?? -1) + 1
    }

    static func firstLineFeed(in bytes: UnsafeRawBufferPointer) -> Int? { first(0x0A, in: bytes) }

    /// Offset of the first occurrence of a byte, by memchr(3), which is faster than a loop.
    static func first(_ byte: Int32, in bytes: UnsafeRawBufferPointer) -> Int? {
        guard let base = bytes.baseAddress, let found = memchr(base, byte, bytes.count) else { return nil }
        return UnsafeRawPointer(found) - base
    }

    static func lastLineFeed(in bytes: UnsafeRawBufferPointer) -> Int? { bytes.lastIndex(of: 0x0A) }
}

extension LineWrapper {
    /// The last position in whole lines at which no record is open; 0 if a record is open everywhere.
    func end(ofRecordsIn lines: UnsafeRawBufferPointer) -> Int {
        var found = 0
        walkOpen(lines) { end, isOpen in
            if !isOpen {
                found = end
            }
            return true
        }
        return found
    }

    /// The first position at which no record is open; nil if a record is open everywhere.
    func end(ofFirstRecordIn lines: UnsafeRawBufferPointer) -> Int? {
        var found: Int?
        walkOpen(lines) { end, isOpen in
            if !isOpen {
                found = end
            }
            return isOpen
        }
        return found
    }

    /// Calls `body` after each line with the line's end, and whether a record is open there. Stops when
    /// `body` returns false.
    private func walkOpen(_ lines: UnsafeRawBufferPointer, _ body: (_ end: Int, _ isOpen: Bool) -> Bool) {
        // For stdout and stderr: lines of the other stream since the last piece of an open record; nil if no
        // record is open. The two streams of a container are interleaved line by line.
        var open: (out: Int?, err: Int?)
        walk(lines) { line, piece in
            if let piece {
                let other = (piece.isError ? open.out : open.err).map { $0 + 1 }
                let left = other ?? 0 > LineWrapper.mostLinesBetweenPieces ? nil : other
                let own = piece.isLast ? nil : Optional(0)
                open = piece.isError ? (left, own) : (own, left)
            } else {
                open = (nil, nil)
            }
            return body(line.upperBound, open.out != nil || open.err != nil)
        }
    }
}
