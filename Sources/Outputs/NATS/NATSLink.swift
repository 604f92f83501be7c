internal import EventLoops
internal import Model

/// One connection to a server: bytes in, operations out. It decides nothing; its client does. On its
/// client's loop.
final class NATSLink {
    /// The steps of opening a connection.
    enum Phase {
        /// The server's `INFO` is awaited.
        case greeting
        /// TLS is being set up.
        case handshaking
        /// `CONNECT` and `PING` were sent; `PONG` is awaited.
        case welcoming
        /// Messages may be sent.
        case ready
    }

    let id: UInt64
    let address: NATSAddress
    /// The client's generation when the connection was made.
    let generation: Int
    /// When the connection was made; limits its age (`max_connection_age`).
    let openedAt: BootInstant
    /// The step of opening.
    var phase = Phase.greeting
    /// The server's latest `INFO`; nil before the first.
    var info: NATSInfo?
    /// Whether no new messages are sent: the connection closes after its last acknowledgement.
    var isLeaving = false
    /// The call that waits for the opening; resumed with nil when the connection is ready, or with the
    /// refusal.
    var opening: CheckedContinuation<Outcome?, Never>?
    /// Limits the opening to `connectTimeout`.
    var openingTimer: EventLoop.TimerID?
    /// Messages without an acknowledgement: the id of the call, by the last word of the reply's subject.
    var awaited: [UInt64: UInt64] = [:]
    /// When the server last sent anything.
    var lastHeard: BootInstant

    private let stream: SecureStream
    private var parser = NATSParser()

    /// Takes ownership of a connected socket.
    init(
        _ id: UInt64, to address: NATSAddress, socket: Int32, generation: Int, on loop: EventLoop,
        at now: BootInstant
    ) {
        self.id = id
        self.address = address
        self.generation = generation
        stream = SecureStream(socket, to: address.host, on: loop)
        openedAt = now
        lastHeard = now
    }

    var isEncrypted: Bool { stream.isEncrypted }
    var isOpen: Bool { stream.isOpen }
    /// Whether bytes wait because the kernel's send buffer is full.
    var hasUnsent: Bool { stream.hasUnsent }
    var peerExpiry: Timestamp? { stream.peerExpiry }
    /// Whether bytes of the server were not handled yet. In clear text before TLS they are an attack.
    var hasUnread: Bool { parser.keptBytes > 0 }

    func close() { stream.close() }

    func watch(_ handler: @escaping (EventLoop.Readiness) -> Void) -> Failure? { stream.watch(handler) }

    func begin(_ session: TLSSession) {
        stream.begin(session)
        phase = .handshaking
    }

    /// Continues the TLS handshake; nil if none is under way.
    func shakeHands() -> TLSSession.Handshake? { phase == .handshaking ? stream.shakeHands() : nil }

    /// Queues bytes to be sent.
    func say(_ bytes: [UInt8]) -> Failure? { stream.say(bytes) }

    /// Sends what the kernel accepts; returns the failure if the connection is broken.
    func flush() -> Failure? { stream.flush() }

    /// Reads what has arrived. After a failure `next` may still return operations that came before it.
    func receive(at now: BootInstant) -> Failure? {
        let received = stream.receive()
        if received.wasHeard {
            lastHeard = now
        }
        if !received.clear.isEmpty {
            parser.append(received.clear)
        }
        return received.failure
    }

    /// Passes decrypted bytes to the parser; returns the failure if TLS has ended.
    func decrypt() -> Failure? {
        let (bytes, end) = stream.decrypt()
        parser.append(bytes)
        return end
    }

    /// The next operation; nil until more has arrived.
    func next() throws(NATSProtocolError) -> NATSOperation? { try parser.next() }
}
