internal import EventLoops
internal import Model

/// Publishes messages to a JetStream subject over one connection, and waits for their acknowledgements.
///
/// The connection is made when the first message wants it, to one server after the other until one takes us; it is kept,
/// and costs nothing while nobody says anything. There are no timers but those of calls that wait: the server asks whether
/// we live, and is answered. Lives on the loop that it is given.
actor NATSClient: LoopActor {
    /// How many messages of one call are on their way at once: more than fill the wire, fewer than fill a server's queue.
    static let window = 512

    nonisolated let loop: EventLoop
    let settings: DestinationSettings
    let version: String
    let time: any TimeSource
    let http: HTTPClient
    let servers: [NATSAddress]
    var tls: TLSMaterial.Contents
    var identity: NATSIdentity
    /// Counts changes of certificates and credentials.
    var generation = 0

    var links: [UInt64: NATSLink] = [:]
    var current: NATSLink?
    var isOpening = false
    var nextLink: UInt64 = 0
    /// Why the last attempt to connect failed.
    var lastRefusal: Failure?
    var firstServer: Int
    /// Servers that others told of.
    var learned: [NATSAddress] = []
    /// When the certificate that a server last showed ends; nil before a handshake.
    var serverExpiry: Timestamp?

    private var tickets: [UInt64: NATSTicket] = [:]
    /// Those that wait for a connection, in their order.
    private var waiting: [UInt64] = []
    private var lastID: UInt64 = 0
    private var lastToken: UInt64 = 0
    /// Acknowledgements come to the subjects below it.
    let inbox: String

    /// - Throws: `OutputError` with code `library` for want of memory.
    init(
        _ settings: DestinationSettings, _ servers: [NATSAddress], version: String, tls: TLSMaterial.Contents,
        identity: NATSIdentity, on loop: EventLoop, time: any TimeSource
    ) throws(OutputError) {
        (self.servers, self.settings, self.version, self.tls) = (servers, settings, version, tls)
        (self.identity, self.loop, self.time) = (identity, loop, time)
        http = try HTTPClient(on: loop, settings: TransferSettings(options: settings.natsConnection, tls: .init()))
        let random = KernelRandom()
        firstServer = Int(random.next() % UInt64(servers.count))
        inbox = "\(settings.nats.inboxPrefix).\(String(random.next(), radix: 36))\(String(random.next(), radix: 36))"
    }

    /// Other certificates and credentials: what is on its way ends as it began, everything else goes over a new connection.
    func use(_ tls: TLSMaterial.Contents, _ identity: NATSIdentity) {
        self.tls = tls
        self.identity = identity
        generation += 1
    }

    /// Publishes messages, or only connects without any; waits for `requestTimeout`, or until its task is cancelled.
    func publish(_ messages: [NATSMessage]) async -> TicketReport {
        lastID += 1
        let id = lastID
        return await cancellable {
            begin(NATSTicket(id, messages, $0))
        } onCancel: {
            $0.finish(id, nil)
        }
    }

    private func begin(_ ticket: NATSTicket) {
        tickets[ticket.id] = ticket
        let id = ticket.id
        ticket.timer = after(settings.requestTimeout) { $0.timeOut(id) }
        if let link = usableLink() {
            start(ticket, over: link)
        } else {
            waiting.append(id)
            open()
        }
    }

    /// The connection, if it is one that may be used again.
    private func usableLink() -> NATSLink? {
        guard let link = current, link.isOpen else { return nil }
        let isOld = time.bootTime - link.openedAt >= settings.maxConnectionAge
        guard !isOld, link.generation == generation, !link.isLeaving else {
            retire(link)
            return nil
        }
        return link
    }

    var isWanted: Bool { !waiting.isEmpty }

    /// There is a connection, or none can be made.
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

    private func start(_ ticket: NATSTicket, over link: NATSLink) {
        ticket.link = link
        pump(ticket)
    }

    /// Sends as many as may be on their way.
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
                "HPUB \(message.subject) \(inbox).\(lastToken) \(message.headers.count) \(message.size)\r\n".utf8)
            bytes.append(contentsOf: message.headers)
            bytes.append(contentsOf: message.payload)
            bytes.append(contentsOf: "\r\n".utf8)
            if let failure = link.say(bytes) { return fail(link, .retry(failure)) }
        }
        if ticket.isSettled { finish(ticket.id, nil) }
        flush(link)
    }

    func take(_ headers: [UInt8], _ payload: [UInt8], subject: String, from link: NATSLink) {
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
                headers: headers, payload: payload, wireBytes: message.size, subject: settings.nats.subject.text)
            if outcome == .acknowledged, JSONSlice(payload[...])?["duplicate"]?.boolean == true {
                ticket.repeats.append(index)
            }
            ticket.settle(index, outcome)
        }
        pump(ticket)
    }

    /// The server does not let us publish: nothing of what is on its way will be answered.
    func refuse(_ outcome: Outcome, over link: NATSLink) {
        for id in Set(link.awaited.values) {
            // They were not stored.
            tickets[id]?.awaited.removeAll()
            finish(id, outcome)
        }
        link.awaited.removeAll()
    }

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
        // A server that says nothing at all is gone, or hangs: the next attempt is better off with another connection.
        // So it is with one that reads nothing, whatever it says: what is to be sent would pile up.
        if !wasHeard || link.hasUnsent { fail(link, .retry(failure)) }
    }

    /// Ends a call; messages without an outcome get this one.
    func finish(_ id: UInt64, _ rest: Outcome?) {
        guard let ticket = tickets.removeValue(forKey: id) else { return }
        if let timer = ticket.timer { loop.cancel(timer) }
        waiting.removeAll { $0 == id }
        for token in ticket.awaited.keys { ticket.link?.awaited[token] = nil }
        ticket.finish(rest)
        if let link = ticket.link, link.isLeaving, link.awaited.isEmpty { drop(link) }
    }
}
