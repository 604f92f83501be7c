internal import EventLoops
internal import Model

extension NATSClient {
    /// Connects to a server, unless that is under way.
    func open() {
        guard !isOpening else { return }
        isOpening = true
        Task(executorPreference: loop) { await self.tryServers() }
    }

    /// Tries the servers one after the other until one accepts the agent, then starts or ends the waiting
    /// calls.
    private func tryServers() async {
        var refusals: [Outcome] = []
        for (index, address) in servers.candidates.enumerated() {
            guard isWanted else { break }
            let (link, refusal) = await attempt(address)
            // The server may have closed the connection again before this task continues.
            if let link, link.isOpen {
                current = link
                lastRefusal = nil
                servers.prefer(address)
                break
            }
            let message = "\(address.host) accepted the agent and closed the connection"
            refusals.append(refusal ?? .retry(Failure(kind: .connection, message: message)))
            if index == 0 {
                servers.passFirst()
            }
        }
        isOpening = false
        let refusal = NATSClient.combined(refusals)
        if current == nil {
            lastRefusal = refusal?.failure
        }
        opened(current, or: refusal)
    }

    /// The common outcome of several servers' refusals. Only if all of them need a person, the destination
    /// is held: otherwise another attempt may find a server that works.
    static func combined(_ refusals: [Outcome]) -> Outcome? {
        let held = refusals.first { if case .held = $0 { true } else { false } }
        let others = refusals.filter { if case .held = $0 { false } else { true } }
        guard let other = others.first else { return held }
        if let failure = held?.failure { return .retry(failure) }
        return others.first { $0 != .offline } ?? other
    }

    /// Tries one server: connection, TLS, authentication, and its consent.
    private func attempt(_ address: NATSAddress) async -> (NATSLink?, Outcome?) {
        switch await http.perform(HTTPRequest(method: .connect, url: "http://\(address.authority)/")) {
        case .noRoute: return (nil, .offline)
        case .failed(let failure): return (nil, failure.outcome)
        case .answered(let answer):
            nextLink += 1
            let link = NATSLink(
                nextLink, to: address, socket: answer.socket, generation: access.generation, on: loop,
                at: time.bootTime)
            links[link.id] = link
            if let refusal = await opened(link) { return (nil, refusal) }
            return (link, nil)
        }
    }

    /// Waits until the server accepts the agent (nil) or the connection has failed.
    private func opened(_ link: NATSLink) async -> Outcome? {
        await withCheckedContinuation { continuation in
            link.opening = continuation
            let id = link.id
            link.openingTimer = after(options.settings.connectTimeout) { $0.giveUpOpening(id) }
            if options.nats.tlsFirst {
                beginTLS(link)
            }
            flush(link)
        }
    }

    /// Ends a connection whose server did not accept the agent within `connectTimeout`.
    private func giveUpOpening(_ id: UInt64) {
        guard let link = links[id], link.opening != nil else { return }
        link.openingTimer = nil
        fail(
            link, .timeout,
            "\(link.address.host) accepted the connection but did not answer in time:"
                + (link.phase == .greeting
                    ? " is it a NATS server, does it want tls_first?" : " does it hang?"))
    }

    // MARK: Events

    /// Reads what has arrived, handles complete operations, and sends waiting output. An end of the
    /// connection counts after the operations before it, which may be acknowledgements.
    private func linkIsReady(_ id: UInt64, _ ready: EventLoop.Readiness) {
        guard let link = links[id] else { return }
        var end: Failure?
        if !ready.isDisjoint(with: [.readable, .failed, .hungUp]) {
            end = link.receive(at: time.bootTime)
            if link.phase == .handshaking {
                goOnWithTLS(link)
            }
            if link.isOpen, let failure = link.decrypt() {
                end = end ?? failure
            }
            handleOperations(of: link)
        }
        guard link.isOpen else { return }
        if let end {
            fail(link, .retry(end))
        } else {
            flush(link)
        }
    }

    /// Handles all complete operations.
    private func handleOperations(of link: NATSLink) {
        do throws(NATSProtocolError) {
            // Bytes after the `INFO` that begins TLS came in clear text, and must not be treated as if they
            // had come over TLS: an attacker could have inserted them (CVE-2011-0411 describes this for
            // STARTTLS).
            while link.isOpen, link.phase != .handshaking, let operation = try link.next() {
                handle(operation, from: link)
            }
        } catch {
            fail(link, .protocolViolation, "what \(link.address.host) says is not NATS: \(error.message)")
        }
    }

    /// Handles an operation. The first `PONG` answers our `PING` after `CONNECT`: the server has accepted
    /// the credentials.
    private func handle(_ operation: NATSOperation, from link: NATSLink) {
        switch operation {
        case .info(let json): takeInfo(json, from: link)
        case .ping: say("PONG\r\n", over: link)
        case .pong where link.phase == .welcoming:
            link.phase = .ready
            endOpening(of: link, nil)
        case .pong, .ok: break
        case .message(let subject, let headers, let payload):
            matchReply(headers, payload, subject: subject, from: link)
        case .error(let text):
            let complaint = NATSComplaint(text, host: link.address.host)
            guard !complaint.isAboutPublishing else { return refuse(complaint.outcome, over: link) }
            // The server closes the connection; after an error about our credentials there is nothing to
            // wait for.
            fail(link, complaint.outcome)
        }
    }

