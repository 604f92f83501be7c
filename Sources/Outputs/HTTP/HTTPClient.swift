internal import CCurl
internal import EventLoops
internal import Glibc
internal import Model
internal import Synchronization

/// Sends requests to one destination on an event loop, over connections that are kept alive.
///
/// libcurl's multi interface is driven by the loop: the loop watches its sockets and keeps its timer
/// (libcurl-multi(3), `multi_socket`). libcurl's callbacks only set watches and note the wanted time,
/// because libcurl forbids calls into itself from a callback; all calls of `curl_multi_*` are made outside
/// of them.
actor HTTPClient: LoopActor {
    nonisolated let loop: EventLoop
    private let time = SystemTime()
    /// Settings of transfers that are made from now on.
    private var settings: TransferSettings
    /// Number of the present settings. A handle of an older generation is not reused: it would still use old
    /// certificates.
    private var generation = 0

    /// libcurl's multi handle. `nonisolated(unsafe)` for `deinit`, which runs when no other reference to
    /// the actor is left.
    nonisolated(unsafe) private let multi: UnsafeMutableRawPointer
    /// Handles of finished requests, for reuse; at most 8.
    private var idle: [Transfer] = []
    /// Transfers under way, by libcurl's handle. Touched on the loop only, like `timerWish`.
    nonisolated(unsafe) private var active: [UnsafeMutableRawPointer: Transfer] = [:]
    /// Id of the latest request, by which cancellation finds it.
    private var lastID: UInt64 = 0
    /// CPU time that the thread lacked, to tell a starved agent from a slow network.
    private var wait = CPUWait()
    /// Expiry of the server's certificate in nanoseconds; `.min` before a handshake. Atomic, because it is
    /// read without a hop to the actor.
    private nonisolated let expiry = Atomic<Int64>(.min)

    /// The time that libcurl's timer callback asked for; nil once it was noted in `wanted`. Touched only on
    /// the loop, inside libcurl's calls. Checked isolation would cost more than the callback itself.
    nonisolated(unsafe) private var timerWish: TimerWish?
    /// When libcurl wants to be called; nil if it waits for sockets only.
    private var wanted: BootInstant?
    /// The loop's timer; it may be earlier than `wanted`, never later.
    private var armed: (deadline: BootInstant, id: EventLoop.TimerID)?
    /// Whether requests make connections of their own until one is answered. Set when a reused connection
    /// ended without an answer: a server that closed one, at its restart or after an idle time, has closed
    /// the others, and libcurl takes a connection for alive that ends with TLS's own end. Each would cost an
    /// attempt, and each attempt a longer wait.
    private var avoidsOldConnections = false
    /// Whether a call of `nudge` is already queued on the loop.
    private var nudged = false

    /// Expiry of the certificate that the server last presented; nil before a handshake. May be read on any
    /// thread.
    nonisolated var serverExpiry: Timestamp? {
        let nanoseconds = expiry.load(ordering: .relaxed)
        return nanoseconds == .min ? nil : Timestamp(nanoseconds: nanoseconds)
    }

    /// - Throws: `OutputError` with code `library` if there is no memory.
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
                if let easy, let transfer = client.active[easy] {
                    what == CURL_POLL_REMOVE ? transfer.socketIsLeft() : transfer.socketIsUsed(socket)
                }
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
        // No request is in flight, because a request holds the actor. libcurl closes its idle sockets here;
        // they are not watched, so the callbacks are removed first.
        shim_curl_multi_callbacks(multi, nil, nil, nil)
        curl_multi_cleanup(multi)
    }

    /// Connections that are kept open while several requests are under way.
    private static let mostConnections = 16

    /// Whether libcurl's global set-up has succeeded; done once for the process.
    private static let libraryIsReady = shim_curl_global_init() == CURLE_OK

    /// Uses other settings for all requests from now on; requests under way end with the old ones.
    func use(_ settings: TransferSettings) {
        self.settings = settings
        generation += 1
        idle.removeAll()
    }

    /// Sends a request and waits for its answer. Ends within the settings' timeouts, or when its task is
    /// cancelled.
    func perform(_ request: HTTPRequest) async -> HTTPResult {
        guard let transfer = idle.popLast() ?? settings.makeTransfer(generation: generation) else {
            return .failed(Failure(kind: .local, message: "no memory for a request"))
        }
        transfer.prepare(request)
        shim_curl_set_long(transfer.easy, CURLOPT_FRESH_CONNECT, avoidsOldConnections ? 1 : 0)
        settings.limitTime(of: transfer, factor: request.timeFactor)
        lastID += 1
        let id = lastID
        transfer.id = id
        return await cancellable { continuation in
            transfer.continuation = continuation
            // With a limit of 1, libcurl closes connections that a burst left open, until one remains.
            shim_curl_multi_set_long(
                multi, CURLMOPT_MAXCONNECTS, active.isEmpty ? 1 : HTTPClient.mostConnections)
            if let failure = begin(transfer) {
                continuation.resume(returning: .failed(failure))
            }
        } onCancel: {
            $0.cancel(id)
        }
    }

    /// Hands a transfer to libcurl and lets it start.
    ///
    /// - Returns: why libcurl refused the transfer; nil if it is under way.
    private func begin(_ transfer: Transfer) -> Failure? {
        let result = curl_multi_add_handle(multi, transfer.easy)
        guard result == CURLM_OK else {
            return Failure(kind: .local, message: "libcurl: \(String(cString: curl_multi_strerror(result)))")
        }
        active[transfer.easy] = transfer
        wait.begin(at: time.bootTime)
        call(CURL_SOCKET_TIMEOUT, 0)
        return nil
    }

    /// The result of a `connect` request: a duplicate of the connected socket, for the caller.
    ///
    /// Must be called while libcurl still has the connection, because it closes its own descriptor when the
    /// transfer ends.
    private func connection(of transfer: Transfer) -> HTTPResult {
        let socket = shim_curl_active_socket(transfer.easy)
        // epoll watches the connection, not the descriptor, for as long as a duplicate is open (epoll(7)):
        // the watch must end before the socket is duplicated.
        if socket >= 0 {
            loop.forget(socket)
        }
        let copy = fcntl(socket, F_DUPFD_CLOEXEC, 0)
        guard copy >= 0 else {
            return .failed(
                Failure(
                    kind: .local, message: "no descriptor for a connection: \(SystemError.message(errno))"))
        }
        return .answered(HTTPAnswer(status: 0, socket: copy))
    }

    /// Ends the request of a cancelled task, if it is still under way.
    private func cancel(_ id: UInt64) {
        guard let transfer = active.values.first(where: { $0.id == id }) else { return }
        end(transfer, .failed(Failure(kind: .connection, message: "the wait ended before an answer came")))
        arm()
    }

    /// Takes a transfer back from libcurl, and resumes its waiting call.
    private func end(_ transfer: Transfer, _ result: HTTPResult) {
        curl_multi_remove_handle(multi, transfer.easy)
        active[transfer.easy] = nil
        transfer.continuation?.resume(returning: result)
        transfer.continuation = nil
        if transfer.generation == generation, transfer.method != .connect, idle.count < 8 {
            idle.append(transfer)
        }
    }

    // MARK: What the library asks for (inside its calls)

    /// What libcurl's timer callback asks for: no call, or a call after some milliseconds.
    private enum TimerWish {
        case never
        case after(milliseconds: Int)
    }

    /// Watches a socket as libcurl's socket callback asks.
    private nonisolated func watch(_ socket: Int32, _ what: Int32) {
        guard what != CURL_POLL_REMOVE else { return loop.forget(socket) }
        var readiness: EventLoop.Readiness = []
        if what & CURL_POLL_IN != 0 {
            readiness.insert(.readable)
        }
        if what & CURL_POLL_OUT != 0 {
            readiness.insert(.writable)
        }
        do {
            try loop.watch(socket, for: readiness) { ready in
                self.assumeIsolated { $0.socketIsReady(socket, ready) }
            }
        } catch {
            // The kernel has no memory for the watch: the transfer then ends by its timeouts.
        }
    }

    // MARK: Calls into the library

    /// Tells libcurl that a socket is ready.
    private func socketIsReady(_ socket: Int32, _ ready: EventLoop.Readiness) {
        var mask: Int32 = 0
        if ready.contains(.readable) {
            mask |= CURL_CSELECT_IN
        }
        if ready.contains(.writable) {
            mask |= CURL_CSELECT_OUT
        }
        if !ready.isDisjoint(with: [.failed, .hungUp]) {
            mask |= CURL_CSELECT_ERR
        }
        call(socket, mask)
    }

    /// Calls libcurl for a socket or for its timer, then handles what has finished.
    private func call(_ socket: Int32, _ mask: Int32) {
        if socket == CURL_SOCKET_TIMEOUT {
            // This call is the one that libcurl asked for. Cleared before it, because libcurl may ask for
            // the next one during the call.
            timerWish = nil
            wanted = nil
        }
        var running: Int32 = 0
        curl_multi_socket_action(multi, socket, mask, &running)
        finishTransfers()
        if settings.options.http.version == .http2 {
            endEarlyAnswers()
        }
        arm()
    }

    /// Ends all transfers that libcurl reports as finished.
    private func finishTransfers() {
        var left: Int32 = 0
        while let message = curl_multi_info_read(multi, &left) {
            guard message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle else {
                continue
            }
            let result = shim_curl_result(message)
            if result == CURLE_OPERATION_TIMEDOUT {
                leaveConnection(of: easy)
            }
            if let transfer = active[easy] {
                if transfer.wantedRepeat(endingWith: result) {
                    avoidsOldConnections = true
                } else if transfer.hasBegunAnswer {
                    avoidsOldConnections = false
                }
                end(transfer, outcome(of: transfer, result))
            }
        }
    }

    /// Shuts down the connection of a request that timed out. Over HTTP/2, libcurl would keep the
    /// connection, and the next request would wait on it as well. Other requests on it fail and are
    /// retried.
    private func leaveConnection(of easy: UnsafeMutableRawPointer) {
        let socket = shim_curl_active_socket(easy)
        if socket >= 0 {
            shutdown(socket, Int32(SHUT_RDWR))
        }
    }

    /// Ends transfers that were answered before their body was read (HTTP/2 only).
    ///
    /// An HTTP/2 server may answer and reset the stream while the body is half sent, as nginx does with
    /// `return`. libcurl waits to send until a timeout. An answer without a length gets two seconds to end by
    /// itself.
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

    /// Ends such a transfer after its two seconds, if it is still the same request.
    private func endEarlyAnswer(_ id: UInt64) {
        guard let transfer = active.values.first(where: { $0.id == id }), transfer.isAnsweredEarly else {
            return
        }
        end(transfer, wholly: false)
        arm()
    }

    /// Ends a transfer with the answer that it has; does nothing without an answer's head.
    private func end(_ transfer: Transfer, wholly: Bool) {
        if let result = answer(to: transfer, wholly: wholly) {
            end(transfer, result)
        }
    }

    /// The result of a finished transfer: a connection, an answer, or the failure.
    private func outcome(of transfer: Transfer, _ result: CURLcode) -> HTTPResult {
        if transfer.method == .connect, result == CURLE_OK { return connection(of: transfer) }
        return answer(to: transfer, wholly: result == CURLE_OK)
            ?? TransferFailure.result(result, transfer, settings.options, waited: wait.sinceMark)
    }

    /// The answer as far as it was received; nil without a complete head.
    ///
    /// A status counts even if the body broke off. But a success that came before the request had arrived
    /// is a failure: the sender of the answer cannot have stored the events.
    private func answer(to transfer: Transfer, wholly: Bool) -> HTTPResult? {
        if let end = transfer.serverExpiry {
            expiry.store(end.nanoseconds, ordering: .relaxed)
        }
        guard let answer = transfer.answerRead(wholly: wholly) else { return nil }
        guard (200...299).contains(answer.status), transfer.isAnsweredEarly else { return .answered(answer) }
        return .failed(TransferFailure.early(answer.status, url: transfer.url))
    }

    /// Makes sure that libcurl is called at the wanted time.
    ///
    /// A timer that fires too early stays: it finds nothing to do, and is set again. Moving it with every
    /// request, as libcurl asks, would cost a system call each time.
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

    /// Calls libcurl at once, outside of the callback or the request in which it asked for that.
    private func nudge() {
        nudged = false
        guard wanted != nil else { return }
        call(CURL_SOCKET_TIMEOUT, 0)
    }

    /// Calls libcurl if its timer is due; otherwise sets the timer again.
    private func timerFired() {
        armed = nil
        guard let wanted else { return }
        if wanted <= time.bootTime {
            call(CURL_SOCKET_TIMEOUT, 0)
        } else {
            arm()
        }
    }
}
