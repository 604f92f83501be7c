internal import EventLoops
internal import Model

extension NATSClient {
    /// Looks for a server that takes us, unless that is going on.
    func open() {
        guard !isOpening else { return }
        isOpening = true
        Task(executorPreference: loop) { await self.tryServers() }
    }

    private func tryServers() async {
        var refusals: [Outcome] = []
        for (index, address) in candidates.enumerated() {
            guard isWanted else { break }
            let (link, refusal) = await attempt(address)
            // It may have closed again before this goes on.
            if let link, link.isOpen {
                current = link
                lastRefusal = nil
                firstServer = servers.firstIndex(of: address) ?? firstServer
                break
            }
            let message = "\(address.host) accepted the agent and closed the connection"
            refusals.append(refusal ?? .retry(Failure(kind: .connection, message: message)))
            if index == 0 { firstServer = (firstServer + 1) % servers.count }
        }
        isOpening = false
        let refusal = NATSClient.combined(refusals)
        if current == nil { lastRefusal = refusal?.failure }
        opened(current, or: refusal)
    }

    /// The configured servers, beginning with the one whose turn it is, then those that they told of.
    private var candidates: [NATSAddress] {
        let configured = Array(servers[firstServer...] + servers[..<firstServer])
        return configured + learned.filter { other in !configured.contains { $0.authority == other.authority } }
    }

    /// What several servers' refusals mean together: only if all of them want a person to look, one must.
    static func combined(_ refusals: [Outcome]) -> Outcome? {
        let held = refusals.first { if case .held = $0 { true } else { false } }
        let others = refusals.filter { if case .held = $0 { false } else { true } }
        guard let other = others.first else { return held }
        if let failure = held?.failure { return .retry(failure) }
        return others.first { $0 != .offline } ?? other
    }

    /// One server: connection, TLS, authentication, and its consent.
    private func attempt(_ address: NATSAddress) async -> (NATSLink?, Outcome?) {
        switch await http.perform(HTTPRequest(method: .connect, url: "http://\(address.authority)/")) {
        case .noRoute: return (nil, .offline)
        case .failed(let failure): return (nil, failure.outcome)
        case .answered(let answer):
            nextLink += 1
            let link = NATSLink(
                nextLink, to: address, socket: answer.socket, generation: generation, on: loop, at: time.bootTime)
            links[link.id] = link
            if let refusal = await opened(link) { return (nil, refusal) }
            return (link, nil)
        }
    }

    /// Waits for the server's consent; nil: it was given.
    private func opened(_ link: NATSLink) async -> Outcome? {
        await withCheckedContinuation { continuation in
            link.opening = continuation
            let id = link.id
            link.openingTimer = after(settings.connectTimeout) { $0.giveUpOpening(id) }
            if settings.nats.tlsFirst { beginTLS(link) }
            flush(link)
        }
    }

    private func giveUpOpening(_ id: UInt64) {
        guard let link = links[id], link.opening != nil else { return }
        link.openingTimer = nil
        fail(
            link, .timeout,
            "\(link.address.host) accepted the connection but did not answer in time (connect_timeout):"
                + (link.phase == .greeting ? " is it a NATS server, does it want tls_first?" : " does it hang?"))
    }

    // MARK: Events

    private func linkIsReady(_ id: UInt64, _ ready: EventLoop.Readiness) {
        guard let link = links[id] else { return }
        var end: Failure?
        if !ready.isDisjoint(with: [.readable, .failed, .hungUp]) {
            end = link.receive(at: time.bootTime)
            if link.phase == .handshaking { goOnWithTLS(link) }
            if link.isOpen, let failure = link.decrypt() { end = end ?? failure }
            handleOperations(of: link)
        }
        guard link.isOpen else { return }
        if let end {
            fail(link, .retry(end))
        } else {
            flush(link)
        }
    }

    private func handleOperations(of link: NATSLink) {
        do throws(NATSProtocolError) {
            // What comes after the line that TLS follows is not to be read as if it had come over TLS.
            while link.isOpen, link.phase != .handshaking, let operation = try link.next() {
                handle(operation, from: link)
            }
        } catch {
            fail(link, .protocolViolation, "what \(link.address.host) says is not NATS: \(error.message)")
        }
    }

    private func handle(_ operation: NATSOperation, from link: NATSLink) {
        switch operation {
        case .info(let json): takeInfo(json, from: link)
        case .ping: say("PONG\r\n", over: link)
        case .pong where link.phase == .welcoming:
            link.phase = .ready
            endOpening(of: link, nil)
        case .pong, .ok: break
        case .message(let subject, let headers, let payload):
            take(headers, payload, subject: subject, from: link)
        case .error(let text):
            let complaint = NATSComplaint(text, host: link.address.host)
            guard !complaint.isAboutPublishing else { return refuse(complaint.outcome, over: link) }
            // The server closes; after a complaint about our credentials there is nothing to wait for.
            fail(link, complaint.outcome)
        }
    }

