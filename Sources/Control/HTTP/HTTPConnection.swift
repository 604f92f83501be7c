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
    let channel: HTTPChannel
    /// The process at the other end; nil if the kernel does not identify it (TCP).
    let peer: PeerCredentials?
    /// The user or the address that the connection counts for when places are scarce.
    let owner: String
    var phase = Phase.receiving
    /// When the connection is cut; nil while a handler works, which has no limit.
    var deadline: BootInstant?

    /// Answers the request that arrives; nil until its head is complete, or if the connection is to be reset.
    var handler: Reception.Handler?
    /// The request that arrives, and the bytes after it.
    var request = IncomingRequest()
    /// The bytes of the answer that is being sent.
    var output = OutgoingBytes()
    /// The handler, or the writer of a stream; cancelled with the connection.
    var task: Task<Void, Never>?
    /// Whether the connection closes after this answer.
    var closesAfter = false
    /// The stream whose writer is still at work.
    var stream: Stream?

    /// An answer that a handler writes piece by piece.
    struct Stream {
        /// Whether the body is sent in chunks (HTTP/1.1), which tell the client where it ends.
        let isChunked: Bool
        /// The writer that waits for room; resumed with false if the client is gone.
        var writer: CheckedContinuation<Bool, Never>?
    }

    init(id: UInt, channel: consuming HTTPChannel, peer: PeerCredentials?, owner: String) {
        self.id = id
        self.channel = channel
        self.peer = peer
        self.owner = owner
    }

    /// Whether no byte of a request was received.
    var isIdle: Bool { phase == .receiving && request.isEmpty }

    /// Ends the stream; a writer that still waits learns that nothing more is sent.
    func endStream() {
        stream?.writer?.resume(returning: false)
        stream = nil
    }

    /// The connection's claim to its place.
    var claim: Claim {
        let isClosable = phase == .answering ? request.hasUnread : stream == nil
        return Claim(id: id, owner: owner, isIdle: isIdle, isClosable: isClosable)
    }

    /// Prepares for the next request on the connection.
    func beginAnew() {
        phase = .receiving
        request.beginAnew()
        handler = nil
        task = nil
        stream = nil
    }
}
