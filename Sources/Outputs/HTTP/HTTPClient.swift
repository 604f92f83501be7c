internal import CCurl
internal import EventLoops
internal import Glibc
internal import Model
internal import Synchronization

/// Sends requests to one destination, over connections that are kept alive, on an event loop.
///
/// libcurl's sockets and timer are the loop's; its callbacks only set watches and note when it wants to be called. All
/// calls into `curl_multi_*` are made outside of them.
actor HTTPClient: LoopActor {
    nonisolated let loop: EventLoop
    private let time = SystemTime()
    private var settings: TransferSettings
    private var generation = 0

    // The actor's own; `nonisolated(unsafe)` for deinit, which runs when nobody else has the actor any more.
    nonisolated(unsafe) private let multi: UnsafeMutableRawPointer
    private var idle: [Transfer] = []
    /// Touched on the loop only, as `timerWish`.
    nonisolated(unsafe) private var active: [UnsafeMutableRawPointer: Transfer] = [:]
    private var lastID: UInt64 = 0
    private nonisolated let expiry = Atomic<Int64>(.min)

    /// What the library's timer callback said last; nil: nothing since that was taken up. Touched on the loop only, where the
    /// library is called: to prove that there, as isolation does, costs more than what the callback does.
    nonisolated(unsafe) private var timerWish: TimerWish?
    /// When the library wants to be called; nil: not by time.
    private var wanted: BootInstant?
    private var armed: (deadline: BootInstant, id: EventLoop.TimerID)?
    private var nudged = false

    /// When the certificate that the destination last showed ends; nil before a handshake. From anywhere, without a hop.
    nonisolated var serverExpiry: Timestamp? {
        let nanoseconds = expiry.load(ordering: .relaxed)
        return nanoseconds == .min ? nil : Timestamp(nanoseconds: nanoseconds)
    }

    /// - Throws: `OutputError` with code `library` for want of memory.
    init(on loop: EventLoop, settings: TransferSettings) throws(OutputError) {
        guard HTTPClient.libraryIsReady, let multi = curl_multi_init() else {
            throw OutputError(.library, "libcurl could not be set up: no memory")
        }
        self.loop = loop
        self.settings = settings
        self.multi = multi
        shim_curl_multi_callbacks(
            multi,
            { easy, socket, what, context, _ in
                guard let context else { return 0 }
                let client = Unmanaged<HTTPClient>.fromOpaque(context).takeUnretainedValue()
                if let easy, what != CURL_POLL_REMOVE { client.active[easy]?.socket = socket }
                client.watch(socket, what)
                return 0
            },
            { _, milliseconds, context in
                guard let context else { return 0 }
                let client = Unmanaged<HTTPClient>.fromOpaque(context).takeUnretainedValue()
                client.timerWish = milliseconds < 0 ? .never : .after(milliseconds: milliseconds)
                return 0
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    deinit {
        // Nothing is in flight: a request holds the actor. Idle sockets are not watched, so nobody needs to be told.
        shim_curl_multi_callbacks(multi, nil, nil, nil)
        curl_multi_cleanup(multi)
    }

    /// How many connections are kept while several requests are on their way.
    private static let mostConnections = 16

    private static let libraryIsReady = shim_curl_global_init() == CURLE_OK

    /// Other settings for all requests from now on; those in flight end as they began.
    func use(_ settings: TransferSettings) {
        self.settings = settings
        generation += 1
        idle.removeAll()
    }

    /// Sends a request and waits for its answer. Ends within the settings' timeouts, or when its task is cancelled.
    func perform(_ request: HTTPRequest) async -> HTTPResult {
        guard let transfer = idle.popLast() ?? settings.makeTransfer(generation: generation) else {
            return .failed(Failure(kind: .local, message: "no memory for a request"))
        }
        transfer.prepare(request)
        lastID += 1
        let id = lastID
        transfer.id = id
        return await cancellable { continuation in
            transfer.continuation = continuation
            // A request that is alone closes a connection that others have left idle, until one is left.
            shim_curl_multi_set_long(multi, CURLMOPT_MAXCONNECTS, active.isEmpty ? 1 : HTTPClient.mostConnections)
            if let failure = begin(transfer) { continuation.resume(returning: .failed(failure)) }
        } onCancel: {
            $0.cancel(id)
        }
    }

    /// - Returns: why the library did not take it; nil when it is under way.
    private func begin(_ transfer: Transfer) -> Failure? {
        let result = curl_multi_add_handle(multi, transfer.easy)
        guard result == CURLM_OK else {
            return Failure(kind: .local, message: "libcurl: \(String(cString: curl_multi_strerror(result)))")
        }
        active[transfer.easy] = transfer
        call(CURL_SOCKET_TIMEOUT, 0)
        return nil
    }

    /// Hands over a connection that was made. To be asked while the library still has it: it closes its own end when it lets go.
    private func connection(of transfer: Transfer) -> HTTPResult {
        let socket = shim_curl_active_socket(transfer.easy)
        // The kernel keeps a watch for as long as any descriptor of the connection is open.
        if socket >= 0 { loop.forget(socket) }
        let copy = fcntl(socket, F_DUPFD_CLOEXEC, 0)
        guard copy >= 0 else {
            return .failed(
                Failure(kind: .local, message: "no descriptor for a connection: \(SystemError.message(errno))"))
        }
        return .answered(HTTPAnswer(status: 0, socket: copy))
    }

    private func cancel(_ id: UInt64) {
        guard let transfer = active.values.first(where: { $0.id == id }) else { return }
        end(transfer, .failed(Failure(kind: .connection, message: "given up before an answer came")))
        arm()
    }

    /// Takes a transfer back from the library, and notifies its waiter.
    private func end(_ transfer: Transfer, _ result: HTTPResult) {
        curl_multi_remove_handle(multi, transfer.easy)
        active[transfer.easy] = nil
        transfer.continuation?.resume(returning: result)
        transfer.continuation = nil
        if transfer.generation == generation, transfer.method != .connect, idle.count < 8 { idle.append(transfer) }
    }

    // MARK: What the library asks for (inside its calls)

    /// When the library wants to be called, by its timer callback.
    private enum TimerWish {
        case never
        case after(milliseconds: Int)
    }

    private nonisolated func watch(_ socket: Int32, _ what: Int32) {
        guard what != CURL_POLL_REMOVE else { return loop.forget(socket) }
        var readiness: EventLoop.Readiness = []
        if what & CURL_POLL_IN != 0 { readiness.insert(.readable) }
        if what & CURL_POLL_OUT != 0 { readiness.insert(.writable) }
        do {
            try loop.watch(socket, for: readiness) { ready in
                self.assumeIsolated { $0.socketIsReady(socket, ready) }
            }
        } catch {
            // A socket that cannot be watched (no memory in the kernel) makes its transfer end by its timeouts.
        }
    }

    // MARK: Calls into the library

    private func socketIsReady(_ socket: Int32, _ ready: EventLoop.Readiness) {
        var mask: Int32 = 0
        if ready.contains(.readable) { mask |= CURL_CSELECT_IN }
        if ready.contains(.writable) { mask |= CURL_CSELECT_OUT }
        if !ready.isDisjoint(with: [.failed, .hungUp]) { mask |= CURL_CSELECT_ERR }
        call(socket, mask)
    }

    private func call(_ socket: Int32, _ mask: Int32) {
        if socket == CURL_SOCKET_TIMEOUT {
            // What it asked for until now is what it is called for.
            timerWish = nil
            wanted = nil
        }
        var running: Int32 = 0
        curl_multi_socket_action(multi, socket, mask, &running)
        finishTransfers()
        if settings.options.settings.httpVersion == .http2 { endEarlyAnswers() }
        arm()
    }

    private func finishTransfers() {
        var left: Int32 = 0
        while let message = curl_multi_info_read(multi, &left) {
            guard message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle else { continue }
            let result = shim_curl_result(message)
            if result == CURLE_OPERATION_TIMEDOUT { leaveConnection(of: easy) }
            if let transfer = active[easy] { end(transfer, outcome(of: transfer, result)) }
        }
    }

    /// Ends a connection on which a request was not answered in time: over HTTP/2 the library keeps it, and the next request would
    /// wait there too. What else is on its way over it goes again.
    private func leaveConnection(of easy: UnsafeMutableRawPointer) {
        let socket = shim_curl_active_socket(easy)
        if socket >= 0 { shutdown(socket, Int32(SHUT_RDWR)) }
    }

    /// Ends transfers whose answer came before their body was read.
    ///
    /// Over HTTP/2 a server may answer and reset the stream with the body half sent (nginx does, with `return`). The
    /// library goes on waiting to send until a timeout. What has no length gets two seconds to end by itself.
    private func endEarlyAnswers() {
        for transfer in active.values where transfer.isAnsweredEarly {
            if transfer.hasWholeAnswer {
                end(transfer, wholly: true)
            } else if transfer.graceFor != transfer.id {
                let id = transfer.id
                transfer.graceFor = id
                after(.seconds(2)) { $0.endEarlyAnswer(id) }
            }
        }
    }

    private func endEarlyAnswer(_ id: UInt64) {
        guard let transfer = active.values.first(where: { $0.id == id }), transfer.isAnsweredEarly else { return }
        end(transfer, wholly: false)
        arm()
    }

    private func end(_ transfer: Transfer, wholly: Bool) {
        if let result = answer(to: transfer, wholly: wholly) { end(transfer, result) }
    }

    private func outcome(of transfer: Transfer, _ result: CURLcode) -> HTTPResult {
        if transfer.method == .connect, result == CURLE_OK { return connection(of: transfer) }
        return answer(to: transfer, wholly: result == CURLE_OK)
            ?? TransferFailure.result(result, transfer, settings.options)
    }

    /// A status that has come counts, even without the rest of the answer; but nobody has taken what did not arrive.
    private func answer(to transfer: Transfer, wholly: Bool) -> HTTPResult? {
        if let end = transfer.serverExpiry { expiry.store(end.nanoseconds, ordering: .relaxed) }
        guard let answer = transfer.answerRead(wholly: wholly) else { return nil }
        guard (200...299).contains(answer.status), transfer.isAnsweredEarly else { return .answered(answer) }
        return .failed(TransferFailure.early(answer.status, url: transfer.url))
    }

    /// Makes sure that the library is called when it wants to be.
    ///
    /// An armed timer that is early enough stays: it finds nothing to do and is set again. Moving it with every request,
    /// as the library would have it, is a system call each time.
    private func arm() {
        switch timerWish {
        case nil: break
        case .never: wanted = nil
        case .after(let milliseconds): wanted = time.bootTime + .milliseconds(milliseconds)
        }
        timerWish = nil
        guard let wanted else { return }
        if wanted <= time.bootTime {
            guard !nudged else { return }
            nudged = true
            loop.post { self.assumeIsolated { $0.nudge() } }
            return
        }
        if let armed {
            guard wanted < armed.deadline else { return }
            loop.cancel(armed.id)
        }
        let id = loop.at(wanted) { [weak self] in self?.assumeIsolated { $0.timerFired() } }
        armed = (wanted, id)
    }

    private func nudge() {
        nudged = false
        guard wanted != nil else { return }
        call(CURL_SOCKET_TIMEOUT, 0)
    }

    private func timerFired() {
        armed = nil
        guard let wanted else { return }
        if wanted <= time.bootTime { call(CURL_SOCKET_TIMEOUT, 0) } else { arm() }
    }
}
