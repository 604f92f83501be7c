/// What a NATS server says: one line, or a message with its payload.
enum NATSOperation: Equatable {
    /// What the server is and offers, as JSON.
    case info([UInt8])
    /// A message to one of our subscriptions; `headers` is empty where it has none.
    case message(subject: String, headers: [UInt8], payload: [UInt8])
    case ping
    case pong
    /// A line that says that all is well.
    case ok
    /// An error, without its quotation marks.
    case error(String)
}

/// What came is not the protocol, or more of it than a server has to say.
struct NATSProtocolError: Error, Equatable {
    let message: String
}

/// Takes the server's bytes apart, however they are cut.
///
/// The other side is hostile: lines and payloads are bounded before they are kept, numbers cannot overflow, and after the
/// first mistake nothing is read any more.
/// Source: NATS client protocol (docs.nats.io, "Client Protocol").
struct NATSParser {
    /// The longest line but `INFO`, in bytes; the server's own `max_control_line` is 4 KiB.
    static let longestLine = 4096
    static let longestInfo = 65_536
    /// The largest message: what we subscribe to are acknowledgements, of a few hundred bytes.
    static let largestPayload = 65_536

    private struct Awaited {
        let subject: String
        let headers: Int
        let total: Int
    }

    private var buffer: [UInt8] = []
    private var position = 0
    /// How far the line's end was looked for already.
    private var searched = 0
    private var awaited: Awaited?
    private var failure: NATSProtocolError?

    /// How many bytes are kept that were not read.
    var keptBytes: Int { buffer.count - position }

    /// Takes what came. To be followed by `next` until it returns nil.
    mutating func take(_ bytes: some Collection<UInt8>) {
        if position == buffer.count {
            buffer.removeAll(keepingCapacity: true)
            (position, searched) = (0, 0)
        } else if position > 0 {
            buffer.removeSubrange(..<position)
            searched -= position
            position = 0
        }
        buffer.append(contentsOf: bytes)
    }

    /// The next operation; nil until more has come. Throws what is wrong, again at each further call.
    mutating func next() throws(NATSProtocolError) -> NATSOperation? {
        if let failure { throw failure }
        do throws(NATSProtocolError) {
            return try read()
        } catch {
            failure = error
            throw error
        }
    }

    private mutating func read() throws(NATSProtocolError) -> NATSOperation? {
        if let awaited { return try payload(awaited) }
        guard let line = try line() else { return nil }
        let words = line.split(whereSeparator: { $0 == 0x20 || $0 == 0x09 })
        guard let first = words.first else {
            throw NATSProtocolError(message: "an empty line")
        }
        switch String(decoding: first.prefix(8), as: UTF8.self).uppercased() {
        case "PING": return .ping
        case "PONG": return .pong
        case "+OK": return .ok
        case "-ERR":
            let text = line.dropFirst(first.count).drop { $0 == 0x20 || $0 == 0x09 }
            return .error(NATSParser.unquoted(text))
        case "INFO": return .info(Array(line.dropFirst(first.count)))
        case "MSG":
            guard words.count == 4 || words.count == 5 else { throw NATSProtocolError(message: "a MSG of other words") }
            return try begin(words, headers: 0)
        case "HMSG":
            guard words.count == 5 || words.count == 6, let headers = NATSParser.number(words[words.count - 2]) else {
                throw NATSProtocolError(message: "an HMSG of other words")
            }
            return try begin(words, headers: headers)
        default:
            throw NATSProtocolError(message: "an operation that is none")
        }
    }

    private mutating func begin(
        _ words: [ArraySlice<UInt8>], headers: Int
    ) throws(NATSProtocolError) -> NATSOperation? {
        guard let last = words.last, let total = NATSParser.number(last), headers <= total else {
            throw NATSProtocolError(message: "a message without a length")
        }
        guard total <= NATSParser.largestPayload else {
            throw NATSProtocolError(message: "a message of \(total) bytes where only acknowledgements are expected")
        }
        let message = Awaited(subject: String(decoding: words[1], as: UTF8.self), headers: headers, total: total)
        awaited = message
        return try payload(message)
    }

    private mutating func payload(_ message: Awaited) throws(NATSProtocolError) -> NATSOperation? {
        // Both are bounded: the sum cannot overflow.
        let end = position + message.total
        guard buffer.count >= end + 2 else { return nil }
        guard buffer[end] == 0x0D, buffer[end + 1] == 0x0A else {
            throw NATSProtocolError(message: "a message of another length than it says")
        }
        let body = position + message.headers
        let operation = NATSOperation.message(
            subject: message.subject, headers: Array(buffer[position..<body]), payload: Array(buffer[body..<end]))
        awaited = nil
        position = end + 2
        searched = position
        return operation
    }

    /// The next line without its end; nil until it is there.
    private mutating func line() throws(NATSProtocolError) -> ArraySlice<UInt8>? {
        let feed = buffer[searched...].firstIndex(of: 0x0A)
        let length = (feed ?? buffer.count) - position
        let isInfo = buffer[position...].prefix(4).elementsEqual("INFO".utf8, by: { $0 & 0xDF == $1 })
        guard length <= (isInfo ? NATSParser.longestInfo : NATSParser.longestLine) else {
            throw NATSProtocolError(message: "a line that does not end")
        }
        guard let feed else {
            searched = buffer.count
            return nil
        }
        var line = buffer[position..<feed]
        if line.last == 0x0D { line.removeLast() }
        position = feed + 1
        searched = position
        return line
    }

    /// A length: at most nine digits, and nothing else.
    private static func number(_ digits: ArraySlice<UInt8>) -> Int? {
        guard (1...9).contains(digits.count), digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
    }

    private static func unquoted(_ text: ArraySlice<UInt8>) -> String {
        let quote = UInt8(ascii: "'")
        let isQuoted = text.count >= 2 && text.first == quote && text.last == quote
        return String(decoding: isQuoted ? text.dropFirst().dropLast() : text, as: UTF8.self)
    }
}
