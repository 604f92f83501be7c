internal import EventLoops
internal import Glibc

extension HTTPServer {
    /// Watches a connection; false if the kernel has no memory for it, in which case the connection is cut.
    func watch(_ id: UInt, for readiness: EventLoop.Readiness) -> Bool {
        guard let connection = connections[id] else { return false }
        do {
            try loop.watch(connection.socket.raw, for: readiness) { ready in
                self.assumeIsolated { $0.ready(id, ready) }
            }
            return true
        } catch {
            figures.cut("shortage")
            leave(id)
            return false
        }
    }

    /// Handles readiness of a connection. While a handler works nothing is watched, so readiness means that
    /// the client has hung up.
    private func ready(_ id: UInt, _ ready: EventLoop.Readiness) {
        guard let connection = connections[id] else { return }
        switch connection.phase {
        case .receiving, .draining: receive(id)
        case .answering: leave(id)
        case .writing:
            if ready.contains(.failed) || ready.contains(.hungUp) {
                leave(id)
            } else {
                flush(id)
            }
        }
    }

    /// Reads what has arrived, and processes it. While draining, it is dropped.
    func receive(_ id: UInt) {
        guard let connection = connections[id] else { return }
        let wasIdle = connection.isIdle
        let (count, reason) = withUnsafeTemporaryAllocation(of: UInt8.self, capacity: HTTPServer.block) {
            block in
            let count = recv(connection.socket.raw, block.baseAddress, block.count, 0)
            let reason = errno
            if count > 0, connection.phase == .receiving {
                connection.input.append(contentsOf: block[..<count])
            }
            return (count, reason)
        }
        if count < 0 {
            if reason != EAGAIN, reason != EINTR {
                leave(id)
            }
            return
        }
        if count == 0 {
            // The client sends nothing more: a request that is incomplete now will never be complete.
            connection.hasEnded = true
            leave(id)
            return
        }
        guard connection.phase == .receiving else { return }
        if wasIdle {
            setDeadline(id, options.request)
        }
        process(id)
    }

    /// Continues with the request as far as its bytes were received: head, judgement, body, answer.
    func process(_ id: UInt) {
        guard let connection = connections[id], connection.phase == .receiving else { return }
        do throws(ControlRefusal) {
            if connection.head == nil {
                guard let head = try takeHead(connection) else { return }
                connection.head = head
                if let refusal = judge(head, connection.peer) { throw refusal }
                let body = try HTTPBodyReader(head.length, limit: options.bodyBytes)
                connection.body = body
                if head.expectsContinue, !body.isDone, connection.input.isEmpty {
                    // The line is small enough for any send buffer; a client that does not get it sends the
                    // body after a while (RFC 9110, section 10.1.1).
                    let go = Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)
                    _ = send(connection.socket.raw, go, go.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
                }
            }
            guard try connection.body?.take(from: &connection.input) == true else { return }
        } catch {
            return refuse(id, error)
        }
        answer(id)
    }

    /// Removes a complete head from the input; nil until it is complete. Each byte is looked at once
    /// (`scanned`), so slow clients cost no quadratic time.
    private func takeHead(_ connection: HTTPConnection) throws(ControlRefusal) -> HTTPRequestHead? {
        // RFC 9112, section 2.2: an empty line before a request is ignored.
        while connection.scanned == 0, connection.input.starts(with: [13, 10]) {
            connection.input.removeFirst(2)
        }
        let input = connection.input
        for place in connection.scanned..<input.count {
            let byte = input[place]
            guard byte >= 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 else {
                throw .bad("this is not HTTP")
            }
            guard byte == 0x0A else { continue }
            guard place > 0, input[place - 1] == 0x0D else { throw .bad("each line must end with CR LF") }
            guard place >= 3, input[place - 2] == 0x0A else { continue }
            guard place < options.headerBytes else { throw HTTPServer.headersTooLarge(options.headerBytes) }
            connection.input.removeFirst(place + 1)
            connection.scanned = 0
            return try HTTPRequestHead(input[..<(place - 1)])
        }
        connection.scanned = input.count
        guard input.count <= options.headerBytes else {
            throw HTTPServer.headersTooLarge(options.headerBytes)
        }
        return nil
    }

    private static func headersTooLarge(_ limit: Int) -> ControlRefusal {
        ControlRefusal(431, "too_large", "the headers are larger than \(limit) bytes")
    }
}
