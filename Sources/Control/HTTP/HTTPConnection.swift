internal import EventLoops

/// One connection of an `HTTPServer`; touched on the server's loop only.
final class HTTPConnection {
    enum Phase: Equatable {
        case receiving
        case answering
        /// The answer, or what there is of it, goes out.
        case writing
        /// The answer is out, and what the client still sends is thrown away: closing at once would take the answer along.
        case draining
    }

    let id: UInt
    let socket: Descriptor
    /// The process at the other end, if the kernel identifies it.
    let peer: PeerCredentials?
    /// Whom it is counted for: a user, or an address.
    let owner: String
    var phase = Phase.receiving
    /// When it is cut unless something happens; nil while a handler is at work.
    var deadline: BootInstant?

    var input: [UInt8] = []
    /// How much of the input has been searched for the end of the headers.
    var scanned = 0
    var head: HTTPRequestHead?
    var body: HTTPBodyReader?
    var hasEnded = false

    var output: [UInt8] = []
    var sent = 0
    var task: Task<Void, Never>?
    var closesAfter = false
    /// Whether the client is told where each piece ends.
    var isChunked = false
    var isStreaming = false
    var writer: CheckedContinuation<Bool, Never>?

    init(id: UInt, socket: consuming Descriptor, peer: PeerCredentials?, owner: String) {
        self.id = id
        self.socket = socket
        self.peer = peer
        self.owner = owner
    }

    var waiting: Int { output.count - sent }

    var isIdle: Bool { phase == .receiving && head == nil && input.isEmpty }

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
