internal import CLinux
internal import EventLoops
internal import Glibc

// Taking connections, and deciding which one gives its place to a new one.
extension HTTPServer {
    /// Watches the listening socket.
    func watchListener(_ raw: Int32) throws(SystemError) {
        try loop.watch(raw, for: .readable) { _ in self.assumeIsolated { $0.accept() } }
    }

    /// Accepts waiting connections, at most `acceptedAtOnce`.
    private func accept() {
        for _ in 0..<HTTPServer.acceptedAtOnce {
            guard let listener else { return }
            let raw = clinux_accept(listener)
            if raw >= 0 {
                admit(Descriptor(raw))
                continue
            }
            switch errno {
            case EAGAIN: return
            case EMFILE, ENFILE, ENOBUFS, ENOMEM: return outOfDescriptors()
            // The client has gone already, or its network failed: Linux reports such errors from accept
            // (accept(2)).
            default: continue
            }
        }
    }

    /// Handles a lack of descriptors: gives up a connection, or stops watching and tries again in a second.
    /// Without that the listener, which stays readable, would keep the loop busy.
    private func outOfDescriptors() {
        figures.cut("shortage")
        if let victim = victim(for: nil) { return leave(victim.id) }
        guard let listener, retry == nil else { return }
        loop.forget(listener)
        retry = loop.after(.seconds(1)) { self.assumeIsolated { $0.acceptAgain() } }
    }

    /// Watches the listening socket again after a shortage.
    private func acceptAgain() {
        retry = nil
        guard let listener else { return }
        do {
            try watchListener(listener)
        } catch {
            retry = loop.after(.seconds(1)) { self.assumeIsolated { $0.acceptAgain() } }
        }
    }

    /// Gives a new connection a place, if necessary that of another connection.
    private func admit(_ socket: consuming Descriptor) {
        let peer = UnixSocket.peer(of: socket.raw)
        let owner = peer.map { "user \($0.userID)" } ?? InternetSocket.address(ofPeer: socket.raw)
        while connections.count >= options.connections {
            guard let victim = victim(for: owner) else {
                figures.cut("busy")
                let refusal = ControlRefusal(503, "busy", "too many requests are being answered: try again")
                    .response
                // The client may read it or not; the connection ends either way. It cannot be said before a
                // handshake.
                if makeCipher == nil {
                    _ = HTTPChannel(socket, nil).sendNow(HTTPServer.bytes(refusal, at: time.wallTime))
                }
                return
            }
            let wasIdle = victim.isIdle
            // The victim's request, or its end, may have arrived meanwhile: then it is no longer idle, and
            // another one is chosen.
            if wasIdle {
                receive(victim.id)
            }
            guard !wasIdle || connections[victim.id] != nil && victim.isIdle else { continue }
            figures.cut("crowded")
            leave(victim.id)
        }
        let cipher = makeCipher?()
        guard cipher != nil || makeCipher == nil else { return figures.cut("shortage") }
        let id = nextID
        nextID += 1
        connections[id] = HTTPConnection(
            id: id, channel: HTTPChannel(socket, cipher), peer: peer, owner: owner)
        guard watch(id, for: .readable) else { return }
        // A request's own time begins with its first byte, after the handshake if there is one.
        setDeadline(id, min(options.idle, options.request))
        // A client that sends its request at once has done so by now: it is answered without waiting behind
        // silent ones.
        receive(id)
    }

    /// The connection that yields its place; nil if all have a stronger claim than the newcomer.
    ///
    /// - Parameter owner: the newcomer's user or address; nil if only a descriptor is needed.
    private func victim(for owner: String?) -> HTTPConnection? {
        let claims = connections.values.map(\.claim)
        return Claim.weakest(of: claims, for: owner, places: options.connections).flatMap {
            connections[$0.id]
        }
    }
}
