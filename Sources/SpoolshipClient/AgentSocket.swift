#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Musl)
    internal import Musl
#else
    internal import Darwin
#endif

/// Requests to the agent's control socket: HTTP/1.0, a connection for each, blocking until a deadline.
/// HTTP/1.0 ends the answer with the connection, so that no chunks need be read.
struct AgentSocket: Sendable {
    /// A response.
    struct Answer {
        /// The HTTP status.
        let status: Int
        /// The body.
        let body: String

        /// The values of a body with one JSON value a line; lines that are not JSON are left out.
        var lines: [JSONText.Value] { body.split(separator: "\n").compactMap { JSONText.read(String($0)) } }
    }

    /// Why there is no response.
    enum Failure: Error {
        /// No agent listens at the path, or this user may not use its socket.
        case notAvailable(String)
        /// The agent gave no answer until the deadline, or one that is not HTTP.
        case noAnswer(String)
        /// The agent refused: the HTTP status, and the reason that it gave.
        case refused(Int, String)
    }

    /// Largest answer that is read, 8 MiB, so that another program's socket cannot fill the memory.
    private static let largestAnswer = 8 << 20

    /// Path of the socket.
    let path: String

    /// Sends a request and reads the response.
    ///
    /// - Parameter deadline: time by `steadyNanoseconds`.
    func request(
        _ method: String, _ target: String, body: String = "", until deadline: Int64
    ) throws(Failure) -> Answer {
        let descriptor = try connect()
        defer { close(descriptor) }
        let head =
            "\(method) \(target) HTTP/1.0\r\nHost: localhost\r\nContent-Length: \(body.utf8.count)\r\n\r\n"
        try send(Array((head + body).utf8), to: descriptor, until: deadline)
        let text = String(decoding: try receive(from: descriptor, until: deadline), as: UTF8.self)
        // Swift takes CR LF for one character, so the end of the head is searched in bytes.
        let bytes = Array(text.utf8)
        let end = Array("\r\n\r\n".utf8)
        guard let headEnd = bytes.indices.first(where: { bytes[$0...].starts(with: end) }),
            let line = String(decoding: bytes[..<headEnd], as: UTF8.self).split(separator: "\r\n").first,
            case let words = line.split(separator: " "), words.count >= 2, let status = Int(words[1])
        else { throw .noAnswer("the answer at \(path) is not HTTP; is it another program's socket?") }
        return Answer(status: status, body: String(decoding: bytes[(headEnd + end.count)...], as: UTF8.self))
    }

