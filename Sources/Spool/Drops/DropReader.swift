internal import Model

/// Reads the content of one drop file in pieces: events of a `.json` file, runs of lines of an archive.
///
/// `DropReader` does no I/O: it asks for bytes, and the reader provides them. The lines that were handed over
/// and the position behind them change together, in `hand`: a commit with lines but without their position
/// would repeat them, and a position without its lines would lose them. Between two turns no part of a block
/// is kept, except an event that was found and not taken.
struct DropReader {
    /// The next step.
    enum Step: Equatable {
        /// Read a block from this offset of the file, and pass it to `next`.
        case read(at: Int64)
        /// Unpack the archive's next part into `archive`, and call `unpacked`.
        case unpack
        /// Hand over lines, or an event, with `hand`.
        case hand
        /// Quarantine a line or event that exceeds the limit.
        case tooLong(Excerpt)
        /// The block is used up. The next block is read in another turn.
        case pause
        /// The text is invalid from this position on.
        case fault(QuarantineRecord.Reason, String)
        /// The text ends too early. The writer may still be writing, so the file gets a second try.
        case endsEarly(String)
        /// The whole file was read.
        case end
    }

    /// The beginning of a line or an event that is too long.
    struct Excerpt: Equatable {
        /// "line" or "event".
        var what: String
        var length: Int64
        var offset: Int64
        var content: [UInt8]
    }

    /// The state of a turn; each turn reads one block.
    private enum Turn {
        case needsBlock
        /// A block was read; `used` counts its bytes that were used.
        case inBlock(used: Int)
        /// The turn has handed over its run; the rest of the file waits for another turn.
        case over
    }

    let format: DropFormat
    /// The position between two events before which everything was taken.
    private(set) var taken: ObjectSplitter.Resumption
    /// Whether the file ended too early before.
    private(set) var isSecondTry = false
    /// The decompressor of an archive, with its output; created by the reader, because that may fail.
    var archive: PackedLines?
    /// Cuts a `.json` file into events.
    private var splitter: ObjectSplitter
    /// Whether the splitter holds an event that was not taken.
    private var isEventWaiting = false
    /// Bytes of whole lines in the archive's output that `hand` offers next.
    private var lineBytes = 0
    private var turn = Turn.needsBlock

    /// - Parameters:
    ///   - longest: the longest event or line in bytes, its LF not counted.
    ///   - place: the position before which everything was taken.
    init(_ format: DropFormat, longest: Int, from position: ObjectSplitter.Resumption) {
        self.format = format
        taken = position
        splitter = ObjectSplitter(longest: longest, from: position)
    }

    /// Bytes of the file that were read; for an archive, compressed bytes.
    var position: Int64 { format == .json ? splitter.position : archive?.inputPosition ?? 0 }

    /// What was read of an archive; nil for a `.json` file.
    var readArchive: ReadArchive? {
        archive.map {
            ReadArchive(
                fingerprint: $0.fingerprint, mark: $0.mark, taken: taken.offset - $0.takenAdditions)
        }
    }

    /// Offset in the file at which the part begins that is quarantined if the rest cannot be read. For an
    /// archive this is 0: a part of a damaged archive could not be unpacked later.
    var restStart: Int64 { format == .json ? taken.offset : 0 }

    /// Bytes held in memory in addition to the block; an estimate for an archive.
    var heldBytes: Int { splitter.event.capacity + (archive == nil ? 0 : 1 << 20) }

    /// Another turn begins, with another block.
    mutating func beginTurn() { turn = .needsBlock }

    /// The next step.
    ///
    /// - Parameters:
    ///   - block: the block that was read in this turn; empty before the first `.read`.
    ///   - isLast: whether the file ends with the block.
    mutating func next(in block: UnsafeRawBufferPointer, isLast: Bool) -> Step {
        format == .json ? nextEvent(in: block, isLast: isLast) : nextLines()
    }

    /// Hands the lines or the event over, and moves the position behind what was taken. False if not all was
    /// taken; the rest is handed over in another turn.
    ///
    /// - Parameter offer: gets the bytes and their offset, and returns how many were taken.
    mutating func hand(_ offer: (UnsafeRawBufferPointer, Int64) -> Int) -> Bool {
        guard format == .json else { return handLines(offer) }
        let offset = splitter.eventOffset
        let isTaken = splitter.event.withUnsafeBytes { offer($0, offset) == $0.count }
        guard isTaken else { return false }
        isEventWaiting = false
        taken = splitter.resumption
        return true
    }

