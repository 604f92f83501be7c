/// The request that arrives on a connection, and the bytes after it: what is read, what is complete, and what
/// is refused. It knows nothing of sockets.
struct IncomingRequest {
    /// Bytes of the client that are not processed yet.
    private var input: [UInt8] = []
    /// Bytes of `input` that were searched for the end of the headers.
    private var scanned = 0
    /// The head; nil until it is complete.
    private(set) var head: HTTPRequestHead?
    /// Collects the body, after the head.
    private var body: HTTPBodyReader?

    /// Whether no byte of a request was received.
    var isEmpty: Bool { head == nil && input.isEmpty }

    /// Whether bytes wait that no request has claimed so far.
    var hasUnread: Bool { !input.isEmpty }

    /// Bytes of the body so far.
    var bodyBytes: Int { body?.body.count ?? 0 }

    /// Adds bytes of the client.
    mutating func add(_ bytes: some Sequence<UInt8>) { input.append(contentsOf: bytes) }

    /// Drops what was received, also of the body.
    mutating func drop() {
        input = []
        body = nil
    }

    /// Begins the next request with the bytes that are left.
    mutating func beginAnew() {
        scanned = 0
        head = nil
        body = nil
    }

    /// Removes a complete head from the input; nil until it is complete. Each byte is looked at once
    /// (`scanned`), so slow clients cost no quadratic time.
    ///
    /// - Parameter limit: largest request line with headers, in bytes.
    mutating func readHead(limit: Int) throws(ControlRefusal) -> HTTPRequestHead? {
        // RFC 9112, section 2.2: an empty line before a request is ignored.
        while scanned == 0, input.starts(with: [13, 10]) { input.removeFirst(2) }
        for index in scanned..<input.count {
            let byte = input[index]
            guard byte >= 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 else {
                throw .bad("this is not HTTP")
            }
            guard byte == 0x0A else { continue }
            guard index > 0, input[index - 1] == 0x0D else { throw .bad("each line must end with CR LF") }
            guard index >= 3, input[index - 2] == 0x0A else { continue }
            guard index < limit else { throw IncomingRequest.headersTooLarge(limit) }
            let text = input[..<(index - 1)]
            input.removeFirst(index + 1)
            scanned = 0
            head = try HTTPRequestHead(text)
            return head
        }
        scanned = input.count
        guard input.count <= limit else { throw IncomingRequest.headersTooLarge(limit) }
        return nil
    }

    /// Begins the body of the head's length; returns whether the client waits for `100 Continue`.
    ///
    /// - Parameter limit: largest body in bytes.
    mutating func beginBody(limit: Int) throws(ControlRefusal) -> Bool {
        guard let head else { return false }
        let body = try HTTPBodyReader(head.length, limit: limit)
        self.body = body
        return head.expectsContinue && !body.isDone && input.isEmpty
    }

    /// Moves the bytes of the body from the input; true when the body is complete.
    mutating func readBody() throws(ControlRefusal) -> Bool { try body?.read(from: &input) == true }

    /// Gives the complete body away.
    mutating func takeBody() -> [UInt8] {
        defer { body = nil }
        return body?.body ?? []
    }

    private static func headersTooLarge(_ limit: Int) -> ControlRefusal {
        ControlRefusal(431, "too_large", "the headers are larger than \(limit) bytes")
    }
}