    /// Sends a request, and gives each line of the response's body to a function until the agent ends the
    /// connection, or until `goesOn` is false, which is asked when `wake` was woken.
    ///
    /// Lines that the agent has sent by then are still given, because it counts them as received.
    ///
    /// - Throws: as `request`; also `noAnswer` if a line is longer than `largestLine`, and `refused`.
    func stream(
        _ method: String, _ target: String, body: String, largestLine: Int, wake: WakePipe,
        whileTrue goesOn: () -> Bool, _ line: (String) -> Void
    ) throws(Failure) {
        let descriptor = try connect()
        defer { close(descriptor) }
        let head =
            "\(method) \(target) HTTP/1.0\r\nHost: localhost\r\nContent-Length: \(body.utf8.count)\r\n\r\n"
        let deadline = steadyNanoseconds() + 10_000_000_000
        try send(Array((head + body).utf8), to: descriptor, until: deadline)
        var waiting: [UInt8] = []
        var hasHead = false
        var isEnding = false
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            // Only the head has a deadline. After it the agent is silent until there is a call.
            if !hasHead, !isEnding {
                try wait(for: POLLIN, descriptor, until: deadline)
            } else if !isEnding, wake.waits(for: descriptor), !goesOn() {
                // Both directions: the agent sees the end at once, and what it has sent can still be read.
                isEnding = true
                shutdown(descriptor, Int32(SHUT_RDWR))
            }
            guard isEnding || isReadable(descriptor) else { continue }
            let count = read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return }
            waiting += buffer[..<count]
            if !hasHead {
                guard let end = AgentSocket.endOfHead(waiting) else {
                    guard waiting.count <= largestLine else { throw .noAnswer("\(path) does not speak HTTP") }
                    continue
                }
                let words = String(decoding: waiting.prefix(16), as: UTF8.self).split(separator: " ")
                let rest = Array(waiting[end...])
                guard words.count >= 2, let status = Int(words[1].prefix(3)) else {
                    throw .noAnswer("\(path) does not speak HTTP")
                }
                guard status == 200 else {
                    let body = rest + (try receive(from: descriptor, until: deadline))
                    throw .refused(status, AgentSocket.reason(in: String(decoding: body, as: UTF8.self)))
                }
                waiting = rest
                hasHead = true
            }
            while let end = waiting.firstIndex(of: 0x0A) {
                line(String(decoding: waiting[..<end], as: UTF8.self))
                waiting.removeFirst(end + 1)
            }
            guard waiting.count <= largestLine else {
                throw .noAnswer("a line of \(path) is longer than \(largestLine) bytes")
            }
        }
    }

    /// Whether there is something to read, or the end.
    private func isReadable(_ descriptor: Int32) -> Bool {
        var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return poll(&entry, 1, 0) > 0
    }

    /// What an answer says of the reason of a refusal; empty if it says nothing.
    private static func reason(in body: String) -> String {
        guard case .object(let members)? = JSONText.read(body), case .object(let error)? = members["error"],
            case .string(let text)? = error["message"]
        else { return "" }
        return text
    }

    /// The number of bytes of a response's head, with the empty line at its end; nil until it is complete.
    private static func endOfHead(_ bytes: [UInt8]) -> Int? {
        let end = Array("\r\n\r\n".utf8)
        return bytes.indices.first { bytes[$0...].starts(with: end) }.map { $0 + end.count }
    }

    /// Connects. A local socket connects at once or fails, so this needs no deadline.
    private func connect() throws(Failure) -> Int32 {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        guard !bytes.isEmpty, bytes.count < MemoryLayout.size(ofValue: address.sun_path) else {
            throw .notAvailable("\(path) is not a socket's path")
        }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let descriptor = streamSocket()
        guard descriptor >= 0 else { throw .notAvailable("socket: \(systemMessage(errno))") }
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                systemConnect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard result == 0 else {
            let number = errno
            close(descriptor)
            throw .notAvailable("\(path): \(systemMessage(number))")
        }
        return descriptor
    }

    /// Sends all bytes.
    private func send(_ bytes: [UInt8], to descriptor: Int32, until deadline: Int64) throws(Failure) {
        var rest = bytes[...]
        while !rest.isEmpty {
            try wait(for: POLLOUT, descriptor, until: deadline)
            let count = rest.withUnsafeBytes { sendQuietly(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw .noAnswer("\(path): \(systemMessage(errno))") }
            rest = rest.dropFirst(count)
        }
    }

    /// Reads until the agent closes the connection.
    private func receive(from descriptor: Int32, until deadline: Int64) throws(Failure) -> [UInt8] {
        var answer: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            try wait(for: POLLIN, descriptor, until: deadline)
            let count = read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw .noAnswer("\(path): \(systemMessage(errno))") }
            guard count > 0 else { return answer }
            answer += buffer[..<count]
            guard answer.count <= AgentSocket.largestAnswer else {
                throw .noAnswer("the answer at \(path) is larger than \(AgentSocket.largestAnswer) bytes")
            }
        }
    }

    /// Waits until the descriptor is ready.
    private func wait(for events: some BinaryInteger, _ descriptor: Int32, until deadline: Int64)
        throws(Failure)
    {
        while true {
            let left = deadline - steadyNanoseconds()
            guard left > 0 else { throw .noAnswer("the agent at \(path) took too long to answer") }
            var entry = pollfd(fd: descriptor, events: Int16(events), revents: 0)
            // Rounded up: with 0 ms the last millisecond would be a busy loop. At most a minute, which Int32
            // holds.
            let result = poll(&entry, 1, Int32(min(left / 1_000_000 + 1, 60_000)))
            if result > 0 { return }
            guard result == 0 || errno == EINTR else { throw .noAnswer("\(path): \(systemMessage(errno))") }
        }
    }
}
