internal import CLinux
internal import EventLoops
internal import Glibc

// Taking connections, and deciding which one gives its place to a new one.
extension HTTPServer {
    func watchListener(_ raw: Int32) throws(SystemError) {
        try loop.watch(raw, for: .readable) { _ in self.assumeIsolated { $0.accept() } }
    }

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
            // The client is gone already, or its network failed: Linux tells that of the next accept.
            default: continue
            }
        }
    }

    /// Gives up a connection, or tries again in a second: the listener would report itself ready at every turn of the loop.
    private func outOfDescriptors() {
        figures.cut("shortage")
        if let victim = victim(for: nil) { return leave(victim.id) }
        guard let listener, retry == nil else { return }
        loop.forget(listener)
        retry = loop.after(.seconds(1)) { self.assumeIsolated { $0.acceptAgain() } }
    }

    private func acceptAgain() {
        retry = nil
        guard let listener else { return }
        do {
            try watchListener(listener)
        } catch {
            retry = loop.after(.seconds(1)) { self.assumeIsolated { $0.acceptAgain() } }
        }
    }

    private func admit(_ socket: consuming Descriptor) {
        let peer = UnixSocket.peer(of: socket.raw)
        let owner = peer.map { "user \($0.userID)" } ?? InternetSocket.address(ofPeer: socket.raw)
        while connections.count >= options.connections {
            guard let victim = victim(for: owner) else {
                figures.cut("busy")
                let refusal = ControlRefusal(503, "busy", "too many requests are being answered: try again").response
                let answer = HTTPServer.bytes(refusal, at: time.wallTime)
                // To whoever reads it; the connection ends either way.
                _ = send(socket.raw, answer, answer.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
                return
            }
            let wasIdle = victim.isIdle
            // Its request may have come meanwhile, or its end.
            if wasIdle { receive(victim.id) }
            guard !wasIdle || connections[victim.id] != nil && victim.isIdle else { continue }
            figures.cut("crowded")
            leave(victim.id)
        }
        let id = nextID
        nextID += 1
        connections[id] = HTTPConnection(id: id, socket: socket, peer: peer, owner: owner)
        guard watch(id, for: .readable) else { return }
        setDeadline(id, options.request)
        // A client that asks in one go has done so by now.
        receive(id)
    }

    /// Whose place a new connection gets (for nil only a descriptor is needed); nil when all have more right to theirs.
    private func victim(for owner: String?) -> HTTPConnection? {
        var counts: [String: Int] = [:]
        for connection in connections.values { counts[connection.owner, default: 0] += 1 }
        func comesBefore(_ left: HTTPConnection, _ right: HTTPConnection) -> Bool {
            let (a, b) = (counts[left.owner] ?? 0, counts[right.owner] ?? 0)
            if a != b { return a > b }
            if left.isIdle != right.isIdle { return left.isIdle }
            return left.id < right.id
        }
        // One being answered yields to a newcomer only if its client asks again without waiting for the answer.
        let closable = connections.values.filter { $0.phase == .answering ? !$0.input.isEmpty : !$0.isStreaming }
        if let victim = closable.min(by: comesBefore) { return victim }
        // But one user's long requests must not keep another out.
        guard let owner, let heaviest = connections.values.min(by: comesBefore), heaviest.owner != owner,
            (counts[heaviest.owner] ?? 0) * 2 > options.connections
        else { return nil }
        return heaviest
    }
}
