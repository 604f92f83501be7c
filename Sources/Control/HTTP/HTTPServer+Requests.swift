internal import EventLoops
internal import Glibc

// Requests as they arrive, and their answers.
extension HTTPServer {
    /// Watches a connection; false if the kernel has no memory for it, in which case the connection is cut.
    func watch(_ id: UInt, for readiness: EventLoop.Readiness) -> Bool {
        guard let connection = connections[id] else { return false }
        do {
            try loop.watch(connection.channel.socket.raw, for: readiness) { ready in
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

    /// Reads the bytes that have arrived, and processes them. While the connection drains they are dropped.
    func receive(_ id: UInt) {
        guard let connection = connections[id] else { return }
        let wasIdle = connection.isIdle
        let goesOn = connection.channel.receive { bytes in
            if connection.phase == .receiving {
                connection.request.add(bytes)
            }
        }
        // The client sends nothing more: a request that is incomplete now will never be complete.
        guard goesOn else { return leave(id) }
        guard connection.phase == .receiving, !connection.isIdle else { return }
        if wasIdle {
            setDeadline(id, options.request)
        }
        process(id)
    }

    /// Continues with the request as far as its bytes were received: head, judgement, body, answer.
    func process(_ id: UInt) {
        guard let connection = connections[id], connection.phase == .receiving else { return }
        do throws(ControlRefusal) {
            if connection.request.head == nil {
                let head = try connection.request.readHead(limit: options.headerBytes)
                guard let head else { return }
                switch judge(head, connection.peer) {
                case .answer(let handler): connection.handler = handler
                case .refuse(let refusal): throw refusal
                case .reset: break
                }
                if try connection.request.beginBody(limit: options.bodyBytes) {
                    // The line is small enough for any send buffer; a client that does not get it sends the
                    // body after a while (RFC 9110, section 10.1.1).
                    let go = Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)
                    guard connection.channel.sendNow(go) else { return leave(id, inOrder: false) }
                }
            }
            let isComplete = try connection.request.readBody()
            if connection.handler == nil, isComplete || connection.request.bodyBytes > 0 {
                connection.channel.resetOnClose()
                return leave(id, inOrder: false)
            }
            guard isComplete else {
                guard countBodies() else { throw HTTPBodyReader.tooLarge(options.room?.most ?? 0) }
                return
            }
        } catch {
            return refuse(id, error)
        }
        answer(id)
    }

    // MARK: Answers

    /// Starts the handler of a complete request. `OPTIONS *` is answered here: it is the server's question
    /// to itself, and not counted.
    func answer(_ id: UInt) {
        guard let connection = connections[id], let head = connection.request.head,
            let handler = connection.handler
        else { return }
        connection.phase = .answering
        connection.deadline = nil
        // epoll reports EPOLLHUP and EPOLLERR even if nothing is watched (epoll_ctl(2)): a client of the
        // Unix socket that has closed, or a reset. The end of a TCP client's side alone (FIN) is noticed
        // when the answer is written.
        guard watch(id, for: []) else { return }
        let request = ControlRequest(
            method: head.method, path: head.path, query: head.query, accept: head.accept,
            body: connection.request.takeBody())
        countBodies()
        connection.task = Task(executorPreference: loop) {
            let isPing = request.method == "OPTIONS" && request.path == "*"
            if isPing {
                await self.finish(
                    id, ControlResponse(status: 204, headers: [], body: .bytes([])), counts: false)
            } else if let response = await handler(request) {
                await self.finish(id, response, counts: true)
            } else {
                await self.leave(id, inOrder: false)
            }
        }
    }

    /// Begins to write the response. For HEAD only its head is sent; for HTTP/1.0 a stream ends with the
    /// connection, because there are no chunks.
    private func finish(_ id: UInt, _ response: ControlResponse, counts: Bool) {
        if counts {
            figures.answered(response.status)
        }
        guard let connection = connections[id], connection.phase == .answering,
            let head = connection.request.head
        else { return }
        connection.phase = .writing
        connection.closesAfter = !head.keepsOpen
        // These have no body, and no length of one (RFC 9110, sections 8.6 and 15.4.5).
        let hasBody = response.status != 204 && response.status != 304
        let isAsked = head.method != "HEAD" && hasBody
        switch response.body {
        case .bytes(let bytes):
            var answer = HTTPAnswerHead.bytes(
                response, length: hasBody ? bytes.count : nil, closes: connection.closesAfter,
                at: time.wallTime)
            if isAsked {
                answer += bytes
            }
            connection.output.add(connection.channel.encrypted(answer))
        case .stream(let write):
            connection.closesAfter = connection.closesAfter || !head.isCurrent
            let answer = HTTPAnswerHead.bytes(
                response, length: nil, isChunked: head.isCurrent, closes: connection.closesAfter,
                at: time.wallTime)
            connection.output.add(connection.channel.encrypted(answer))
            guard isAsked else { break }
            connection.stream = HTTPConnection.Stream(isChunked: head.isCurrent)
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
        connection.request.drop()
        countBodies()
        // The answer fits into the empty send buffer, so one call is enough. After a part of it nothing can
        // be said: the rest of an encrypted record would be missing.
        guard connection.channel.sendNow(HTTPServer.bytes(refusal.response, at: time.wallTime)) else {
            return leave(id, inOrder: false)
        }
        connection.channel.sayEnd()
        shutdown(connection.channel.socket.raw, Int32(SHUT_WR))
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
        while connection.output.waiting > 0 {
            let count = connection.output.withWaiting { connection.channel.send($0) }
            guard count > 0 else {
                if errno == EINTR { continue }
                guard errno == EAGAIN else { return leave(id) }
                break
            }
            connection.output.advance(count)
            hasMoved = true
        }
        connection.output.trim()
        if connection.stream != nil {
            if connection.output.waiting == 0 {
                connection.deadline = nil
            } else if hasMoved || connection.deadline == nil {
                setDeadline(id, options.answer)
            }
            if connection.output.waiting < options.streamBytes / 2,
                let writer = connection.stream?.writer
            {
                connection.stream?.writer = nil
                writer.resume(returning: true)
            }
        }
        guard connection.output.waiting == 0 else {
            _ = watch(id, for: .writable)
            return
        }
        if connection.stream != nil {
            _ = watch(id, for: [])
        } else if connection.closesAfter {
            leave(id)
        } else {
            connection.beginAnew()
            guard watch(id, for: .readable) else { return }
            setDeadline(id, connection.request.hasUnread ? options.request : options.idle)
            process(id)
        }
    }

    // What a handler writes piece by piece waits in `output`, bounded, until the client has accepted it.

    /// Queues the next bytes of a stream. Returns when there is room for more; false if the client is gone.
    func write(_ bytes: [UInt8], to id: UInt) async -> Bool {
        guard let connection = connections[id], let stream = connection.stream else { return false }
        guard !bytes.isEmpty else { return true }
        if stream.isChunked {
            let chunk = Array("\(String(bytes.count, radix: 16))\r\n".utf8) + bytes + [13, 10]
            connection.output.add(connection.channel.encrypted(chunk))
        } else {
            connection.output.add(connection.channel.encrypted(bytes))
        }
        flush(id)
        guard connection.output.waiting > options.streamBytes, connections[id] != nil else {
            return connections[id] != nil
        }
        return await withCheckedContinuation { continuation in
            guard connections[id] != nil, connection.stream != nil, connection.stream?.writer == nil else {
                continuation.resume(returning: false)
                return
            }
            connection.stream?.writer = continuation
        }
    }

    /// Ends a stream whose writer has returned.
    func endStream(_ id: UInt) {
        guard let connection = connections[id], let stream = connection.stream else { return }
        connection.endStream()
        connection.task = nil
        if stream.isChunked {
            connection.output.add(connection.channel.encrypted(Array("0\r\n\r\n".utf8)))
        }
        flush(id)
    }
}
