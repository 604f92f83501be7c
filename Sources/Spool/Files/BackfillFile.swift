internal import EventLoops
internal import Frames
internal import Glibc
public import Model

/// An old file that a person ships by hand, from the position at which an earlier run ended. The file is not
/// changed.
///
/// By its name it holds lines, or a JSON text (`.json`) of one or more objects, compressed (`.gz`, `.zst`) or
/// not. It counts as finished: a last line without a line feed is complete. Memory is bounded by the longest
/// event.
public final class BackfillFile {
    /// Identity of the file for as long as it exists, across renames: hexadecimal digits.
    public let key: String
    /// The file's size in bytes when it was opened.
    public let size: Int64
    /// The path that it was opened by.
    public let path: String

    /// The format that wraps the lines (CRI, Docker); nil if lines are not wrapped. To be set before the
    /// first piece is read.
    public var format: LineWrapper?

    /// The encoding that was set by `decode`.
    private var encoding: FileEncoding?
    private let descriptor: Descriptor
    private let compression: Compression
    /// Whether the file is a JSON text; otherwise it has lines.
    private let isText: Bool
    /// The longest event in bytes.
    private let longest: Int
    private var packed: PackedLines
    private var splitter: ObjectSplitter
    /// Pieces that were read and not returned yet.
    private var waiting: [FilePiece] = []
    /// Whether nothing more is to be read, because of the end or of an error in the file.
    private var isFinished = false

    /// Opens a file.
    ///
    /// - Parameters:
    ///   - name: the path by which the file is opened, if not `path`; `path` still determines the format.
    ///   - maxEventSize: the longest event, in bytes.
    /// - Throws: `SpoolError` with code `cannotRead`.
    public init(path: String, by name: String? = nil, maxEventSize: Int) throws(SpoolError) {
        self.path = path
        longest = maxEventSize
        var stem = path[...]
        compression = path.hasSuffix(".gz") ? .gzip : path.hasSuffix(".zst") ? .zstd : .none
        if compression != .none {
            stem = stem.dropLast(compression == .gzip ? 3 : 4)
        }
        isText = stem.hasSuffix(".json")
        do throws(SystemError) {
            let descriptor = try Descriptor(
                checking: open(name ?? path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), "open")
            let status = try FileSystem.status(descriptor)
            guard status.isRegular else {
                throw SystemError("open", number: status.isDirectory ? EISDIR : EINVAL)
            }
            key = Hexadecimal.text(try FileID(descriptor, status).bytes)
            size = status.size
            self.descriptor = descriptor
        } catch {
            throw SpoolError(.cannotRead, "\(path) cannot be read", cause: error)
        }
        packed = try BackfillFile.content(compression, longest: maxEventSize)
        splitter = ObjectSplitter(longest: maxEventSize)
    }

    /// The content of a file that is read from its beginning.
    private static func content(
        _ compression: Compression, longest: Int
    ) throws(SpoolError) -> PackedLines {
        let packed = try relaying(try PackedLines(compression, longest: longest)) { (error: FrameError) in
            SpoolError(.cannotRead, error.message)
        }
        packed.sum = .max
        return packed
    }

    /// Bytes of the file that were used, approximately; for a progress display.
    public var position: Int64 { compression == .none ? packed.offset : packed.inputPosition }

    /// Has the content decoded to UTF-8, by this encoding or by a byte order mark of UTF-16. To be called
    /// before the first piece is read.
    public func decode(_ encoding: FileEncoding?) {
        self.encoding = encoding
        packed.decode(by: encoding)
    }

    /// Reads again from a position, so that the next piece can be smaller than the last one.
    ///
    /// - Parameters and results are those of `begin(at:)`.
    public func restart(at text: String?) throws(SpoolError) -> Bool {
        packed = try BackfillFile.content(compression, longest: longest)
        packed.decode(by: encoding)
        splitter = ObjectSplitter(longest: longest)
        waiting = []
        isFinished = false
        return try begin(at: text)
    }

