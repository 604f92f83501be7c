internal import CMicroHTTPD
internal import EventLoops
internal import Glibc

/// The bounds of a server.
struct HTTPServerOptions: Sendable {
    /// Connections at a time.
    var connections = 32
    /// Seconds without traffic after which a connection is closed; one whose request is being answered is exempt.
    var idleSeconds = 15
    /// Bytes of a request's line and headers, and of the buffers.
    var headerBytes = 16_384
    /// Bytes of a request's body.
    var bodyBytes = 1_048_576
    /// Bytes of a streaming answer that may wait for a slow client.
    var streamBytes = 262_144
}

/// An HTTP/1.1 server without a thread of its own: libmicrohttpd's epoll descriptor nested in our loop.
///
/// The library calls back in the middle of its own work, so callbacks only note what happened; it is acted on when
/// `shim_mhd_run` has returned. While a request is being answered its connection is suspended: the library does not look
/// at it, so we watch its descriptor for the end of the client ourselves.
actor HTTPServer {
    typealias Handler = @Sendable (ControlRequest) async -> ControlResponse

    struct Exchange {
        let connection: OpaquePointer
        let request: ControlRequest
        var body: [UInt8] = []
        var isTooLarge = false
        var isSuspended = false
        var isGone = false
        var response: ControlResponse?
        var task: Task<Void, Never>?
        var stream = Stream()
    }

    struct Stream {
        var bytes: [UInt8] = []
        var hasEnded = false
        var writer: CheckedContinuation<Bool, Never>?
    }

    nonisolated let loop: EventLoop
    let options: HTTPServerOptions
    private let checksPeer: @Sendable (PeerCredentials) -> Bool
    private let handler: Handler
    private var server: OpaquePointer?
    private var timer: EventLoop.TimerID?
    var exchanges: [UInt: Exchange] = [:]
    private var nextID: UInt = 1
    private var arrived: [UInt] = []
    private var over: [Exchange] = []
    private var isTurnDue = false

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    /// - Parameters:
    ///   - checksPeer: whether the process at the other end of a Unix socket may ask anything.
    ///   - handler: called on the loop for each request that is within bounds; cancelled when the client goes away.
    init(
        on loop: EventLoop, options: HTTPServerOptions,
        checksPeer: @escaping @Sendable (PeerCredentials) -> Bool = { _ in true }, handler: @escaping Handler
    ) {
        self.loop = loop
        self.options = options
        self.checksPeer = checksPeer
        self.handler = handler
    }

    /// Serves a bound and listening socket from now on.
    func start(_ listener: consuming Descriptor) throws(ControlError) {
        var settings = shim_mhd_settings()
        settings.flags = SHIM_MHD_SUSPEND
        settings.listener = listener.release()
        settings.connections = UInt32(options.connections)
        settings.idle_seconds = UInt32(options.idleSeconds)
        settings.memory = options.headerBytes
        settings.context = Unmanaged.passUnretained(self).toOpaque()
        settings.request = { context, connection, path, method, piece, size, state in
            guard let context, let connection, let path, let method, let size, let state else { return 0 }
            // The call comes out of shim_mhd_run, on the loop's thread: nothing crosses to another one.
            nonisolated(unsafe) let call = (connection, path, method, piece, size, state)
            return Unmanaged<HTTPServer>.fromOpaque(context).takeUnretainedValue().assumeIsolated {
                $0.take(call.0, call.1, call.2, call.3, call.4, call.5)
            }
        }
        settings.completed = { context, _, state, _ in
            guard let context, let state else { return }
            let id = UInt(bitPattern: state)
            Unmanaged<HTTPServer>.fromOpaque(context).takeUnretainedValue().assumeIsolated { $0.complete(id) }
        }
        guard let server = shim_mhd_start(&settings) else {
            throw ControlError(.system, "libmicrohttpd cannot start: \(SystemError.message(errno))")
        }
        self.server = server
        do {
            try loop.watch(shim_mhd_epoll(server), for: .readable) { _ in self.assumeIsolated { $0.turn() } }
        } catch {
            stop()
            throw ControlError(.system, "libmicrohttpd cannot be watched: \(error)")
        }
        turn()
    }

    /// Ends all connections; requests that are being answered are cancelled.
    func stop() {
        guard let server else { return }
        for id in exchanges.keys { leave(id) }
        loop.forget(shim_mhd_epoll(server))
        if let timer { loop.cancel(timer) }
        self.server = nil
        shim_mhd_run(server)
        shim_mhd_stop(server)
        finishOver()
    }

    // MARK: The library's turn

    private func turn() {
        guard let server else { return }
        isTurnDue = false
        shim_mhd_run(server)
        for id in arrived { answer(id) }
        arrived.removeAll()
        finishOver()
        if let timer { loop.cancel(timer) }
        let milliseconds = shim_mhd_timeout(server)
        timer =
            milliseconds < 0 ? nil : loop.after(.milliseconds(milliseconds)) { self.assumeIsolated { $0.timeout() } }
    }

    private func timeout() {
        timer = nil
        turn()
    }

    private func finishOver() {
        let over = self.over
        self.over.removeAll()
        for exchange in over {
            exchange.task?.cancel()
            exchange.stream.writer?.resume(returning: false)
        }
    }

    // MARK: Called by the library

    private func take(
        _ connection: OpaquePointer, _ path: UnsafePointer<CChar>, _ method: UnsafePointer<CChar>,
        _ piece: UnsafePointer<CChar>?, _ size: UnsafeMutablePointer<Int>,
        _ state: UnsafeMutablePointer<UnsafeMutableRawPointer?>
    ) -> Int32 {
        guard let pointer = state.pointee else {
            let request = HTTPServer.request(connection, String(cString: path), String(cString: method))
            let id = nextID
            nextID += 1
            exchanges[id] = Exchange(connection: connection, request: request)
            state.pointee = UnsafeMutableRawPointer(bitPattern: id)
            return 1
        }
        let id = UInt(bitPattern: pointer)
        guard let exchange = exchanges[id], !exchange.isGone else { return 0 }
        if let response = exchange.response { return respond(id, connection, response) }
        if size.pointee > 0 {
            let bytes = UnsafeRawBufferPointer(start: piece, count: size.pointee)
            size.pointee = 0
            if exchange.body.count + bytes.count > options.bodyBytes {
                exchanges[id]?.isTooLarge = true
            } else {
                exchanges[id]?.body.append(contentsOf: bytes)
            }
            return 1
        }
        suspend(id)
        arrived.append(id)
        return 1
    }

    private func complete(_ id: UInt) {
        guard let exchange = exchanges.removeValue(forKey: id) else { return }
        over.append(exchange)
    }

    private static func request(_ connection: OpaquePointer, _ path: String, _ method: String) -> ControlRequest {
        var query: [String: String] = [:]
        withUnsafeMutablePointer(to: &query) { query in
            shim_mhd_arguments(connection, query) { context, name, value in
                guard let context, let name else { return }
                let query = context.assumingMemoryBound(to: [String: String].self)
                let key = String(cString: name)
                if query.pointee[key] == nil { query.pointee[key] = value.map { String(cString: $0) } ?? "" }
            }
        }
        return ControlRequest(
            method: method, path: path, query: query,
            accept: shim_mhd_header(connection, "Accept").map { String(cString: $0) }, body: [],
            peer: UnixSocket.peer(of: shim_mhd_socket(connection)))
    }

    // MARK: Answering

    private func answer(_ id: UInt) {
        guard let exchange = exchanges[id] else { return }
        if exchange.isTooLarge {
            finish(id, .error(413, "too_large", "the body is larger than \(options.bodyBytes) bytes"))
            return
        }
        if let peer = exchange.request.peer, !checksPeer(peer) {
            finish(id, .error(403, "not_permitted", "user \(peer.userID) may not control the agent"))
            return
        }
        let bare = exchange.request
        let request = ControlRequest(
            method: bare.method, path: bare.path, query: bare.query, accept: bare.accept, body: exchange.body,
            peer: bare.peer)
        exchanges[id]?.body = []
        let handler = self.handler
        exchanges[id]?.task = Task(executorPreference: loop) {
            let response = await handler(request)
            await self.finish(id, response)
        }
    }

    private func finish(_ id: UInt, _ response: ControlResponse) {
        guard let exchange = exchanges[id], exchange.response == nil, !exchange.isGone else { return }
        exchanges[id]?.response = response
        exchanges[id]?.task = nil
        if case .stream(let write) = response.body, exchange.request.method != "HEAD" {
            exchanges[id]?.task = Task(executorPreference: loop) {
                await write(ControlStream(self, id))
                await self.endStream(id)
            }
        }
        resume(id)
    }

    private func respond(_ id: UInt, _ connection: OpaquePointer, _ response: ControlResponse) -> Int32 {
        let created: OpaquePointer?
        switch response.body {
        case .bytes(let bytes): created = shim_mhd_response(bytes, bytes.count)
        case .stream where exchanges[id]?.request.method == "HEAD": created = shim_mhd_response(nil, 0)
        case .stream: created = streamingResponse(id)
        }
        guard let created else { return 0 }
        for (name, value) in response.headers + HTTPServer.commonHeaders {
            // Refused for a name or value that holds a line break, and then it must not be sent.
            _ = shim_mhd_add_header(created, name, value)
        }
        return shim_mhd_respond(connection, UInt32(response.status), created)
    }

    private static let commonHeaders = [
        (name: "Cache-Control", value: "no-store"), (name: "X-Content-Type-Options", value: "nosniff"),
    ]

    // MARK: Suspended connections

    func suspend(_ id: UInt) {
        guard let exchange = exchanges[id], !exchange.isSuspended else { return }
        shim_mhd_suspend(exchange.connection)
        exchanges[id]?.isSuspended = true
        // The end of the client is told without asking. A descriptor that cannot be watched is no reason not to answer.
        try? loop.watch(shim_mhd_socket(exchange.connection), for: []) { _ in
            self.assumeIsolated { $0.leave(id) }
        }
    }

    /// Without a thread, the library does not tell its own descriptor of it: it needs a turn.
    func resume(_ id: UInt) {
        guard let exchange = exchanges[id], exchange.isSuspended else { return }
        loop.forget(shim_mhd_socket(exchange.connection))
        exchanges[id]?.isSuspended = false
        shim_mhd_resume(exchange.connection)
        guard !isTurnDue else { return }
        isTurnDue = true
        loop.post { self.assumeIsolated { $0.turn() } }
    }

    /// The client is gone: the answer is not wanted any more.
    private func leave(_ id: UInt) {
        guard let exchange = exchanges[id] else { return }
        exchanges[id]?.isGone = true
        exchange.task?.cancel()
        if let writer = exchange.stream.writer {
            exchanges[id]?.stream.writer = nil
            writer.resume(returning: false)
        }
        resume(id)
    }
}
