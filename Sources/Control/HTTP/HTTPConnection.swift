internal import EventLoops

/// One connection of an `HTTPServer`; touched on the server's loop only.
final class HTTPConnection {
    /// The phases of a connection.
    enum Phase: Equatable {
        /// A request is awaited or arriving.
        case receiving
        /// The handler is working.
        case answering
        /// The answer, or what exists of it, is being sent.
        case writing
        /// The answer is out. Further bytes of the client are dropped, because closing at once could
        /// destroy the answer.
        case draining
    }

    let id: UInt
    let socket: Descriptor
    /// The process at the other end; nil if the kernel does not identify it (TCP).
    let peer: PeerCredentials?
    /// The user or the address that the connection counts for when places are scarce.
    let owner: String
    var phase = Phase.receiving
    /// When the connection is cut; nil while a handler works, which has no limit.
    var deadline: BootInstant?

    /// Bytes of the client that are not processed yet.
    var input: [UInt8] = []
    /// Bytes of `input` that were searched for the end of the headers.
    var scanned = 0
    /// The request's head once it is complete.
    var head: HTTPRequestHead?
    /// Collects the request's body.
    var body: HTTPBodyReader?
    /// Whether the client has closed its side.
    var hasEnded = false

    /// Bytes to send; the first `sent` of them are sent.
    var output: [UInt8] = []
    /// Bytes of `output` that the kernel has accepted.
    var sent = 0
    /// The handler, or the writer of a stream; cancelled with the connection.
    var task: Task<Void, Never>?
    /// Whether the connection closes after this answer.
    var closesAfter = false
    /// Whether a stream is sent in chunks (HTTP/1.1), by which the client recognises its end.
    var isChunked = false
    /// Whether a stream's writer is still at work.
    var isStreaming = false
    /// A writer that waits for room; resumed with false if the client is gone.
    var writer: CheckedContinuation<Bool, Never>?

    init(id: UInt, socket: consuming Descriptor, peer: PeerCredentials?, owner: String) {
        self.id = id
        self.socket = socket
        self.peer = peer
        self.owner = owner
    }

    /// Bytes that are not sent yet.
    var waiting: Int { output.count - sent }

    /// Whether no byte of a request was received.
    var isIdle: Bool { phase == .receiving && head == nil && input.isEmpty }

    /// Prepares for the next request on the connection.
    func beginAnew() {
        phase = .receiving
        scanned = 0
        head = nil
        body = nil
        task = nil
        isChunked = false
        isStreaming = false
    }
}