    /// Sets the position at which reading begins: behind the pieces that an earlier run has handed over.
    ///
    /// - Parameter place: the `end` of the last piece that was taken; nil for the beginning.
    /// - Returns: true if reading continues there; false if it begins at the beginning, because the file has
    ///   other content now.
    /// - Throws: `SpoolError` with code `cannotRead`.
    public func begin(at text: String?) throws(SpoolError) -> Bool {
        guard let text else { return true }
        let numbers = text.split(separator: ":", omittingEmptySubsequences: false).map {
            UInt64($0, radix: 16)
        }
        guard numbers.count == 5, let version = numbers[0],
            let offset = numbers[1].flatMap({ Int64(exactly: $0) }),
            let flags = numbers[2],
            let state = UInt8(exactly: flags & ~4).flatMap(ObjectSplitter.Resumption.State.init),
            let length = numbers[3].flatMap({ Int64(exactly: $0) }), let sum = numbers[4]
        else { return false }
        do throws(SystemError) {
            guard try version == 2 ? holds(length, sum) : version == 1 ? begins(length, sum) : false else {
                return false
            }
            if flags & 4 != 0 {
                isFinished = true
                return true
            }
            // A position in lines counts the content's own bytes, one in a JSON text those of the text.
            var reached = Int64(0)
            while reached < offset, packed.end == nil || !packed.lines.isEmpty {
                if packed.lines.isEmpty {
                    try packed.fill(from: descriptor.raw)
                }
                let count = isText ? packed.lines.count : packed.unpacked.count
                let step = Int(min(Int64(count), offset - reached))
                isText ? packed.consume(step) : packed.skip(step)
                reached += Int64(step)
            }
        } catch {
            throw SpoolError(.cannotRead, "\(path) cannot be read", cause: error)
        }
        splitter = ObjectSplitter(
            longest: longest, from: ObjectSplitter.Resumption(offset: offset, state: state))
        return true
    }

    /// The text form of a position: version, offset, state, and length and CRC-32C of all bytes that were
    /// read so far, in hexadecimal. More bytes may have been read than those before the position.
    private func positionText(_ position: ObjectSplitter.Resumption, isFinished: Bool = false) -> String {
        let flags = position.state.rawValue | (isFinished ? 4 : 0)
        let numbers = [
            2, UInt64(position.offset), UInt64(flags), UInt64(packed.position), UInt64(packed.sum ?? 0),
        ]
        return numbers.map { String($0, radix: 16) }.joined(separator: ":")
    }

    /// Whether the first `length` bytes still have this checksum.
    private func holds(_ length: Int64, _ sum: UInt64) throws(SystemError) -> Bool {
        var reached = Int64(0)
        var found = UInt32.max
        while reached < length {
            let bytes = try FileSystem.bytes(
                of: descriptor.raw, at: reached, count: Int(min(length - reached, 1 << 20)))
            guard !bytes.isEmpty else { return false }
            found = bytes.withUnsafeBytes { crc32c($0, from: found) }
            reached += Int64(bytes.count)
        }
        return UInt64(found) == sum
    }

    /// The check of positions from earlier versions, which only have a hash of the file's beginning.
    private func begins(_ length: Int64, _ hash: UInt64) throws(SystemError) -> Bool {
        let count = Int(min(length, Int64(Fingerprint.longest)))
        return try FileSystem.bytes(of: descriptor.raw, at: 0, count: count).withUnsafeBytes {
            ByteHash.of($0)
        } == hash
    }

    /// The next piece; nil at the end.
    ///
    /// - Parameter limit: most bytes of lines in a piece. A single event, or record of a format, may be
    ///   longer.
    /// - Throws: `SpoolError` with code `cannotRead`.
    public func next(atMost limit: Int) throws(SpoolError) -> FilePiece? {
        do throws(SystemError) {
            while waiting.isEmpty, !isFinished { try isText ? readObjects(limit) : readLines(limit) }
        } catch {
            throw SpoolError(.cannotRead, "\(path) cannot be read", cause: error)
        }
        return waiting.isEmpty ? nil : waiting.removeFirst()
    }

    /// Reads the next pieces of a file of lines.
    private func readLines(_ limit: Int) throws(SystemError) {
        let offset = packed.offset
        switch packed.next(atMost: limit, in: format) {
        case .more: try packed.fill(from: descriptor.raw)
        case .lines(let count):
            let bytes = Array(packed.lines.prefix(count))
            packed.consume(count)
            waiting.append(FilePiece(bytes: bytes, offset: offset, end: positionText(.lines(packed.offset))))
        case .tooLong(let line):
            waiting.append(
                FilePiece(
                    bytes: line.head, offset: line.offset, problem: tooLong(line.length),
                    end: positionText(.lines(packed.offset))))
        case .end(let end):
            isFinished = true
            // The rest of a damaged archive cannot be read.
            guard let (reason, detail) = end.problem else { return }
            let rest = packed.rest
            waiting.append(
                FilePiece(
                    bytes: rest.head, offset: rest.offset,
                    problem: FilePiece.Problem(reason: reason, detail: detail, length: rest.length),
                    end: positionText(.lines(rest.offset + rest.length), isFinished: true)))
        }
    }

