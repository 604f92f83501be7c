internal import Glibc
internal import Model

/// Cuts blocks into runs of whole lines without looking at every line: a run ends at a line feed, and no line in it is
/// longer than the limit. A pure core.
struct LineCutter {
    enum Piece: Equatable {
        /// So many bytes of whole lines, the last ending in LF.
        case lines(Int)
        /// The beginning of a line that is longer than the limit; so many bytes, and whether its LF is the last.
        case tooLong(Int, isWhole: Bool)
        /// So many bytes of a line whose LF has not come.
        case partial(Int)
    }

    /// The longest line in bytes, its LF not counted.
    let longest: Int
    /// What the lines are wrapped in; nil where each is a record.
    var format: LineFormat?
    /// Whether lines of text that follow each other belong together.
    var joinsText = false

    /// The piece at the beginning of a block. The block is not empty.
    func piece(of block: UnsafeRawBufferPointer) -> Piece {
        var end = 0
        // A line feed within each stretch of `longest + 1` bytes after the last one found: no line between is too
        // long. Searching from the stretch's end finds the farthest at once.
        while end < block.count {
            let stretch = UnsafeRawBufferPointer(rebasing: block[end..<min(block.count, end + longest + 1)])
            guard let last = LineCutter.lastLineFeed(in: stretch) else { break }
            end += last + 1
        }
        if end > 0, format != nil || joinsText {
            let lines = UnsafeRawBufferPointer(rebasing: block[..<end])
            let whole = format?.end(ofRecordsIn: lines) ?? LineCutter.start(ofTextEnding: lines)
            // A record that is longer than an event may be goes in parts.
            if whole == 0, block.count <= longest { return .partial(block.count) }
            return .lines(whole > 0 ? whole : end)
        }
        if end > 0 { return .lines(end) }
        guard block.count > longest else { return .partial(block.count) }
        guard let feed = LineCutter.firstLineFeed(in: block) else { return .tooLong(block.count, isWhole: false) }
        return .tooLong(feed + 1, isWhole: true)
    }

    /// Where the lines of text begin that end a block, and of which more may come; its end where there are none, or too many.
    private static func start(ofTextEnding lines: UnsafeRawBufferPointer) -> Int {
        var start = lines.count
        while start > 0, lines.count - start < TextHandling.mostBlockBytes {
            let line = self.start(ofLineEndingAt: start, in: lines)
            if lines[line] == UInt8(ascii: "{") { return start }
            start = line
        }
        return start > 0 ? lines.count : 0
    }

    static func start(ofLineEndingAt end: Int, in lines: UnsafeRawBufferPointer) -> Int {
        (lastLineFeed(in: UnsafeRawBufferPointer(rebasing: lines[..<(end - 1)])) ?? -1) + 1
    }

    static func firstLineFeed(in bytes: UnsafeRawBufferPointer) -> Int? { first(0x0A, in: bytes) }

    static func first(_ byte: Int32, in bytes: UnsafeRawBufferPointer) -> Int? {
        guard let base = bytes.baseAddress, let found = memchr(base, byte, bytes.count) else { return nil }
        return UnsafeRawPointer(found) - base
    }

    static func lastLineFeed(in bytes: UnsafeRawBufferPointer) -> Int? { bytes.lastIndex(of: 0x0A) }
}

extension LineFormat {
    /// Where the last whole record ends in whole lines; 0 if none does.
    func end(ofRecordsIn lines: UnsafeRawBufferPointer) -> Int {
        var end = lines.count
        while end > 0 {
            let start = LineCutter.start(ofLineEndingAt: end, in: lines)
            if isLast(UnsafeRawBufferPointer(rebasing: lines[start..<end])) { return end }
            end = start
        }
        return 0
    }

    /// Where the first whole record ends in whole lines; nil if none does.
    func end(ofFirstRecordIn lines: UnsafeRawBufferPointer) -> Int? {
        var end = 0
        while let feed = LineCutter.firstLineFeed(in: UnsafeRawBufferPointer(rebasing: lines[end...])) {
            let start = end
            end += feed + 1
            if isLast(UnsafeRawBufferPointer(rebasing: lines[start..<end])) { return end }
        }
        return nil
    }

    /// Whether a record ends with this line; also where it is no such line.
    private func isLast(_ line: UnsafeRawBufferPointer) -> Bool {
        switch self {
        case .cri:
            let words = line.prefix(128).split(separator: UInt8(ascii: " "), maxSplits: 3)
            return words.count < 4 || words[2].first != UInt8(ascii: "P")
        case .docker:
            var (index, escaped) = (0, UInt8(0))
            for token in ["{", "\"log\"", ":", "\""] {
                while index < line.count, line[index] == UInt8(ascii: " ") { index += 1 }
                guard line[index...].starts(with: token.utf8) else { return true }
                index += token.utf8.count
            }
            while index + 1 < line.count, line[index] != UInt8(ascii: "\"") {
                escaped = line[index] == UInt8(ascii: "\\") ? line[index + 1] : 0
                index += escaped == 0 ? 1 : 2
            }
            return escaped == UInt8(ascii: "n")
        }
    }
}
