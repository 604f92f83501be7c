internal import EventLoops
internal import Glibc
package import Model

/// Asks the agent over its Unix socket, for the commands. Blocking; one connection for each request.
///
/// Speaks HTTP/1.0, so that an answer ends with its length or with the connection, and no chunks must be
/// parsed.
package struct ControlClient: Sendable {
    /// A complete answer of the agent.
    package struct Answer: Sendable, Equatable {
        package let status: Int
        package let body: [UInt8]

        /// The body as JSON.
        ///
        /// - Throws: `ControlError` with code `badAnswer`.
        package func json() throws(ControlError) -> JSONValue {
            try relaying(try JSONValue(parsing: body)) { (error: JSONError) in
                ControlError(.badAnswer, "the agent's answer is \(error); is it another version?")
            }
        }
    }

    /// Path of the socket.
    package let socket: String
    /// Longest time without a byte of the answer, and for sending; default 10 s.
    package var timeout: Duration
    /// Largest answer in bytes; default 64 MiB.
    package var largestAnswer = 67_108_864

    package init(socket: String, timeout: Duration = .seconds(10)) {
        self.socket = socket
        self.timeout = timeout
    }

    /// Asks, and waits for the whole answer.
    ///
    /// - Parameters:
    ///   - body: a body in JSON.
    ///   - content: a body that need not be JSON, instead.
    /// - Throws: `ControlError` with code `unreachable`, `notPermitted` or `badAnswer`.
    package func request(
        _ method: String, _ path: String, query: [(String, String)] = [], body: JSONValue? = nil,
        content: [UInt8]? = nil
    ) throws(ControlError) -> Answer {
        var answer: [UInt8] = []
        var isTooLarge = false
        let status = try stream(method, path, query: query, body: body, content: content, silence: timeout) {
            piece in
            isTooLarge = answer.count + piece.count > largestAnswer
            if !isTooLarge {
                answer.append(contentsOf: piece)
            }
            return !isTooLarge
        }
        guard !isTooLarge else {
            throw ControlError(.badAnswer, "the agent's answer is larger than \(largestAnswer) bytes")
        }
        return Answer(status: status, body: answer)
    }

    /// Asks, and passes on the answer's body as it comes, until it ends or `take` returns false.
    ///
    /// - Parameter silence: longest time without a byte once the answer has begun; nil for no limit,
    ///   because a stream may have nothing to say.
    /// - Returns: the HTTP status.
    package func stream(
        _ method: String, _ path: String, query: [(String, String)] = [], body: JSONValue? = nil,
        content: [UInt8]? = nil, silence: Duration? = nil, take: (ArraySlice<UInt8>) -> Bool
    ) throws(ControlError) -> Int {
        let content = content ?? body.map { Array($0.description.utf8) }
        guard socket.utf8.count <= UnixSocket.longestPath else {
            throw ControlError(
                .unreachable, "the socket's path is longer than \(UnixSocket.longestPath) bytes: \(socket)")
        }
        guard let descriptor = UnixSocket.connect(to: socket) else { throw connectionFailure(errno) }
        ControlClient.limit([SO_RCVTIMEO, SO_SNDTIMEO], of: descriptor.raw, to: timeout)
        try send(ControlClient.head(method, path, query, content) + (content ?? []), to: descriptor.raw)
        return try receive(from: descriptor.raw, silence: silence, take)
    }

    /// Limits how long a call on the socket waits; zero means no limit.
    private static func limit(_ options: [Int32], of descriptor: Int32, to wait: Duration) {
        let (seconds, attoseconds) = wait.components
        // bounded: a limit of our own.
        var limit = timeval(tv_sec: Int(seconds), tv_usec: Int(attoseconds / 1_000_000_000_000))
        for option in options {
            // If the limit cannot be set, a stuck agent makes the command wait: no reason not to ask.
            _ = setsockopt(descriptor, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
        }
    }

    /// The head of a request.
    private static func head(
        _ method: String, _ path: String, _ query: [(String, String)], _ content: [UInt8]?
    ) -> [UInt8] {
        let arguments = query.map { "\($0.0.percentEncoded)=\($0.1.percentEncoded)" }.joined(separator: "&")
        let target = path.split(separator: "/", omittingEmptySubsequences: false).map {
            String($0).percentEncoded
        }
        var text =
            "\(method) \(target.joined(separator: "/"))\(arguments.isEmpty ? "" : "?\(arguments)") "
            + "HTTP/1.0\r\n"
        text += "Host: localhost\r\n"
        if let content {
            text += "Content-Type: application/json\r\nContent-Length: \(content.count)\r\n"
        }
        return Array(text.utf8) + Array("\r\n".utf8)
    }

    /// Sends all bytes.
    private func send(_ bytes: [UInt8], to descriptor: Int32) throws(ControlError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else {
                if count < 0, errno == EINTR { continue }
                // The agent may have answered with an error and closed the connection already: its answer
                // is read next.
                if count < 0, errno == EPIPE || errno == ECONNRESET { return }
                throw noAnswer(errno)
            }
            rest = rest.dropFirst(count)
        }
    }

    /// Reads the answer, and passes its body to `take`.
    private func receive(
        from descriptor: Int32, silence: Duration?, _ take: (ArraySlice<UInt8>) -> Bool
    ) throws(ControlError) -> Int {
        var block = [UInt8](repeating: 0, count: 65_536)
        var head: [UInt8] = []
        var answer: (status: Int, left: Int?)?
        while true {
            let count = recv(descriptor, &block, block.count, 0)
            if count < 0 {
                if errno == EINTR { continue }
                throw noAnswer(errno)
            }
            if count == 0 {
                guard let answer, (answer.left ?? 0) == 0 else {
                    throw ControlError(.unreachable, "the agent ended before its answer was complete")
                }
                return answer.status
            }
            var piece = block[..<count]
            if answer == nil {
                head.append(contentsOf: piece)
                guard let end = ControlClient.endOfHead(head) else {
                    guard head.count < 65_536 else {
                        throw ControlError(.badAnswer, "\(socket) does not speak HTTP")
                    }
                    continue
                }
                answer = try parse(String(decoding: head[..<end], as: UTF8.self))
                if silence != timeout {
                    ControlClient.limit([SO_RCVTIMEO], of: descriptor, to: silence ?? .zero)
                }
                piece = head[end...]
            }
            if let left = answer?.left {
                piece = piece.prefix(left)
            }
            if !piece.isEmpty, !take(piece) { return answer?.status ?? 0 }
            if let left = answer?.left {
                answer?.left = left - piece.count
                if left == piece.count { return answer?.status ?? 0 }
            }
        }
    }

    /// Length of the head with its empty line; nil until it is complete.
    private static func endOfHead(_ bytes: [UInt8]) -> Int? {
        guard bytes.count >= 4 else { return nil }
        return (4...bytes.count).first { bytes[($0 - 4)..<$0].elementsEqual("\r\n\r\n".utf8) }
    }

    /// Status and length from the head of an answer; without a length the body ends with the connection.
    private func parse(_ head: String) throws(ControlError) -> (status: Int, left: Int?) {
        let lines = head.split(separator: "\r\n")
        let first = lines.first?.split(separator: " ") ?? []
        guard first.count >= 2, first[0].hasPrefix("HTTP/1."), let status = Int(first[1]),
            (100..<600).contains(status)
        else { throw ControlError(.badAnswer, "\(socket) does not speak HTTP") }
        let length = lines.dropFirst().compactMap { line -> Int? in
            let parts = line.split(separator: ":", maxSplits: 1)
            guard parts.count == 2, parts[0].lowercased() == "content-length" else { return nil }
            return Int(parts[1].drop { $0 == " " })
        }
        return (status, length.first)
    }

    /// The error for a failed connection, with what to do.
    func connectionFailure(_ number: Int32) -> ControlError {
        switch number {
        case ENOENT, ECONNREFUSED:
            ControlError(
                .unreachable,
                "no agent answers at \(socket): is it running? Has control.socket changed since its start "
                    + "(--socket FILE)?"
            )
        case EACCES, EPERM:
            ControlError(
                .notPermitted,
                "you may not use \(socket): become root or a member of its group (ls -l \(socket))")
        default:
            ControlError(
                .unreachable, "the agent cannot be reached at \(socket): \(SystemError.message(number))")
        }
    }

    /// The error for a failed call on the connection. EAGAIN means that the time limit has passed.
    private func noAnswer(_ number: Int32) -> ControlError {
        number == EAGAIN
            ? ControlError(.unreachable, "the agent at \(socket) does not answer in time")
            : ControlError(
                .unreachable, "the agent at \(socket) broke the connection: \(SystemError.message(number))")
    }
}