    private func tooLong(_ length: Int64) -> FilePiece.Problem {
        FilePiece.Problem(
            reason: .tooLong, detail: QuarantineRecord.tooLong("event", length, longest: longest),
            length: length)
    }

    /// Reads the next pieces of a JSON text: events up to the limit are joined in one piece, and a problem
    /// follows as a piece of its own.
    private func readObjects(_ limit: Int) throws(SystemError) {
        var bytes = [UInt8]()
        var start = Int64(0)
        var last = splitter.resumption
        func end(with piece: FilePiece?) {
            if !bytes.isEmpty {
                waiting.append(FilePiece(bytes: bytes, offset: start, end: positionText(last)))
            }
            if let piece {
                waiting.append(piece)
            }
        }
        while true {
            let (find, isEnd) = try nextFind()
            switch find {
            case .event:
                guard bytes.isEmpty || bytes.count + splitter.event.count <= limit else {
                    return end(
                        with: FilePiece(
                            bytes: splitter.event, offset: splitter.eventOffset,
                            end: positionText(splitter.resumption)))
                }
                if bytes.isEmpty {
                    start = splitter.eventOffset
                }
                bytes += splitter.event
                last = splitter.resumption
            case .tooLong(let length): return end(with: excerpt(of: tooLong(length)))
            case .fault(let detail):
                isFinished = true
                return end(with: try remainder(detail))
            case .more:
                guard isEnd else { continue }
                isFinished = true
                return end(with: splitter.isComplete && packed.end == .whole ? nil : endProblem())
            }
        }
    }

    /// The next find in the text, and whether the text has ended.
    private func nextFind() throws(SystemError) -> (find: ObjectSplitter.Find, isEnd: Bool) {
        if packed.lines.isEmpty {
            guard packed.end == nil else {
                // An event that is still open in a truncated text is not complete.
                let isWhole = packed.end == .whole && splitter.isComplete
                return (isWhole ? splitter.finish() : .more, true)
            }
            try packed.fill(from: descriptor.raw)
            return (.more, false)
        }
        var used = 0
        let find = splitter.next(packed.lines, used: &used)
        packed.consume(used)
        return (find, false)
    }

    /// A piece with the beginning of an event that has a problem.
    private func excerpt(of problem: FilePiece.Problem) -> FilePiece {
        // Without the line feed that the splitter adds.
        let count = min(ObjectSplitter.excerpt, Int(problem.length))
        return FilePiece(
            bytes: Array(splitter.event.prefix(count)), offset: splitter.eventOffset, problem: problem,
            end: positionText(splitter.resumption))
    }

    /// The rest of the text from its first error, including the value that contains the error.
    private func remainder(_ detail: String) throws(SystemError) -> FilePiece {
        var content = splitter.hasOpenEvent ? Array(splitter.event.prefix(ObjectSplitter.excerpt)) : []
        content += packed.lines.prefix(ObjectSplitter.excerpt - content.count)
        // Read to the end, because only that gives the length of the rest.
        packed.consume(packed.lines.count)
        while packed.end == nil {
            try packed.fill(from: descriptor.raw)
            packed.consume(packed.lines.count)
        }
        let start = splitter.resumption
        return FilePiece(
            bytes: content, offset: start.offset,
            problem: FilePiece.Problem(
                reason: .notJSON, detail: detail, length: packed.offset - start.offset),
            end: positionText(start, isFinished: true))
    }

    /// A piece for a text that ends too early.
    private func endProblem() -> FilePiece {
        let (reason, detail) = packed.end?.problem ?? (.cutShort, splitter.earlyEnd)
        let offset = splitter.resumption.offset
        return FilePiece(
            bytes: splitter.hasOpenEvent ? Array(splitter.event.prefix(ObjectSplitter.excerpt)) : [],
            offset: offset,
            problem: FilePiece.Problem(reason: reason, detail: detail, length: splitter.position - offset),
            end: positionText(splitter.resumption, isFinished: true))
    }
}
