internal import EventLoops
internal import Model

/// Publishes messages to a JetStream subject over one connection, and waits for their acknowledgements.
///
/// The connection is made when the first message needs it, to the first server that accepts the agent, and
/// is kept. No timers run except those of waiting calls, so that an idle destination never wakes the
/// process; the server checks the connection with `PING`, and is answered. `NATSClient+Connecting` opens
/// and closes connections; this file sends and matches acknowledgements. Runs on the loop passed to `init`.
actor NATSClient: LoopActor {
    /// Most messages of one call without an acknowledgement: enough to fill the network, and less than a
    /// server's queue.
    static let window = 512

    nonisolated let loop: EventLoop
    let options: NATSOptions
    /// The agent's version, sent in `CONNECT`.
    let version: String
    let time: any TimeSource
    /// Makes the connections: libcurl knows proxies, name resolution and both IP versions.
    let http: HTTPClient
    /// The servers, in the order in which they are tried.
    var servers: NATSServers
    /// Certificates and credentials for the next connection.
    private(set) var access: Access

    /// What a connection is opened with.
    struct Access {
        /// Certificates.
        var tls: TLSMaterial.Contents
        /// Credentials.
        var identity: NATSIdentity
        /// Counts changes of the two; a connection of an older generation gets no new messages.
        var generation = 0
    }

    /// All connections, by id: the current one, and those that wait for their last acknowledgements.
    var links: [UInt64: NATSLink] = [:]
    /// The connection for new messages; nil if it must be made.
    var current: NATSLink?
    /// Whether a connection is being made.
    var isOpening = false
    /// Id of the latest connection.
    var nextLink: UInt64 = 0
    /// Why the last attempt to connect failed; the reason for calls that time out while they wait.
    var lastRefusal: Failure?
    /// Expiry of the certificate that a server last presented; nil before a handshake.
    var serverExpiry: Timestamp?

    /// Calls that wait, by id.
    private var tickets: [UInt64: NATSTicket] = [:]
    /// Ids of the calls that wait for a connection, in order.
    private var waiting: [UInt64] = []
    /// Id of the latest call.
    private var lastID: UInt64 = 0
    /// Number of the latest message; the last word of the subject to which its acknowledgement comes.
    private var lastToken: UInt64 = 0
    /// Prefix of the subjects to which acknowledgements come. Random, so that no other client has the same,
    /// and none can guess it.
    let inbox: String

    /// - Throws: `OutputError` with code `library` if there is no memory.
    init(
        _ options: NATSOptions, _ servers: [NATSAddress], version: String, tls: TLSMaterial.Contents,
        identity: NATSIdentity, on loop: EventLoop, time: any TimeSource
    ) throws(OutputError) {
        self.options = options
        self.version = version
        access = Access(tls: tls, identity: identity)
        self.loop = loop
        self.time = time
        http = try HTTPClient(
            on: loop, settings: TransferSettings(options: options.settings.bareConnection, tls: .init()))
        let random = KernelRandom()
        self.servers = NATSServers(servers, draw: random.next())
        inbox =
            "\(options.nats.inboxPrefix).\(String(random.next(), radix: 36))\(String(random.next(), radix: 36))"
    }

    /// Uses other certificates and credentials: messages under way are finished on the old connection, new
    /// ones go over a new connection.
    func use(_ tls: TLSMaterial.Contents, _ identity: NATSIdentity) {
        access = Access(tls: tls, identity: identity, generation: access.generation + 1)
    }

    /// Publishes messages; with an empty array it only connects. Ends within `requestTimeout`, or at once
    /// when its task is cancelled.
    func publish(_ messages: [NATSMessage]) async -> TicketReport {
        lastID += 1
        let id = lastID
        return await cancellable {
            begin(NATSTicket(id, messages, $0))
        } onCancel: {
            $0.finish(id, nil)
        }
    }

    /// Registers a call, and starts it over the connection or when there is one.
    private func begin(_ ticket: NATSTicket) {
        tickets[ticket.id] = ticket
        let id = ticket.id
        ticket.timer = after(options.settings.requestTimeout) { $0.timeOut(id) }
        if let link = usableLink() {
            start(ticket, over: link)
        } else {
            waiting.append(id)
            open()
        }
    }

    /// The current connection, if it may be used for new messages; otherwise retires it.
    private func usableLink() -> NATSLink? {
        guard let link = current, link.isOpen else { return nil }
        let isOld = time.bootTime - link.openedAt >= options.settings.maxConnectionAge
        guard !isOld, link.generation == access.generation, !link.isLeaving else {
            retire(link)
            return nil
        }
        return link
    }

    /// Whether any call waits for a connection.
    var isWanted: Bool { !waiting.isEmpty }

    /// A connection was made, or could not be made: starts or ends the waiting calls.
    func opened(_ link: NATSLink?, or refusal: Outcome?) {
        let ids = waiting
        waiting = []
        for id in ids {
            guard let ticket = tickets[id] else { continue }
            if let link, link.isOpen {
                start(ticket, over: link)
            } else {
                finish(id, refusal)
            }
        }
    }

    /// Binds a call to a connection and starts to send.
    private func start(_ ticket: NATSTicket, over link: NATSLink) {
        ticket.link = link
        pump(ticket)
    }

    /// Sends messages until the window is full. A message beyond the server's `max_payload` is not sent:
    /// the server would close the connection.
    private func pump(_ ticket: NATSTicket) {
        guard let link = ticket.link, link.isOpen else { return }
        let limit = link.info?.maxPayload ?? NATSInfo.usualPayload
        while ticket.next < ticket.items.count, ticket.awaited.count < NATSClient.window {
            let index = ticket.next
            let message = ticket.items[index]
            ticket.next += 1
            guard message.size <= limit else {
                let failure = Failure(
                    kind: .status, status: 413,
                    message: "\(link.address.host) accepts messages of at most \(limit) bytes (max_payload)")
                ticket.settle(index, .tooLarge(wireBytes: message.size, failure))
                continue
            }
            lastToken += 1
            ticket.awaited[lastToken] = index
            link.awaited[lastToken] = ticket.id
            ticket.lastSent = time.bootTime
            ticket.sentBytes += message.payload.count
            var bytes = Array(
                "HPUB \(message.subject) \(inbox).\(lastToken) \(message.headers.count) \(message.size)\r\n"
                    .utf8)
            bytes.append(contentsOf: message.headers)
            bytes.append(contentsOf: message.payload)
            bytes.append(contentsOf: "\r\n".utf8)
            if let failure = link.say(bytes) { return fail(link, .retry(failure)) }
        }
        if ticket.isSettled {
            finish(ticket.id, nil)
        }
        flush(link)
    }

    /// Matches a reply with its message by the last word of the subject, and sends the next ones.
    func matchReply(_ headers: [UInt8], _ payload: [UInt8], subject: String, from link: NATSLink) {
        guard subject.hasPrefix("\(inbox)."), let token = UInt64(subject.dropFirst(inbox.count + 1)),
            let id = link.awaited.removeValue(forKey: token), let ticket = tickets[id],
            let index = ticket.awaited.removeValue(forKey: token)
        else { return }  // Late: its call has ended.
        let message = ticket.items[index]
        if message.isQuestion {
            ticket.answer = payload
            ticket.settle(index, .acknowledged)
        } else {
            let outcome = NATSAnswer.outcome(
                headers: headers, payload: payload, wireBytes: message.size,
                subject: options.nats.subject.text)
            if outcome == .acknowledged, JSONSlice(payload[...])?["duplicate"]?.boolean == true {
                ticket.repeats.append(index)
            }
            ticket.settle(index, outcome)
        }
        pump(ticket)
    }

    /// The server forbids our subject: no message under way will be acknowledged, and none was stored.
    func refuse(_ outcome: Outcome, over link: NATSLink) {
        for id in Set(link.awaited.values) {
            // Not stored: the batch must not be noted as possibly stored.
            tickets[id]?.awaited.removeAll()
            finish(id, outcome)
        }
        link.awaited.removeAll()
    }

    /// Ends a call whose time is over.
    private func timeOut(_ id: UInt64) {
        guard let ticket = tickets[id] else { return }
        ticket.timer = nil
        guard let link = ticket.link else {
            let late = Failure(kind: .timeout, message: "no connection in time (request_timeout)")
            return finish(id, .retry(lastRefusal ?? late))
        }
        let failure = Failure(
            kind: .timeout, message: "no acknowledgement from \(link.address.host) in time (request_timeout)")
        let wasHeard = ticket.lastSent.map { link.lastHeard >= $0 } ?? true
        finish(id, .retry(failure))
        // A server that sent nothing at all is gone or hangs: the next attempt needs another connection.
        // The same if bytes could not be sent: the next attempt would queue the same bytes again.
        if !wasHeard || link.hasUnsent {
            fail(link, .retry(failure))
        }
    }

    /// Ends a call; messages without an outcome get `remaining`.
    func finish(_ id: UInt64, _ remaining: Outcome?) {
        guard let ticket = tickets.removeValue(forKey: id) else { return }
        if let timer = ticket.timer {
            loop.cancel(timer)
        }
        waiting.removeAll { $0 == id }
        for token in ticket.awaited.keys { ticket.link?.awaited[token] = nil }
        ticket.finish(remaining)
        if let link = ticket.link, link.isLeaving, link.awaited.isEmpty {
            drop(link)
        }
    }
}
