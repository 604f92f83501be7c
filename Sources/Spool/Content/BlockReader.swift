internal import Model

/// Cuts what was read of an append file into pieces.
///
/// The pieces, one behind the other, are the bytes of the file: none is left out, and none comes twice. No
/// piece ends within a line, unless the line is too long to be an event. Zeros at the end of the file are
/// in no piece, because a program may have made the file longer than what it has written so far (mmap,
/// fallocate).
///
/// The reader decides from the bytes of one block and from the known state of the file's end. It has no
/// state: bytes that a piece does not use are read again with the next block.
struct BlockReader {
    /// The meaning of zeros that begin in a block; finding it out may need reading beyond the block.
    enum Zeros: Equatable {
        /// More zeros than are examined at a time; unknown yet.
        case more
        /// The zeros reach to the end of the file, or may still be filled.
        case end
        /// Content follows at this offset of the file, and the zeros stay.
        case content(Int64)
    }

    /// Facts about the end of the file.
    struct Ending {
        /// Whether no process writes to the file any more, so that a last line without LF is whole.
        var isSealed: Bool
        /// Whether nothing came for so long that a record of several lines is whole.
        var isSilent: Bool
    }

    /// The next piece of a block.
    enum Piece: Equatable {
        /// Hand over whole lines.
        case lines(Int)
        /// Hand over a last line, with the LF that it lacks.
        case lastLine(Int)
        /// A line is too long; its LF is counted.
        case tooLong(Int)
        /// The beginning of a line that is too long. Its end has to be looked for beyond the block.
        case endless(Int)
        /// Zeros up to this offset of the file are passed over.
        case zeros(upTo: Int64)
        /// Bytes at the end that wait for the rest of their line; with `hasLines`, whole lines that may
        /// belong to a record of which more comes; with `holdsText`, silence ends that record.
        case open(Int, hasLines: Bool, holdsText: Bool)
        case nothing
    }

    /// A piece and what may follow it.
    struct Cut: Equatable {
        var piece: Piece
        /// Whether the block has a further piece, once all of this piece was taken.
        var goesOn = false
        /// Whether the file must be read again, because more may be there.
        var mayHaveMore: Bool
    }

    /// The longest line in bytes, its LF not counted.
    let longest: Int
    /// The format that wraps the lines; nil if each line is a record.
    var format: LineWrapper?
    /// Whether lines of text that follow each other belong together.
    var joinsText = false
    /// How a record of several lines begins; nil if each line is a record.
    var recordStart: RecordStart?

    /// Length of the content at the beginning of a block, up to the first zero.
    static func content(of block: UnsafeRawBufferPointer) -> Int {
        LineCutter.first(0, in: block) ?? block.count
    }

    /// Whether the meaning of the zeros behind the content must be known before the block can be cut, because
    /// no line ends before them.
    static func needsZeros(_ block: UnsafeRawBufferPointer, content: Int) -> Bool {
        guard content < block.count else { return false }
        return LineCutter.lastLineFeed(in: UnsafeRawBufferPointer(rebasing: block[..<content])) == nil
    }

    /// The first piece of a block, which is not empty.
    ///
    /// - Parameters:
    ///   - content: its content, as `content(of:)` says.
    ///   - zeros: what follows that content, if `needsZeros` asks for it.
    ///   - isEnd: whether the block reaches to the end of the file.
    func cut(
        _ block: UnsafeRawBufferPointer, content: Int, zeros: Zeros?, isEnd: Bool, _ ending: Ending
    ) -> Cut {
        guard content < block.count else { return last(block, isEnd: isEnd, ending) }
        let before = UnsafeRawBufferPointer(rebasing: block[..<content])
        guard let zeros else {
            let feed = LineCutter.lastLineFeed(in: before)
            assert(feed != nil, "zeros were not asked for")
            return inner(UnsafeRawBufferPointer(rebasing: block[...(feed ?? content)]), ending)
        }
        switch zeros {
        case .more: return Cut(piece: .nothing, mayHaveMore: true)
        case .end:
            // The content ends before the zeros, so it is treated like the end of the file.
            return content > 0 ? last(before, isEnd: true, ending) : Cut(piece: .nothing, mayHaveMore: false)
        case .content(let end):
            if content == 0 { return Cut(piece: .zeros(upTo: end), goesOn: true, mayHaveMore: true) }
            // The zeros are within a line, which is handed over with them.
            guard let feed = LineCutter.firstLineFeed(in: block) else {
                return last(block, isEnd: isEnd, ending)
            }
            return inner(UnsafeRawBufferPointer(rebasing: block[...feed]), ending)
        }
    }

    /// Whole lines within the block.
    private func inner(_ lines: UnsafeRawBufferPointer, _ ending: Ending) -> Cut {
        let cut = last(lines, isEnd: false, ending)
        return Cut(piece: cut.piece, goesOn: cut.piece.length == lines.count, mayHaveMore: true)
    }

    /// The rest of the block.
    private func last(_ block: UnsafeRawBufferPointer, isEnd: Bool, _ ending: Ending) -> Cut {
        let cutter = cutter(for: block, isEnd: isEnd, ending)
        switch cutter.piece(of: block) {
        case .lines(let length):
            return Cut(piece: .lines(length), mayHaveMore: !isEnd || length < block.count)
        case .tooLong(let length, isWhole: true): return Cut(piece: .tooLong(length), mayHaveMore: true)
        case .tooLong(let length, isWhole: false): return Cut(piece: .endless(length), mayHaveMore: true)
        case .partial(let length):
            guard isEnd else { return Cut(piece: .nothing, mayHaveMore: true) }
            guard !ending.isSealed else { return Cut(piece: .lastLine(length), mayHaveMore: false) }
            let hasLines = LineCutter.firstLineFeed(in: block) != nil
            let joins = cutter.joinsText || cutter.recordStart != nil
            return Cut(
                piece: .open(length, hasLines: hasLines, holdsText: joins && hasLines), mayHaveMore: false)
        }
    }

    /// Records are kept together only if more of their lines may follow: in a block that is longer than an
    /// event may be, or at the end of the file. Between two blocks of a file a record is never cut; at the
    /// end silence ends it.
    private func cutter(for block: UnsafeRawBufferPointer, isEnd: Bool, _ ending: Ending) -> LineCutter {
        let mayGrow = block.count > longest || isEnd
        let joins = mayGrow && !ending.isSilent && !ending.isSealed
        return LineCutter(
            longest: longest, format: mayGrow ? format : nil, joinsText: joins && joinsText,
            recordStart: mayGrow && (joins || !isEnd) ? recordStart : nil)
    }
}

extension BlockReader.Piece {
    /// How many bytes of the block are used up once the piece was taken; 0 for zeros, which reach beyond it.
    var length: Int {
        switch self {
        case .lines(let length), .lastLine(let length), .tooLong(let length): length
        case .endless, .zeros, .open, .nothing: 0
        }
    }
}
