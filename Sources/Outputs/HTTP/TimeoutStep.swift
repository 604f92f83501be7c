/// The step at which a request timed out. Each step has its own causes, so the message names it.
enum TimeoutStep: Equatable {
    /// What is known about a request at its timeout.
    struct Facts {
        /// Whether the name was resolved.
        var isResolved = true
        /// Whether the connection is established.
        var isConnected = true
        /// Whether a proxy has yet to connect to the destination.
        var awaitsProxy = false
        /// Whether TLS is spoken, and its handshake is not complete.
        var awaitsTLS = false
        /// Bytes of the body.
        var size = 0
        /// Bytes of the body that the library has given to the kernel.
        var written = 0
        /// Nil if the kernel's state of the connection is unknown.
        var connection: TCPState?
        /// How long the agent's thread was ready to run without getting a CPU.
        var starved = Duration.zero
        /// Time after which the request is given up.
        let limit: Duration

        init(limit: Duration) { self.limit = limit }
    }

    /// The agent did not get enough CPU time to serve its connection.
    case starved(Duration)
    /// The name was not resolved.
    case name
    /// The other machine has not acknowledged the request for a connection.
    case connecting
    /// The proxy accepted the connection and did not answer CONNECT.
    case proxy
    /// The TLS handshake was not completed.
    case handshake(Handshake)
    /// Part of the body was acknowledged.
    case sending(acknowledged: Int, of: Int, Obstacle)
    /// The other machine acknowledged all bytes of the request.
    case answer(size: Int)
    /// All bytes are written; the kernel's state is unknown.
    case unknown

    /// Why a handshake was not completed.
    enum Handshake: Equatable {
        /// The other machine acknowledged the greeting and sent nothing.
        case silent
        /// Bytes of this machine are not acknowledged.
        case lost
        /// Small packets of the other machine arrived and large ones before them did not.
        case largePacketsMissing
        /// The handshake began, and no other case applies.
        case unfinished
    }

    /// Why a body was not sent completely.
    enum Obstacle: Equatable {
        /// Packets are sent again and again without an acknowledgement.
        case lost
        /// The receiver acknowledges, and has no room for more: its program does not read.
        case unread
        /// Bytes are still on their way.
        case slow
    }

    /// Finds the step; the order of the checks follows a request from its beginning.
    init(_ facts: Facts) {
        // A machine that gets little CPU time looks like a slow network: this comes first.
        if facts.starved >= .seconds(1), facts.starved * 2 >= facts.limit {
            self = .starved(facts.starved)
        } else if !facts.isResolved {
            self = .name
        } else if !facts.isConnected {
            self = .connecting
        } else if facts.awaitsProxy {
            self = .proxy
        } else if facts.awaitsTLS {
            self = .handshake(TimeoutStep.handshake(facts.connection))
        } else {
            self = TimeoutStep.request(facts)
        }
    }

    /// The state of an unfinished handshake. Large packets that are missing while small ones arrive show a
    /// path whose MTU is too small (RFC 2923, section 2.1).
    private static func handshake(_ connection: TCPState?) -> Handshake {
        guard let connection else { return .unfinished }
        if connection.retransmissions > 0 { return .lost }
        if connection.outOfOrder > 0 { return .largePacketsMissing }
        return connection.received == 0 ? .silent : .unfinished
    }

    /// Most bytes of TLS's closing record. libcurl queues it before it closes the socket, so it may be
    /// unacknowledged although all of the request was acknowledged.
    private static let goodbye = 100

    /// The step of a request that was being sent or waited for its answer.
    private static func request(_ facts: Facts) -> TimeoutStep {
        guard let connection = facts.connection else { return .unknown }
        // The kernel's queue also holds TLS overhead and the head, so this counts too few acknowledged
        // bytes, never too many.
        let acknowledged = max(0, facts.written - connection.unacknowledged)
        let isWritten = facts.written >= facts.size
        let isGoodbye = connection.unacknowledged <= goodbye && connection.inFlight > 0
        if isWritten, connection.unacknowledged == 0 || isGoodbye && connection.retransmissions == 0 {
            return .answer(size: facts.size)
        }
        let obstacle: Obstacle =
            if connection.inFlight > 0, connection.retransmissions > 0 {
                .lost
            } else if connection.inFlight == 0 {
                .unread
            } else {
                .slow
            }
        return .sending(acknowledged: acknowledged, of: facts.size, obstacle)
    }

    /// What happened and what to do, as a complete message.
    func words(for host: String) -> String {
        switch self {
        case .starved(let wait):
            "no answer from \(host) in time:"
                + " the agent itself waited \(wait.components.seconds) s for the CPU:"
                + " see the CPU limit of its unit or container (cpu.max),"
                + " and the machine's load"
        case .name:
            "the name of \(host) was not resolved in time: do the name servers answer?"
        case .connecting:
            "no connection to \(host) in time:"
                + " nothing answers the request for a connection (TCP SYN):"
                + " the machine is off, or a firewall drops it"
        case .proxy:
            "no connection to \(host) in time:"
                + " the proxy accepted the connection and did not answer CONNECT"
        case .handshake(let handshake):
            "no TLS with \(host) in time: the connection was made,"
                + " \(TimeoutStep.words(handshake))"
        case .sending(let acknowledged, let size, let obstacle):
            "no answer from \(host) in time (request_timeout):"
                + " \(acknowledged) of \(size) bytes were acknowledged, \(TimeoutStep.words(obstacle))"
        case .answer(let size):
            "no answer from \(host) in time (request_timeout):"
                + " its machine acknowledged all \(size) bytes of the request, its program did not answer"
        case .unknown:
            "no answer from \(host) in time (request_timeout)"
        }
    }

    /// The part of the message about a handshake.
    private static func words(_ handshake: Handshake) -> String {
        switch handshake {
        case .silent:
            "the handshake was acknowledged and not answered:"
                + " the server hangs or is overloaded, or this port does not speak TLS"
        case .lost:
            "then packets were lost: the handshake is sent again and again without an acknowledgement"
        case .largePacketsMissing:
            "then large packets of the server did not arrive and small ones did:"
                + " the path's MTU is smaller than the network interface's, and a router does not say so"
        case .unfinished:
            "and the server did not finish the handshake"
        }
    }

    /// The part of the message about a body that was not sent completely.
    private static func words(_ obstacle: Obstacle) -> String {
        switch obstacle {
        case .lost:
            "then packets were lost: if small batches arrive, the path's MTU is smaller than the network"
                + " interface's; otherwise the network or a firewall drops them"
        case .unread:
            "then the receiver had no room for more: its program does not read"
        case .slow:
            "the network is too slow for the batch: lower batch_size or raise request_timeout"
        }
    }
}
