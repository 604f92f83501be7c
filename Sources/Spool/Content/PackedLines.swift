internal import EventLoops
internal import Frames
internal import Model

/// What is remembered of the packed bytes that were read, in the order of the file.
private struct PackedBytes {
    private(set) var count: Int64 = 0
    private(set) var fingerprint = Fingerprint.empty
    /// The last bytes, as many as a mark covers.
    private var end: [UInt8] = []
    /// CRC-32C of all bytes; nil if it is not wanted.
    var sum: UInt32?

    var mark: Mark { Mark(offset: count, hash: end.withUnsafeBytes { ByteHash.of($0) }) }

    mutating func append(_ bytes: [UInt8]) {
        if count == 0 {
            let head = bytes.prefix(Fingerprint.longest)
            fingerprint = Fingerprint(length: head.count, hash: head.withUnsafeBytes { ByteHash.of($0) })
        }
        count += Int64(bytes.count)
        end = Array((end + bytes.suffix(Mark.window)).suffix(Mark.window))
        sum = sum.map { sum in bytes.withUnsafeBytes { crc32c($0, from: sum) } }
    }
}

/// Unpacks a compressed file block by block, in bounded memory, and holds the lines that were not taken yet.
/// Also reads uncompressed files (`Compression.none`).
final class PackedLines {
    /// How the content ends.
    enum End: Equatable {
        /// The file ended at the end of a frame.
        case whole
        /// The file ends in the middle of a frame.
        case cutShort
        /// The file has another format or is damaged.
        case broken(String)

        /// Reason and detail with which the rest is quarantined; nil for a whole file.
        var problem: (reason: QuarantineRecord.Reason, detail: String)? {
            switch self {
            case .whole: nil
            case .cutShort: (.cutShort, "the archive ends too early")
            case .broken(let detail): (.badArchive, detail)
            }
        }
    }

    /// The next part of the content.
    enum Piece {
        /// Whole lines: the first bytes of `lines`, which the caller is to `take`.
        case lines(Int)
        /// A line that exceeds the limit; it was taken already.
        case tooLong(Rest)
        /// No whole line; more must be unpacked.
        case more
        /// The end; if the file is damaged, `rest` has the bytes that are left.
        case end(End)
    }

    /// Bytes that are not handed over as lines, but quarantined.
    struct Rest {
        var offset: Int64
        var length: Int64
        /// The first of them, at most `ObjectSplitter.excerpt`.
        var head: [UInt8]
    }

    /// Bytes of the file that are read at a time.
    private static let inputSize = 64 << 10

    /// The longest line in bytes, without its LF.
    private let longest: Int
    private let decompressor: StreamDecompressor
    /// The buffer for unpacked bytes: room for a line of the longest length and its LF.
    private var storage: UnsafeMutableRawBufferPointer
    /// How the content is decoded; nil if its bytes are always handed over as they are.
    private var decoding: Decoding?
    /// Bytes of the file that were read last.
    private var input: [UInt8] = []
    /// Offset in `input` of the first byte that was not unpacked.
    private var inputStart = 0
    /// What was read of the file so far.
    private var packed = PackedBytes()
    /// Whether the unpacked bytes end at the end of a frame, where a file may end.
    private var isAtBoundary = false
    /// Whether an LF was added after a last line without one.
    private var isSealed = false
    /// Offset and count of the bytes in `storage` that were not taken.
    private var start = 0
    private var count = 0

    /// Offset of the first byte of `lines` in the unpacked content.
    private(set) var offset: Int64 = 0
    /// How the content ends; nil until everything was unpacked.
    private(set) var end: End?
    /// An oversized line of which the beginning was taken.
    private var skipped: Rest?

    /// - Parameter longest: the longest line, its LF not counted.
    init(_ compression: Compression, longest: Int) throws(FrameError) {
        self.longest = longest
        decompressor = try StreamDecompressor(compression)
        storage = .allocate(byteCount: max(256 << 10, longest + 2), alignment: 16)
    }

    deinit { storage.deallocate() }

    /// How a content is decoded that may have another encoding than UTF-8.
    private struct Decoding {
        /// The encoding that is set.
        let encoding: FileEncoding?
        /// The encoding that the first bytes show.
        var script = FileScript.unknown
        /// The text of the unpacked bytes that were not taken; nil for UTF-8.
        var block: DecodedBlock?
    }

    /// Has the content decoded: `lines` is UTF-8 then, while `offset` counts the content's own bytes. To be
    /// called before the first piece.
    func decode(by encoding: FileEncoding?) { decoding = Decoding(encoding: encoding) }