    private func takeInfo(_ json: [UInt8], from link: NATSLink) {
        guard let info = NATSInfo(json) else {
            return fail(
                link, .protocolViolation,
                "what \(link.address.host) announces cannot be read: is it a NATS server?")
        }
        link.info = info
        if settings.nats.followCluster { learn(info.otherServers, from: link) }
        if info.isLeaving, link.phase == .ready { leave(link) }
        guard link.phase == .greeting else { return }
        guard info.hasHeaders else { return hold(link, "it does not support headers: NATS 2.2 or newer is required") }
        let address = link.address
        let wantsTLS = address.isTLS || info.requiresTLS || !address.isLoopback && !settings.allowPlainHTTP
        guard wantsTLS, !link.isEncrypted else { return introduce(link) }
        guard info.requiresTLS || info.offersTLS else {
            return hold(link, "it offers no TLS, and the agent sends nothing without it")
        }
        guard !link.hasUnread else {
            return fail(link, .protocolViolation, "\(address.host) continued in clear text where TLS should begin")
        }
        beginTLS(link)
    }

    private func hold(_ link: NATSLink, _ message: String) {
        fail(link, .held(Failure(kind: .protocolViolation, message: "\(link.address.host): \(message)")))
    }

    /// Keeps the addresses that a server tells of.
    ///
    /// In clear text anybody on the way may have written them: such a server must show a certificate for the name that we
    /// know, not for its own.
    private func learn(_ others: [String], from link: NATSLink) {
        guard !others.isEmpty else { return }
        learned = others.compactMap { text in
            guard var address = NATSAddress(authority: text) else { return nil }
            address.isTLS = link.address.isTLS || link.isEncrypted
            if !link.isEncrypted || address.host.isHostNumber {
                address.certificateName = link.address.verifiedName
            }
            return address
        }
    }

    // MARK: TLS and authentication

    private func beginTLS(_ link: NATSLink) {
        do throws(OutputError) {
            link.begin(try TLSSession(tls, settings.tls, host: link.address.verifiedName))
            goOnWithTLS(link)
        } catch {
            fail(link, error.failure.outcome)
        }
    }

    private func goOnWithTLS(_ link: NATSLink) {
        switch link.shakeHands() {
        case nil, .pending: break
        case .failed(let failure):
            // The alert that tells the server why is on its way.
            _ = link.flush()
            fail(link, .retry(failure))
        case .done:
            serverExpiry = link.peerExpiry
            if settings.nats.tlsFirst, link.info == nil {
                link.phase = .greeting
            } else {
                introduce(link)
            }
        }
    }

    private func introduce(_ link: NATSLink) {
        guard let own = identity.members(nonce: link.info?.nonce) else {
            return hold(link, "it sent nothing to sign: it has no users with nkeys or JWTs")
        }
        var json = JSONText()
        json.raw(#"{"verbose":false,"pedantic":false,"protocol":1,"headers":true,"no_responders":true,"echo":false,"#)
        json.raw(#""lang":"swift","name":"spoolship","tls_required":"#)
        json.raw(link.isEncrypted ? "true," : "false,")
        json.member("version", version)
        for (name, value) in own { json.member(name, value) }
        json.close("}")
        link.phase = .welcoming
        say("CONNECT \(String(decoding: json.bytes, as: UTF8.self))\r\nSUB \(inbox).* 1\r\nPING\r\n", over: link)
    }

    private func endOpening(of link: NATSLink, _ refusal: Outcome?) {
        if let timer = link.openingTimer { loop.cancel(timer) }
        link.openingTimer = nil
        link.opening?.resume(returning: refusal)
        link.opening = nil
    }

    // MARK: Ends

    private func say(_ text: String, over link: NATSLink) {
        if let failure = link.say(Array(text.utf8)) { fail(link, .retry(failure)) }
    }

    func flush(_ link: NATSLink) {
        guard link.isOpen else { return }
        let id = link.id
        var failure = link.flush()
        if failure == nil {
            failure = link.watch { [weak self] ready in self?.assumeIsolated { $0.linkIsReady(id, ready) } }
        }
        if let failure { fail(link, .retry(failure)) }
    }

    /// The server is about to stop: what is on its way may come in, everything else goes to another server.
    private func leave(_ link: NATSLink) {
        guard candidates.count > 1 else { return }
        if let index = servers.firstIndex(of: link.address) { firstServer = (index + 1) % servers.count }
        retire(link)
    }

    /// Sends nothing new over a connection, and closes it with the last acknowledgement.
    func retire(_ link: NATSLink) {
        link.isLeaving = true
        if current === link { current = nil }
        if link.awaited.isEmpty { drop(link) }
    }

    private func fail(_ link: NATSLink, _ kind: Failure.Kind, _ message: String) {
        fail(link, .retry(Failure(kind: kind, message: message)))
    }

    /// Ends a connection that broke or is of no use: what was on its way may be stored or not.
    func fail(_ link: NATSLink, _ outcome: Outcome) {
        guard links[link.id] != nil else { return }
        drop(link)
        if let index = servers.firstIndex(of: link.address), link.phase == .ready {
            firstServer = (index + 1) % servers.count
        }
        for id in Set(link.awaited.values) { finish(id, outcome) }
        endOpening(of: link, outcome)
    }

    func drop(_ link: NATSLink) {
        links[link.id] = nil
        if current === link { current = nil }
        link.close()
    }
}
