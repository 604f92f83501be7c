internal import CLinux
internal import EventLoops
internal import Glibc

/// The bounds of a server.
struct HTTPServerOptions: Sendable {
    /// Connections at a time.
    var connections = 32
    /// How long a connection may stay open without a request.
    var idle = Duration.seconds(15)
    /// How long a request may take to arrive as a whole, from its first byte to the last of its body.
    var request = Duration.seconds(15)
    /// How long an answer may wait for a client that takes nothing of it; one that is no stream must be out by then.
    var answer = Duration.seconds(60)
    /// Bytes of a request's line and headers.
    var headerBytes = 16_384
    /// Bytes of a request's body.
    var bodyBytes = 1_048_576
    /// Bytes of a streaming answer that may wait for a slow client.
    var streamBytes = 262_144
    /// Whether the kernel must say who asks; who it is not known of gets no answer.
    var needsPeer = false
}

/// What a server counts.
enum HTTPServerNote: Sendable, Equatable {
    /// A request was answered with that status.
    case answered(Int)
    /// A connection was cut before its time: `slow` (its request or its reading), `crowded` (another one needed the place),
    /// `busy` (it found no place), `shortage` (of descriptors or memory).
    case cut(String)
}

/// An HTTP/1.1 server on an event loop, without a thread of its own.
///
/// It accepts always: where all places are taken, the connection that has the least right to its place is cut: of whoever
/// has the most connections, the one that has said nothing for longest, else the one whose request is longest under way.
/// So clients that are slow, silent or many hold up nobody who asks in one go. Each request, each answer and each silence
/// has a bound in time; one timer serves all of them, and there is none while there is no connection.
actor HTTPServer {
    typealias Handler = @Sendable (ControlRequest) async -> ControlResponse

    nonisolated let loop: EventLoop
    let options: HTTPServerOptions
    private let time: any TimeSource
    private let judge: @Sendable (HTTPRequestHead, PeerCredentials?) -> ControlRefusal?
    private let handler: Handler
    let note: @Sendable (HTTPServerNote) -> Void
    private(set) var listener: Int32?
    private var retry: EventLoop.TimerID?
    private var timer: (id: EventLoop.TimerID, due: BootInstant)?
    var connections: [UInt: HTTPConnection] = [:]
    private var nextID: UInt = 1

    /// How much is read at a time, and how many connections are accepted before others have their turn.
    private static let block = 65_536
    private static let acceptedAtOnce = 64

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// - Parameters:
    ///   - judge: whether a request may be asked at all, by its headers and who sends it; called before its body is read.
    ///   - note: told of each answer and each cut, on the loop.
    ///   - handler: called on the loop for each request that is within bounds; cancelled when the client goes away.
    init(
        on loop: EventLoop, options: HTTPServerOptions, time: any TimeSource = SystemTime(),
        judge: @escaping @Sendable (HTTPRequestHead, PeerCredentials?) -> ControlRefusal? = { _, _ in nil },
        note: @escaping @Sendable (HTTPServerNote) -> Void = { _ in }, handler: @escaping Handler
    ) {
        self.loop = loop
        self.options = options
        self.time = time
        self.judge = judge
        self.note = note
        self.handler = handler
    }

    /// Serves a bound and listening socket from now on, instead of the one before.
    func start(_ listener: consuming Descriptor) throws(ControlError) {
        closeListener()
        let raw = listener.raw
        do {
            try watchListener(raw)
        } catch {
            throw ControlError(.system, "the server cannot be watched: \(error)")
        }
        self.listener = listener.release()
    }

    /// Ends all connections; requests that are being answered are cancelled.
    func stop() {
        closeListener()
        for id in connections.keys { leave(id) }
    }

    /// Lets go of the listening socket; connections stay.
    func closeListener() {
        if let retry { loop.cancel(retry) }
        retry = nil
        guard let listener else { return }
        loop.forget(listener)
        close(listener)
        self.listener = nil
    }

    // MARK: Accepting

    private func watchListener(_ raw: Int32) throws(SystemError) {
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
        note(.cut("shortage"))
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
        if connections.count >= options.connections {
            guard let victim = victim(for: owner) else {
                note(.cut("busy"))
                let refusal = ControlResponse.error(503, "busy", "too many requests are being answered: ask again")
                let answer = HTTPServer.bytes(refusal, at: time.wallTime)
                // To whoever reads it; the connection ends either way.
                _ = send(socket.raw, answer, answer.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
                return
            }
            note(.cut("crowded"))
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

    /// Whose place a new connection gets; nil when all have more right to theirs.
    ///
    /// - Parameter owner: whom the new one is counted for; nil when none comes, only a descriptor is needed.
    private func victim(for owner: String?) -> HTTPConnection? {
        var counts: [String: Int] = [:]
        for connection in connections.values { counts[connection.owner, default: 0] += 1 }
        func comesBefore(_ left: HTTPConnection, _ right: HTTPConnection) -> Bool {
            let (a, b) = (counts[left.owner] ?? 0, counts[right.owner] ?? 0)
            if a != b { return a > b }
            if left.isIdle != right.isIdle { return left.isIdle }
            return left.id < right.id
        }
        // A request that is being answered is not given up for one that only comes, unless its client does not even wait for
        // the answer before it asks again.
        let closable = connections.values.filter {
            $0.phase == .answering ? !$0.input.isEmpty : !$0.isStreaming
        }
        if let victim = closable.min(by: comesBefore) { return victim }
        // But one user's long requests must not keep another out.
        guard let owner, let heaviest = connections.values.min(by: comesBefore), heaviest.owner != owner,
            (counts[heaviest.owner] ?? 0) * 2 > options.connections
        else { return nil }
        return heaviest
    }

    // MARK: Receiving

    private func watch(_ id: UInt, for readiness: EventLoop.Readiness) -> Bool {
        guard let connection = connections[id] else { return false }
        do {
            try loop.watch(connection.socket.raw, for: readiness) { ready in
                self.assumeIsolated { $0.ready(id, ready) }
            }
            return true
        } catch {
            note(.cut("shortage"))
            leave(id)
            return false
        }
    }

    private func ready(_ id: UInt, _ ready: EventLoop.Readiness) {
        guard let connection = connections[id] else { return }
        switch connection.phase {
        case .receiving, .draining: receive(id)
        case .answering: leave(id)
        case .writing:
            if ready.contains(.failed) || ready.contains(.hungUp) { leave(id) } else { flush(id) }
        }
    }

    private func receive(_ id: UInt) {
        guard let connection = connections[id] else { return }
        let wasIdle = connection.isIdle
        let (count, reason) = withUnsafeTemporaryAllocation(of: UInt8.self, capacity: HTTPServer.block) { block in
            let count = recv(connection.socket.raw, block.baseAddress, block.count, 0)
            let reason = errno
            if count > 0, connection.phase == .receiving { connection.input.append(contentsOf: block[..<count]) }
            return (count, reason)
        }
        if count < 0 {
            if reason != EAGAIN, reason != EINTR { leave(id) }
            return
        }
        if count == 0 {
            // Nothing more comes: what is not whole by now never will be.
            connection.hasEnded = true
            leave(id)
            return
        }
        guard connection.phase == .receiving else { return }
        if wasIdle { setDeadline(id, options.request) }
        process(id)
    }

    /// Makes a request of what has come, when it is whole.
    private func process(_ id: UInt) {
        guard let connection = connections[id], connection.phase == .receiving else { return }
        do throws(ControlRefusal) {
            if connection.head == nil {
                guard let head = try takeHead(connection) else { return }
                connection.head = head
                if options.needsPeer, connection.peer == nil {
                    throw ControlRefusal(
                        status: 403, code: "not_permitted", message: "the kernel does not say who asks")
                }
                if let refusal = judge(head, connection.peer) { throw refusal }
                let body = try HTTPBodyReader(head.length, limit: options.bodyBytes)
                connection.body = body
                if head.expectsContinue, !body.isDone, connection.input.isEmpty {
                    // Small enough for any socket's buffer; a client that does not get it sends the body by itself.
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

    /// The request's line and headers, once they are there.
    private func takeHead(_ connection: HTTPConnection) throws(ControlRefusal) -> HTTPRequestHead? {
        // An empty line before a request is forgiven.
        while connection.scanned == 0, connection.input.starts(with: [13, 10]) { connection.input.removeFirst(2) }
        let input = connection.input
        for place in connection.scanned..<input.count {
            let byte = input[place]
            guard byte >= 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 else { throw .bad("this is no HTTP") }
            guard byte == 0x0A else { continue }
            guard place > 0, input[place - 1] == 0x0D else { throw .bad("each line must end with CR LF") }
            guard place >= 3, input[place - 2] == 0x0A else { continue }
            guard place < options.headerBytes else { throw HTTPServer.headersTooLarge(options.headerBytes) }
            connection.input.removeFirst(place + 1)
            connection.scanned = 0
            return try HTTPRequestHead(input[..<(place - 1)])
        }
        connection.scanned = input.count
        guard input.count <= options.headerBytes else { throw HTTPServer.headersTooLarge(options.headerBytes) }
        return nil
    }

    private static func headersTooLarge(_ limit: Int) -> ControlRefusal {
        ControlRefusal(status: 431, code: "too_large", message: "the headers are larger than \(limit) bytes")
    }

    // MARK: Answering

    private func answer(_ id: UInt) {
        guard let connection = connections[id], let head = connection.head else { return }
        connection.phase = .answering
        connection.deadline = nil
        // The end of the client is told without asking.
        guard watch(id, for: []) else { return }
        let request = ControlRequest(
            method: head.method, path: head.path, query: head.query, accept: head.accept,
            body: connection.body?.body ?? [], peer: connection.peer)
        connection.body = nil
        let handler = self.handler
        connection.task = Task(executorPreference: loop) {
            let isPing = request.method == "OPTIONS" && request.path == "*"
            let response = isPing ? ControlResponse(status: 204, headers: [], body: .bytes([])) : await handler(request)
            await self.finish(id, response, counts: !isPing)
        }
    }

    private func finish(_ id: UInt, _ response: ControlResponse, counts: Bool) {
        if counts { note(.answered(response.status)) }
        guard let connection = connections[id], connection.phase == .answering, let head = connection.head else {
            return
        }
        connection.phase = .writing
        connection.closesAfter = !head.keepsOpen
        let isAsked = head.method != "HEAD"
        switch response.body {
        case .bytes(let bytes):
            connection.output = HTTPAnswerHead.bytes(
                response, length: .bytes(bytes.count), closes: connection.closesAfter, at: time.wallTime)
            if isAsked { connection.output += bytes }
        case .stream(let write):
            connection.isChunked = head.isCurrent
            connection.closesAfter = connection.closesAfter || !head.isCurrent
            connection.output = HTTPAnswerHead.bytes(
                response, length: head.isCurrent ? .chunked : .connection, closes: connection.closesAfter,
                at: time.wallTime)
            guard isAsked else { break }
            connection.isStreaming = true
            connection.task = Task(executorPreference: loop) {
                await write(ControlStream(self, id))
                await self.endStream(id)
            }
        }
        setDeadline(id, options.answer)
        flush(id)
    }

    /// Answers what is no request that can be asked, and ends the connection.
    private func refuse(_ id: UInt, _ refusal: ControlRefusal) {
        guard let connection = connections[id] else { return }
        note(.answered(refusal.status))
        connection.phase = .draining
        connection.input = []
        let answer = HTTPServer.bytes(.json(refusal.json, status: refusal.status), at: time.wallTime)
        // It fits into the socket's empty buffer.
        _ = send(connection.socket.raw, answer, answer.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
        shutdown(connection.socket.raw, Int32(SHUT_WR))
        setDeadline(id, .seconds(2))
    }

    private static func bytes(_ response: ControlResponse, at time: Timestamp) -> [UInt8] {
        guard case .bytes(let body) = response.body else { return [] }
        return HTTPAnswerHead.bytes(response, length: .bytes(body.count), closes: true, at: time) + body
    }

    /// Sends what waits; goes on with the next request when the answer is out.
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

    // MARK: The end

    /// Ends a connection: the client is gone, or has to go.
    func leave(_ id: UInt) {
        guard let connection = connections.removeValue(forKey: id) else { return }
        loop.forget(connection.socket.raw)
        connection.task?.cancel()
        connection.writer?.resume(returning: false)
        connection.writer = nil
        if connections.isEmpty, let timer {
            loop.cancel(timer.id)
            self.timer = nil
        }
    }

    private func setDeadline(_ id: UInt, _ wait: Duration) {
        let due = time.bootTime + wait
        connections[id]?.deadline = due
        if let timer {
            guard due < timer.due else { return }
            loop.cancel(timer.id)
        }
        timer = (loop.at(due) { self.assumeIsolated { $0.cutLate() } }, due)
    }

    private func cutLate() {
        timer = nil
        let now = time.bootTime
        for connection in connections.values {
            guard let deadline = connection.deadline, deadline <= now else { continue }
            if connection.isIdle || connection.phase == .draining {
                leave(connection.id)
            } else if connection.phase == .receiving {
                note(.cut("slow"))
                refuse(
                    connection.id,
                    ControlRefusal(status: 408, code: "slow", message: "the request took too long to come"))
            } else {
                note(.cut("slow"))
                leave(connection.id)
            }
        }
        guard timer == nil, let next = connections.values.compactMap(\.deadline).min() else { return }
        timer = (loop.at(next) { self.assumeIsolated { $0.cutLate() } }, next)
    }
}
