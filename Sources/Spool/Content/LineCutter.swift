internal import Glibc

/// Cuts blocks into runs of whole lines without looking at every line: a run ends at a line feed, and no line in it is
/// longer than the limit. A pure core.
struct LineCutter {
    /// What lies at the beginning of a block.
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
        if end > 0 { return .lines(end) }
        guard block.count > longest else { return .partial(block.count) }
        guard let feed = LineCutter.firstLineFeed(in: block) else { return .tooLong(block.count, isWhole: false) }
        return .tooLong(feed + 1, isWhole: true)
    }

    /// Where the first LF is.
    static func firstLineFeed(in bytes: UnsafeRawBufferPointer) -> Int? {
        guard let base = bytes.baseAddress, let found = memchr(base, 0x0A, bytes.count) else { return nil }
        return UnsafeRawPointer(found) - base
    }

    /// Where the last LF is.
    static func lastLineFeed(in bytes: UnsafeRawBufferPointer) -> Int? {
        var index = bytes.count
        while index > 0 {
            index -= 1
            if bytes[index] == 0x0A { return index }
        }
        return nil
    }
}
