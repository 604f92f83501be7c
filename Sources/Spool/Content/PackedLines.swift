internal import EventLoops
internal import Frames
internal import Model

/// Unpacks a drop file block by block, in bounded memory, and keeps the lines that were not taken yet.
final class PackedLines {
    enum End: Equatable {
        /// With the last byte of the file.
        case whole
        /// The file ends in the middle of a frame.
        case cutShort
        /// The bytes are no such archive, or a damaged one.
        case broken(String)

        /// Why what is left goes to the quarantine, and what exactly; nil for a whole file.
        var problem: (reason: QuarantineRecord.Reason, detail: String)? {
            switch self {
            case .whole: nil
            case .cutShort: (.cutShort, "the archive ends too early")
            case .broken(let detail): (.badArchive, detail)
            }
        }
    }

    enum Piece {
        /// So many bytes of whole lines: the first of `lines`, to be taken.
        case lines(Int)
        case tooLong(Rest)
        /// Nothing, until more was unpacked.
        case more
        /// Nothing more; of a file that ends badly `rest` is left.
        case end(End)
    }

    /// Bytes that are no line for anybody.
    struct Rest {
        var offset: Int64
        var length: Int64
        /// The first of them, at most `ObjectSplitter.excerpt`.
        var head: [UInt8]
    }

    private static let inputSize = 64 << 10

    private let longest: Int
    private let decompressor: StreamDecompressor
    private let storage: UnsafeMutableRawBufferPointer
    private var input: [UInt8] = []
    private var inputStart = 0
    /// How many bytes of the file were read.
    private(set) var position: Int64 = 0
    /// What they sum up to (`crc32c`), where that is asked for; nil where it is not.
    var sum: UInt32?
    private var isAtBoundary = false
    private var start = 0
    private var count = 0

    /// Where the first byte of `lines` is in the unpacked file.
    private(set) var offset: Int64 = 0
    /// Set once nothing more comes.
    private(set) var end: End?
    /// A line that is too long, as far as it was taken.
    private var skipped: Rest?

    /// - Parameter longest: the longest line, its LF not counted.
    init(_ compression: Compression, longest: Int) throws(FrameError) {
        self.longest = longest
        decompressor = try StreamDecompressor(compression)
        storage = .allocate(byteCount: max(256 << 10, longest + 2), alignment: 16)
    }

    deinit { storage.deallocate() }

    /// What was unpacked and not taken.
    var lines: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: storage[start..<(start + count)]) }

    /// How many bytes of the file were unpacked.
    var inputPosition: Int64 { position - Int64(input.count - inputStart) }

    func take(_ taken: Int) {
        start += taken
        count -= taken
        offset += Int64(taken)
    }

    /// What comes next of what was unpacked.
    ///
    /// - Parameters:
    ///   - limit: how many bytes of lines there may be; a single line, or record, may have more.
    ///   - format: what the lines are wrapped in: a record of several is not cut, unless it is longer than a line may be.
    func next(atMost limit: Int = .max, in format: LineFormat? = nil) -> Piece {
        let feed = LineCutter.firstLineFeed(in: lines)
        if skipped == nil {
            let most = UnsafeRawBufferPointer(rebasing: lines.prefix(max(limit, 1)))
            var cutter = LineCutter(longest: longest, format: format)
            if case .lines(let count) = cutter.piece(of: most) { return .lines(count) }
            if let format, feed ?? .max <= longest {
                if let count = format.end(ofFirstRecordIn: lines), count <= longest { return .lines(count) }
                if end == nil, count <= longest { return .more }
                cutter.format = nil
                if case .lines(let count) = cutter.piece(of: most) { return .lines(count) }
            }
            if let feed, feed <= longest { return .lines(feed + 1) }
            if feed == nil, count <= longest {
                guard let end else { return .more }
                guard end == .whole, count > 0 else { return .end(end) }
                seal()
                return .lines(count)
            }
            skipped = Rest(
                offset: offset, length: 0, head: Array(lines.prefix(min(feed ?? count, ObjectSplitter.excerpt))))
        }
        skipped?.length += Int64(feed ?? count)
        take(feed.map { $0 + 1 } ?? count)
        guard feed != nil || end == .whole, let line = skipped else { return end.map { Piece.end($0) } ?? .more }
        skipped = nil
        return .tooLong(line)
    }

    /// What is left of a file that ends badly.
    var rest: Rest {
        skipped ?? Rest(offset: offset, length: Int64(count), head: Array(lines.prefix(ObjectSplitter.excerpt)))
    }

    private func seal() {
        if start + count == storage.count { moveToFront() }
        guard count < storage.count else { return }
        storage[start + count] = 0x0A
        count += 1
    }

    /// Unpacks until the buffer is full, the file ends, or so many bytes of the file were unpacked: there are archives of
    /// any length that hold nothing.
    func fill(from descriptor: Int32, atMost limit: Int64 = .max / 2) throws(SystemError) {
        moveToFront()
        let last = inputPosition + limit
        // One byte stays free, for the LF that the last line may lack.
        while end == nil, count < storage.count - 1, inputPosition < last {
            if inputStart == input.count {
                input = try FileSystem.bytes(of: descriptor, at: position, count: PackedLines.inputSize)
                inputStart = 0
                position += Int64(input.count)
                sum = sum.map { sum in input.withUnsafeBytes { crc32c($0, from: sum) } }
            }
            let output = UnsafeMutableRawBufferPointer(rebasing: storage[count..<(storage.count - 1)])
            do throws(FrameError) {
                let step = try input.withUnsafeBufferPointer { bytes throws(FrameError) in
                    try decompressor.step(
                        UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: bytes[inputStart...])), into: output)
                }
                inputStart += step.consumed
                count += step.produced
                isAtBoundary = step.isAtBoundary
                // With nothing to unpack and nothing left inside, the file has ended.
                if input.isEmpty, step.produced == 0 { end = isAtBoundary ? .whole : .cutShort }
                if !input.isEmpty, step.consumed == 0, step.produced == 0, inputStart < input.count {
                    end = .broken("unpacking does not progress")
                }
            } catch {
                end = .broken(error.message)
            }
        }
    }

    private func moveToFront() {
        guard start > 0 else { return }
        storage.copyMemory(from: lines)
        start = 0
    }
}