    /// Drops the decompressor and the open event, to read the file a second and last time from the position
    /// that was reached.
    mutating func startOver() {
        archive = nil
        splitter = ObjectSplitter(longest: splitter.longest, from: taken)
        isEventWaiting = false
        isSecondTry = true
    }

    // MARK: Events of a JSON text

    /// The next step for a JSON text.
    private mutating func nextEvent(in block: UnsafeRawBufferPointer, isLast: Bool) -> Step {
        if isEventWaiting { return .hand }
        guard case .inBlock(var used) = turn else {
            turn = .inBlock(used: 0)
            return .read(at: splitter.position)
        }
        let find = splitter.next(block, used: &used)
        turn = .inBlock(used: used)
        guard find == .more else { return step(for: find) }
        guard isLast else { return .pause }
        guard splitter.isComplete else { return .endsEarly(splitter.earlyEnd) }
        // A number outside of an object or list is complete only at the end of the text.
        let last = splitter.finish()
        return last == .more ? .end : step(for: last)
    }

    /// The step that follows a find of the splitter.
    private mutating func step(for find: ObjectSplitter.Find) -> Step {
        switch find {
        case .more: return .pause
        case .event:
            isEventWaiting = true
            return .hand
        case .tooLong(let length):
            taken = splitter.resumption
            return .tooLong(
                Excerpt(what: "event", length: length, offset: splitter.eventOffset, content: splitter.event))
        case .fault(let detail):
            taken = splitter.resumption
            return .fault(.notJSON, detail)
        }
    }

    // MARK: Lines of an archive

    /// More was unpacked.
    mutating func unpacked() {
        turn = .inBlock(used: 0)
        // After a restart or a second try the archive is unpacked from its beginning; skip what was taken
        // before.
        guard let archive, archive.offset < taken.offset else { return }
        archive.skip(Int(min(Int64(archive.unpacked.count), taken.offset - archive.offset)))
        if archive.offset < taken.offset, archive.end == nil {
            turn = .over
        }
    }

    /// The next step for an archive.
    private mutating func nextLines() -> Step {
        guard let archive else { return .unpack }
        switch turn {
        case .needsBlock: return .unpack
        case .over: return .pause
        case .inBlock: break
        }
        switch archive.next() {
        case .more: return .pause
        case .lines(let count):
            lineBytes = count
            return .hand
        case .tooLong(let line):
            tookLines(of: archive)
            return .tooLong(
                Excerpt(what: "line", length: line.length, offset: line.offset, content: line.head))
        case .end(let end):
            guard let (reason, detail) = end.problem else { return .end }
            return end == .cutShort && !isSecondTry ? .endsEarly(detail) : .fault(reason, detail)
        }
    }

    /// Hands over lines of an archive. False if not all were taken.
    private mutating func handLines(_ offer: (UnsafeRawBufferPointer, Int64) -> Int) -> Bool {
        guard let archive else { return true }
        var left = lineBytes
        var isTaken = true
        while isTaken, left > 0 {
            let lines = UnsafeRawBufferPointer(rebasing: archive.lines[..<left])
            // The sink counts the places of lines from that of the first in the bytes that it gets, so
            // lines of another encoding go one by one.
            let count = archive.isPlain ? left : (LineCutter.firstLineFeed(in: lines) ?? left - 1) + 1
            let accepted = offer(UnsafeRawBufferPointer(rebasing: lines[..<count]), archive.offset)
            archive.consume(accepted)
            left -= accepted
            isTaken = accepted == count
        }
        tookLines(of: archive)
        return isTaken
    }

    /// Moves the position behind the lines that were taken, and ends the turn, which takes one run of lines.
    /// Only if the archive ends with this run, it is finished in the same turn, so that a small file needs a
    /// single turn.
    private mutating func tookLines(of archive: PackedLines) {
        taken = .lines(archive.offset)
        if !archive.lines.isEmpty || archive.end == nil {
            turn = .over
        }
    }
}
