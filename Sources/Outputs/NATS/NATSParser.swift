/// An operation of a NATS server: a line, or a message with its payload.
enum NATSOperation: Equatable {
    /// The server's description of itself, as JSON.
    case info([UInt8])
    /// A message to one of our subscriptions; `headers` is empty if it has none.
    case message(subject: String, headers: [UInt8], payload: [UInt8])
    /// The server checks whether the client is alive, and closes the connection without an answer.
    case ping
    /// The answer to our `PING`.
    case pong
    /// An acknowledgement of a line; not sent without `verbose`.
    case ok
    /// An error, without its quotation marks.
    case error(String)
}

/// The server's bytes are not the protocol, or exceed a bound.
struct NATSProtocolError: Error, Equatable {
    let message: String
}

/// Divides the server's bytes into operations, however the network cuts them.
///
/// The server is hostile: lines and payloads are bounded before they are kept, numbers cannot overflow, and
/// after the first error nothing more is parsed. Source: NATS client protocol (docs.nats.io, "Client
/// Protocol").
struct NATSParser {
    /// Longest line except `INFO`, in bytes; the server's own limit, `max_control_line`, is 4 KiB.
    static let longestLine = 4096
    /// Longest `INFO`, which names the servers of a cluster.
    static let longestInfo = 65_536
    /// Largest message: we subscribe to acknowledgements only, which have some hundred bytes.
    static let largestPayload = 65_536

    /// A message whose line was read and whose payload has not arrived completely.
    private struct Awaited {
        let subject: String
        /// Bytes of the header block.
        let headers: Int
        /// Bytes of header block and payload.
        let total: Int
    }

    /// Bytes that have arrived; those before `position` are done with.
    private var buffer: [UInt8] = []
    /// Start of the bytes that are not parsed yet.
    private var position = 0
    /// End of the bytes that were already searched for a line feed. Without it, a line in many small pieces
    /// would cost quadratic time.
    private var searched = 0
    /// The message whose payload is awaited; nil between messages.
    private var awaited: Awaited?
    /// The first error; thrown again by every later call.
    private var failure: NATSProtocolError?

    /// Number of bytes that are not parsed yet.
    var keptBytes: Int { buffer.count - position }

    /// Adds bytes that have arrived. Must be followed by calls of `next` until it returns nil.
    mutating func append(_ bytes: some Collection<UInt8>) {
        if position == buffer.count {
            buffer.removeAll(keepingCapacity: true)
            position = 0
            searched = 0
        } else if position > 0 {
            buffer.removeSubrange(..<position)
            searched -= position
            position = 0
        }
        buffer.append(contentsOf: bytes)
    }

    /// The next operation; nil until more has arrived. After an error, throws the same error at each call.
    mutating func next() throws(NATSProtocolError) -> NATSOperation? {
        if let failure { throw failure }
        do throws(NATSProtocolError) {
            return try read()
        } catch {
            failure = error
            throw error
        }
    }

    /// Parses the next operation.
    private mutating func read() throws(NATSProtocolError) -> NATSOperation? {
        if let awaited { return try payload(awaited) }
        guard let line = try line() else { return nil }
        let words = line.split(whereSeparator: { $0 == 0x20 || $0 == 0x09 })
        guard let first = words.first else {
            throw NATSProtocolError(message: "empty line")
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
            guard words.count == 4 || words.count == 5 else {
                throw NATSProtocolError(message: "malformed MSG")
            }
            return try begin(words, headers: 0)
        case "HMSG":
            guard words.count == 5 || words.count == 6,
                let headers = NATSParser.number(words[words.count - 2])
            else {
                throw NATSProtocolError(message: "malformed HMSG")
            }
            return try begin(words, headers: headers)
        default:
            throw NATSProtocolError(message: "unknown operation")
        }
    }

    /// Begins a message whose line was read.
    private mutating func begin(
        _ words: [ArraySlice<UInt8>], headers: Int
    ) throws(NATSProtocolError) -> NATSOperation? {
        guard let last = words.last, let total = NATSParser.number(last), headers <= total else {
            throw NATSProtocolError(message: "message without a length")
        }
        guard total <= NATSParser.largestPayload else {
            throw NATSProtocolError(
                message: "message of \(total) bytes where only acknowledgements are expected")
        }
        let message = Awaited(
            subject: String(decoding: words[1], as: UTF8.self), headers: headers, total: total)
        awaited = message
        return try payload(message)
    }

    /// The message, once its payload has arrived completely.
    private mutating func payload(_ message: Awaited) throws(NATSProtocolError) -> NATSOperation? {
        // Both numbers are bounded: the sum cannot overflow.
        let end = position + message.total
        guard buffer.count >= end + 2 else { return nil }
        guard buffer[end] == 0x0D, buffer[end + 1] == 0x0A else {
            throw NATSProtocolError(message: "message longer than announced")
        }
        let body = position + message.headers
        let operation = NATSOperation.message(
            subject: message.subject, headers: Array(buffer[position..<body]),
            payload: Array(buffer[body..<end]))
        awaited = nil
        position = end + 2
        searched = position
        return operation
    }

    /// The next line without its end; nil until it is complete.
    private mutating func line() throws(NATSProtocolError) -> ArraySlice<UInt8>? {
        let feed = buffer[searched...].firstIndex(of: 0x0A)
        let length = (feed ?? buffer.count) - position
        let isInfo = buffer[position...].prefix(4).elementsEqual("INFO".utf8, by: { $0 & 0xDF == $1 })
        let longest = isInfo ? NATSParser.longestInfo : NATSParser.longestLine
        guard length <= longest else {
            throw NATSProtocolError(message: "protocol line longer than \(longest) bytes")
        }
        guard let feed else {
            searched = buffer.count
            return nil
        }
        var line = buffer[position..<feed]
        if line.last == 0x0D {
            line.removeLast()
        }
        position = feed + 1
        searched = position
        return line
    }

    /// A length of at most nine digits; nil for anything else.
    private static func number(_ digits: ArraySlice<UInt8>) -> Int? {
        guard (1...9).contains(digits.count), digits.allSatisfy({ (0x30...0x39).contains($0) }) else {
            return nil
        }
        return digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
    }

    /// A text without the single quotes around it.
    private static func unquoted(_ text: ArraySlice<UInt8>) -> String {
        let quote = UInt8(ascii: "'")
        let isQuoted = text.count >= 2 && text.first == quote && text.last == quote
        return String(decoding: isQuoted ? text.dropFirst().dropLast() : text, as: UTF8.self)
    }
}
