internal import EventLoops
internal import Glibc

extension HTTPServer {
    /// Starts the handler of a complete request. `OPTIONS *` is answered here: it is the server's question
    /// to itself, and not counted.
    func answer(_ id: UInt) {
        guard let connection = connections[id], let head = connection.head else { return }
        connection.phase = .answering
        connection.deadline = nil
        // epoll reports EPOLLHUP and EPOLLERR even if nothing is watched (epoll_ctl(2)): a client of the
        // Unix socket that has closed, or a reset. The end of a TCP client's side alone (FIN) is noticed
        // when the answer is written.
        guard watch(id, for: []) else { return }
        let request = ControlRequest(
            method: head.method, path: head.path, query: head.query, accept: head.accept,
            body: connection.body?.body ?? [])
        connection.body = nil
        let handler = self.handler
        connection.task = Task(executorPreference: loop) {
            let isPing = request.method == "OPTIONS" && request.path == "*"
            let response =
                isPing ? ControlResponse(status: 204, headers: [], body: .bytes([])) : await handler(request)
            await self.finish(id, response, counts: !isPing)
        }
    }

    /// Begins to write the response. For HEAD only its head is sent; for HTTP/1.0 a stream ends with the
    /// connection, because there are no chunks.
    private func finish(_ id: UInt, _ response: ControlResponse, counts: Bool) {
        if counts {
            figures.answered(response.status)
        }
        guard let connection = connections[id], connection.phase == .answering, let head = connection.head
        else {
            return
        }
        connection.phase = .writing
        connection.closesAfter = !head.keepsOpen
        let isAsked = head.method != "HEAD"
        switch response.body {
        case .bytes(let bytes):
            connection.output = HTTPAnswerHead.bytes(
                response, length: bytes.count, closes: connection.closesAfter, at: time.wallTime)
            if isAsked {
                connection.output += bytes
            }
        case .stream(let write):
            connection.isChunked = head.isCurrent
            connection.closesAfter = connection.closesAfter || !head.isCurrent
            connection.output = HTTPAnswerHead.bytes(
                response, length: nil, isChunked: head.isCurrent, closes: connection.closesAfter,
                at: time.wallTime)
            guard isAsked else { break }
            connection.isStreaming = true
            connection.task = Task(executorPreference: loop) {
                await write(ControlStream(server: self, id: id))
                await self.endStream(id)
            }
        }
        setDeadline(id, options.answer)
        flush(id)
    }

    /// Answers a request that is invalid or refused, and ends the connection.
    ///
    /// The connection is drained for two seconds rather than closed: closing a socket with unread bytes
    /// sends a reset, which could destroy the answer before the client has read it (RFC 9112, section 9.6).
    func refuse(_ id: UInt, _ refusal: ControlRefusal) {
        guard let connection = connections[id] else { return }
        figures.answered(refusal.status)
        connection.phase = .draining
        connection.input = []
        let answer = HTTPServer.bytes(refusal.response, at: time.wallTime)
        // The answer fits into the empty send buffer, so one call is enough.
        _ = send(connection.socket.raw, answer, answer.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
        shutdown(connection.socket.raw, Int32(SHUT_WR))
        setDeadline(id, .seconds(2))
    }

    /// A whole answer that closes the connection.
    static func bytes(_ response: ControlResponse, at time: Timestamp) -> [UInt8] {
        guard case .bytes(let body) = response.body else { return [] }
        return HTTPAnswerHead.bytes(response, length: body.count, closes: true, at: time) + body
    }

    /// Sends what waits, and continues with the next request once the answer is out. For a stream, wakes
    /// its writer when half of the bound is free.
    func flush(_ id: UInt) {
        guard let connection = connections[id], connection.phase == .writing else { return }
        var hasMoved = false
        while connection.waiting > 0 {
            let count = connection.output[connection.sent...].withUnsafeBytes {
                send(connection.socket.raw, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
            }
            guard count > 0 else {
                if errno == EINTR { continue }
                guard errno == EAGAIN else { return leave(id) }
                break
            }
            connection.sent += count
            hasMoved = true
        }
        if connection.sent == connection.output.count || connection.sent > 1_048_576 {
            connection.output.removeFirst(connection.sent)
            connection.sent = 0
        }
        if connection.isStreaming {
            if connection.waiting == 0 {
                connection.deadline = nil
            } else if hasMoved || connection.deadline == nil {
                setDeadline(id, options.answer)
            }
            if connection.waiting < options.streamBytes / 2, let writer = connection.writer {
                connection.writer = nil
                writer.resume(returning: true)
            }
        }
        guard connection.waiting == 0 else {
            _ = watch(id, for: .writable)
            return
        }
        if connection.isStreaming {
            _ = watch(id, for: [])
        } else if connection.closesAfter {
            leave(id)
        } else {
            connection.beginAnew()
            guard watch(id, for: .readable) else { return }
            setDeadline(id, connection.input.isEmpty ? options.idle : options.request)
            process(id)
        }
    }

    // What a handler writes piece by piece waits in `output`, bounded, until the client has accepted it.

    /// Queues the next bytes of a stream. Returns when there is room for more; false if the client is gone.
    func write(_ bytes: [UInt8], to id: UInt) async -> Bool {
        guard let connection = connections[id], connection.isStreaming else { return false }
        guard !bytes.isEmpty else { return true }
        if connection.isChunked {
            connection.output += Array("\(String(bytes.count, radix: 16))\r\n".utf8)
            connection.output += bytes
            connection.output += [13, 10]
        } else {
            connection.output += bytes
        }
        flush(id)
        guard connection.waiting > options.streamBytes, connections[id] != nil else {
            return connections[id] != nil
        }
        return await withCheckedContinuation { continuation in
            guard connections[id] != nil, connection.writer == nil else {
                continuation.resume(returning: false)
                return
            }
            connection.writer = continuation
        }
    }

    /// Ends a stream whose writer has returned.
    func endStream(_ id: UInt) {
        guard let connection = connections[id], connection.isStreaming else { return }
        connection.isStreaming = false
        connection.task = nil
        if connection.isChunked {
            connection.output += Array("0\r\n\r\n".utf8)
        }
        flush(id)
    }
}