    /// The bytes that were unpacked and not taken.
    var unpacked: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: storage[start..<(start + count)])
    }

    /// The same as UTF-8.
    var lines: UnsafeRawBufferPointer { decoding?.block?.text ?? unpacked }

    /// Whether `lines` has the content's own bytes.
    var isPlain: Bool { decoding?.block == nil }

    /// Bytes of the file that were read.
    var position: Int64 { packed.count }

    /// CRC-32C of these bytes; nil unless the owner has set an initial value.
    var sum: UInt32? {
        get { packed.sum }
        set { packed.sum = newValue }
    }

    /// Fingerprint of the first unpacked bytes.
    var fingerprint: Fingerprint { packed.fingerprint }

    /// The mark at the end of the bytes that were read.
    var mark: Mark { packed.mark }

    /// Bytes of the file that were unpacked.
    var inputPosition: Int64 { position - Int64(input.count - inputStart) }

    /// Removes bytes from the front of `lines`.
    func consume(_ taken: Int) {
        let bytes = decoding?.block?.use(taken) ?? taken
        start += bytes
        count -= bytes
        offset += Int64(bytes)
    }

    /// Removes bytes from the front of `unpacked`, up to the end of a line.
    func skip(_ bytes: Int) {
        start += bytes
        count -= bytes
        offset += Int64(bytes)
        decode()
    }

    /// Decodes what was unpacked, if the content has another encoding.
    private func decode() {
        guard let decoding else { return }
        if decoding.script == .unknown {
            guard count >= 2 || end != nil else { return }
            self.decoding?.script = FileScript(FileDecoder(head: unpacked, decoding.encoding))
        }
        guard let decoder = self.decoding?.script.decoder else { return }
        let room = decoder.room(forLineOf: longest)
        if storage.count < room {
            let larger = UnsafeMutableRawBufferPointer.allocate(byteCount: room, alignment: 16)
            larger.copyMemory(from: unpacked)
            storage.deallocate()
            storage = larger
            start = 0
        }
        self.decoding?.block = DecodedBlock(
            unpacked, by: decoder, isBeginning: offset == 0, isWhole: end != nil)
    }

    /// The next piece of the unpacked bytes.
    ///
    /// - Parameters:
    ///   - limit: most bytes of lines; a single line or record may be longer.
    ///   - format: the format that wraps the lines. A record of several lines is not cut unless it exceeds
    ///     the longest line.
    func next(atMost limit: Int = .max, in format: LineWrapper? = nil) -> Piece {
        let lines = self.lines
        let count = lines.count
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
                return .lines(self.lines.count)
            }
            skipped = Rest(
                offset: offset, length: 0,
                head: Array(lines.prefix(min(feed ?? count, ObjectSplitter.excerpt))))
        }
        skipped?.length += Int64(feed ?? count)
        consume(feed.map { $0 + 1 } ?? count)
        guard feed != nil || end == .whole, let line = skipped else {
            return end.map { Piece.end($0) } ?? .more
        }
        skipped = nil
        return .tooLong(line)
    }

    /// The bytes that are left of a damaged file.
    var rest: Rest {
        skipped
            ?? Rest(offset: offset, length: Int64(count), head: Array(lines.prefix(ObjectSplitter.excerpt)))
    }

    /// Number of taken bytes that the file does not unpack to: 1 if its last line had no LF.
    var takenAdditions: Int64 { isSealed && count == 0 ? 1 : 0 }

    /// Appends an LF to a last line without one.
    private func seal() {
        if let block = decoding?.block {
            return block.seal()
        }
        if start + count == storage.count {
            moveToFront()
        }
        guard count < storage.count else { return }
        storage[start + count] = 0x0A
        count += 1
        isSealed = true
    }

    /// Unpacks until the buffer is full, the file ends, or `limit` bytes of the file were unpacked. The limit
    /// is needed because an archive of any length may unpack to nothing.
    func fill(from descriptor: Int32, atMost limit: Int64 = .max / 2) throws(SystemError) {
        moveToFront()
        let last = inputPosition + limit
        // One byte stays free, for the LF that the last line may lack.
        while end == nil, count < storage.count - 1, inputPosition < last {
            if inputStart == input.count {
                input = try FileSystem.bytes(of: descriptor, at: position, count: PackedLines.inputSize)
                inputStart = 0
                packed.append(input)
            }
            let output = UnsafeMutableRawBufferPointer(rebasing: storage[count..<(storage.count - 1)])
            do throws(FrameError) {
                let step = try input.withUnsafeBufferPointer { bytes throws(FrameError) in
                    try decompressor.step(
                        UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: bytes[inputStart...])),
                        into: output)
                }
                inputStart += step.consumed
                count += step.produced
                isAtBoundary = step.isAtBoundary
                // The file has ended once no input is left and the decompressor has no more output.
                if input.isEmpty, step.produced == 0 {
                    end = isAtBoundary ? .whole : .cutShort
                }
                if !input.isEmpty, step.consumed == 0, step.produced == 0, inputStart < input.count {
                    end = .broken("unpacking does not progress")
                }
            } catch {
                end = .broken(error.message)
            }
        }
        decode()
    }

    /// Moves the bytes that were not taken to the beginning of the buffer, to make room behind them.
    private func moveToFront() {
        guard start > 0 else { return }
        // What was unpacked, not its text: the text may be longer than the buffer.
        storage.copyMemory(from: unpacked)
        start = 0
    }
}