    /// Handles `INFO`: notes the server's limits and other servers, and continues the opening with TLS or
    /// authentication.
    private func takeInfo(_ json: [UInt8], from link: NATSLink) {
        guard let info = NATSInfo(json) else {
            return fail(
                link, .protocolViolation,
                "what \(link.address.host) announces cannot be read: is it a NATS server?")
        }
        link.info = info
        if options.nats.followCluster {
            servers.learn(info.otherServers, from: link.address, isEncrypted: link.isEncrypted)
        }
        if info.isLeaving, link.phase == .ready {
            leave(link)
        }
        guard link.phase == .greeting else { return }
        guard info.hasHeaders else {
            return hold(link, "it does not support headers: NATS 2.2 or newer is required")
        }
        let address = link.address
        let wantsTLS =
            address.isTLS || info.requiresTLS || !address.isLoopback && !options.settings.allowPlainHTTP
        guard wantsTLS, !link.isEncrypted else { return introduce(link) }
        guard info.requiresTLS || info.offersTLS else {
            return hold(link, "it offers no TLS, and the agent sends nothing without it")
        }
        guard !link.hasUnread else {
            return fail(
                link, .protocolViolation, "\(address.host) continued in clear text where TLS should begin")
        }
        beginTLS(link)
    }

    /// Ends a connection for a reason that a person must resolve.
    private func hold(_ link: NATSLink, _ message: String) {
        fail(link, .held(Failure(kind: .protocolViolation, message: "\(link.address.host): \(message)")))
    }

    // MARK: TLS and authentication

    /// Starts TLS on a connection.
    private func beginTLS(_ link: NATSLink) {
        do throws(OutputError) {
            link.begin(try TLSSession(access.tls, options.settings.tls, host: link.address.verifiedName))
            goOnWithTLS(link)
        } catch {
            fail(link, error.failure.outcome)
        }
    }

    /// Continues the handshake, and authenticates when it is complete.
    private func goOnWithTLS(_ link: NATSLink) {
        switch link.shakeHands() {
        case nil, .pending: break
        case .failed(let failure):
            // The TLS alert that tells the server the reason should go out before the connection closes.
            _ = link.flush()
            fail(link, .retry(failure))
        case .done:
            serverExpiry = link.peerExpiry
            if options.nats.tlsFirst, link.info == nil {
                link.phase = .greeting
            } else {
                introduce(link)
            }
        }
    }

    /// Authenticates, subscribes to acknowledgements, and sends `PING`, whose answer shows that the server
    /// accepted all of that. `no_responders` makes the server answer at once if no stream listens to the
    /// subject.
    private func introduce(_ link: NATSLink) {
        guard let own = access.identity.members(nonce: link.info?.nonce) else {
            return hold(link, "it sent nothing to sign: it has no users with nkeys or JWTs")
        }
        var json = JSONText()
        json.raw(
            #"{"verbose":false,"pedantic":false,"protocol":1,"headers":true,"no_responders":true,"echo":false,"#
        )
        json.raw(#""lang":"swift","name":"spoolship","tls_required":"#)
        json.raw(link.isEncrypted ? "true," : "false,")
        json.member("version", version)
        for (name, value) in own { json.member(name, value) }
        json.close("}")
        link.phase = .welcoming
        say(
            "CONNECT \(String(decoding: json.bytes, as: UTF8.self))\r\nSUB \(inbox).* 1\r\nPING\r\n",
            over: link)
    }

    /// Ends the wait for the server's consent; does nothing after the first call.
    private func endOpening(of link: NATSLink, _ refusal: Outcome?) {
        if let timer = link.openingTimer {
            loop.cancel(timer)
        }
        link.openingTimer = nil
        link.opening?.resume(returning: refusal)
        link.opening = nil
    }

    // MARK: Ends

    /// Queues text; a failure ends the connection.
    private func say(_ text: String, over link: NATSLink) {
        if let failure = link.say(Array(text.utf8)) {
            fail(link, .retry(failure))
        }
    }

    /// Sends what the kernel accepts, and watches the connection.
    func flush(_ link: NATSLink) {
        guard link.isOpen else { return }
        let id = link.id
        var failure = link.flush()
        if failure == nil {
            failure = link.watch { [weak self] ready in self?.assumeIsolated { $0.linkIsReady(id, ready) } }
        }
        if let failure {
            fail(link, .retry(failure))
        }
    }

    /// The server is about to stop (lame duck mode): acknowledgements may still come, new messages go to
    /// another server.
    private func leave(_ link: NATSLink) {
        guard servers.candidates.count > 1 else { return }
        servers.pass(link.address)
        retire(link)
    }

    /// Sends no more messages over a connection, and closes it after the last acknowledgement.
    func retire(_ link: NATSLink) {
        link.isLeaving = true
        if current === link {
            current = nil
        }
        if link.awaited.isEmpty {
            drop(link)
        }
    }

    private func fail(_ link: NATSLink, _ kind: Failure.Kind, _ message: String) {
        fail(link, .retry(Failure(kind: kind, message: message)))
    }

    /// Ends a broken or useless connection. Messages without an acknowledgement may be stored or not. The
    /// next attempt begins with another server.
    func fail(_ link: NATSLink, _ outcome: Outcome) {
        guard links[link.id] != nil else { return }
        drop(link)
        if link.phase == .ready {
            servers.pass(link.address)
        }
        for id in Set(link.awaited.values) { finish(id, outcome) }
        endOpening(of: link, outcome)
    }

    /// Closes a connection and forgets it.
    func drop(_ link: NATSLink) {
        links[link.id] = nil
        if current === link {
            current = nil
        }
        link.close()
    }
}
