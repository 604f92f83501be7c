/// Collects a request's body from the bytes received, never more than its bound.
///
/// Source: RFC 9112, section 7.1 (chunks). Extensions of chunks and trailers are read and dropped.
struct HTTPBodyReader {
    /// The part of the body that is next.
    private enum Step {
        case content(left: Int, inChunk: Bool)
        case chunkSize
        case chunkEnd
        case trailer(seen: Int)
        case done
    }

    /// Longest line of a chunked body that is not content.
    private static let longestLine = 1024

    /// The content so far.
    private(set) var body: [UInt8] = []
    /// Largest body in bytes.
    private let limit: Int
    /// The part of the body that is next.
    private var step: Step

    /// Begins a body.
    ///
    /// - Throws: status 413 if the announced length exceeds the limit.
    init(_ length: HTTPRequestHead.Length, limit: Int) throws(ControlRefusal) {
        self.limit = limit
        switch length {
        case .bytes(let count):
            guard count <= limit else { throw HTTPBodyReader.tooLarge(limit) }
            step = count == 0 ? .done : .content(left: count, inChunk: false)
        case .chunked: step = .chunkSize
        }
    }

    /// Whether the body is complete.
    var isDone: Bool { if case .done = step { true } else { false } }

    /// Moves the bytes of the body from the beginning of the input; true when the body is complete. Bytes
    /// after it belong to the next request.
    mutating func read(from input: inout [UInt8]) throws(ControlRefusal) -> Bool {
        var offset = 0
        defer { input.removeFirst(offset) }
        while true {
            switch step {
            case .done: return true
            case .content(let left, let inChunk):
                let count = min(left, input.count - offset)
                guard count > 0 else { return false }
                body.append(contentsOf: input[offset..<offset + count])
                offset += count
                let end = inChunk ? Step.chunkEnd : .done
                step = count == left ? end : .content(left: left - count, inChunk: inChunk)
            case .chunkSize:
                guard let line = try HTTPBodyReader.line(input, &offset) else { return false }
                let size = try HTTPBodyReader.size(line)
                guard size <= limit - body.count else { throw HTTPBodyReader.tooLarge(limit) }
                step = size == 0 ? .trailer(seen: 0) : .content(left: size, inChunk: true)
            case .chunkEnd:
                guard let line = try HTTPBodyReader.line(input, &offset) else { return false }
                guard line.isEmpty else { throw .bad("a chunk does not end where it says") }
                step = .chunkSize
            case .trailer(let seen):
                guard let line = try HTTPBodyReader.line(input, &offset) else { return false }
                guard seen < 32 else { throw .bad("the body ends with too many lines") }
                step = line.isEmpty ? .done : .trailer(seen: seen + 1)
            }
        }
    }

    /// The next line without its end; nil until it is complete. CR LF is demanded: a bare LF would be read
    /// differently by other parsers.
    private static func line(_ input: [UInt8], _ offset: inout Int) throws(ControlRefusal) -> ArraySlice<
        UInt8
    >? {
        guard let end = input[offset...].firstIndex(of: UInt8(ascii: "\n")) else {
            guard input.count - offset <= longestLine else {
                throw .bad("a line of a chunked body is too long")
            }
            return nil
        }
        guard end > offset, input[end - 1] == UInt8(ascii: "\r"), end - offset <= longestLine else {
            throw .bad("a line of a chunked body must end with CR LF")
        }
        defer { offset = end + 1 }
        return input[offset..<end - 1]
    }

    /// The size of a chunk: at most 15 hexadecimal digits, so that it cannot overflow.
    private static func size(_ line: ArraySlice<UInt8>) throws(ControlRefusal) -> Int {
        let digits = line.prefix { $0 != UInt8(ascii: ";") && $0 != 0x20 && $0 != 0x09 }
        guard !digits.isEmpty, digits.count <= 15 else { throw .bad("a chunk has no size") }
        var size = 0
        for digit in digits {
            guard let value = HTTPRequestHead.hex(digit) else { throw .bad("a chunk's size is not a number") }
            size = size << 4 | Int(value)
        }
        return size
    }

    /// The refusal of a body beyond the limit.
    static func tooLarge(_ limit: Int) -> ControlRefusal {
        ControlRefusal(413, "too_large", "the body is larger than \(limit) bytes")
    }
}
