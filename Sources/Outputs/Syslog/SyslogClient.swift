internal import EventLoops
internal import Model

/// Sends bytes over one connection to a syslog server, and waits until the server's machine has them.
///
/// The connection is made when the first bytes need it, and kept. Syslog over TCP has no acknowledgement
/// (RFC 6587), so TCP's own acknowledgements stand for it: a call succeeds once the other machine's TCP has
/// acknowledged all its bytes. The server's program may still lose what it has not read; no client can
/// notice that. Timers run only while calls wait, so that an idle destination never wakes the process. Runs
/// on the loop passed to `init`.
actor SyslogClient: LoopActor {
    nonisolated let loop: EventLoop
    private let settings: DestinationSettings
    private let address: NATSAddress
    private let time: any TimeSource
    /// Makes the connections: libcurl knows proxies, name resolution and both IP versions.
    private let http: HTTPClient
    /// Certificates for the next connection.
    private var tls: TLSMaterial.Contents
    /// State of the connection.
    private var phase = Phase.closed
    /// Calls that wait, by id; several may share the connection.
    private var calls: [UInt64: Call] = [:]
    /// Id of the latest call.
    private var lastID: UInt64 = 0
    /// Timer of the next look at the acknowledged bytes, while a call waits for them.
    private var nextLook: EventLoop.TimerID?
    /// Expiry of the certificate that the server last presented; nil before a handshake.
    private(set) var serverExpiry: Timestamp?

    /// The states of the connection; there is at most one.
    private enum Phase {
        case closed
        /// libcurl is making the connection.
        case connecting
        /// TLS is being set up, with a timer that limits the time for it.
        case handshaking(SecureStream, EventLoop.TimerID)
        /// Bytes can be sent. `since` limits the age of the connection (`max_connection_age`).
        case ready(SecureStream, since: BootInstant)

        var stream: SecureStream? {
            switch self {
            case .closed, .connecting: nil
            case .handshaking(let stream, _), .ready(let stream, _): stream
            }
        }
    }

    /// A waiting call of `send`. Its continuation is resumed once, by `finish`.
    private final class Call {
        let bytes: [UInt8]
        let continuation: CheckedContinuation<Outcome, Never>
        /// Timer of the request timeout; nil once it has fired.
        var timer: EventLoop.TimerID?
        /// Value of the stream's `totalBytes` after this call's last byte; nil until its bytes are queued.
        var end: Int?

        init(_ bytes: [UInt8], _ continuation: CheckedContinuation<Outcome, Never>) {
            self.bytes = bytes
            self.continuation = continuation
        }
    }

    /// Shortest and longest wait between two looks at the acknowledged bytes. The kernel gives no event for
    /// an acknowledgement, so the client polls; the wait doubles, because a slow network would otherwise
    /// cost a thousand looks a second.
    private static let shortestWait = Duration.milliseconds(1)
    private static let longestWait = Duration.milliseconds(100)

    /// - Throws: `OutputError` with code `library` if there is no memory.
    init(
        _ settings: DestinationSettings, _ address: NATSAddress, tls: TLSMaterial.Contents,
        on loop: EventLoop, time: any TimeSource
    ) throws(OutputError) {
        self.settings = settings
        self.address = address
        self.tls = tls
        self.loop = loop
        self.time = time
        let connection = TransferSettings(options: settings.bareConnection, tls: .init())
        http = try HTTPClient(on: loop, settings: connection)
    }

    /// Whether the connection is ready; for tests.
    var isConnected: Bool {
        if case .ready = phase { return true }
        return false
    }

    /// Whether a connection is being made; for tests.
    var isConnecting: Bool {
        switch phase {
        case .connecting, .handshaking: true
        case .closed, .ready: false
        }
    }

    /// Uses other certificates for the next connection. An idle connection is closed, so that the next
    /// batch already proves the new certificates.
    func use(_ tls: TLSMaterial.Contents) {
        self.tls = tls
        if case .ready(let stream, _) = phase, calls.isEmpty {
            close(stream)
        }
    }

    /// Sends bytes; with an empty array it only connects. Ends within `requestTimeout`, or at once when its
    /// task is cancelled.
    func send(_ bytes: [UInt8]) async -> Outcome {
        lastID += 1
        let id = lastID
        return await cancellable {
            begin(Call(bytes, $0), id)
        } onCancel: {
            $0.finish(
                id, .retry(Failure(kind: .connection, message: "the wait ended before everything was sent")))
        }
    }

    /// Registers a call, and starts it if the connection is ready; otherwise makes a connection. An old
    /// connection is replaced only if no other call uses it.
    private func begin(_ call: Call, _ id: UInt64) {
        calls[id] = call
        call.timer = after(settings.requestTimeout) { $0.timeOut(id) }
        if case .ready(let stream, let since) = phase, calls.count == 1,
            time.bootTime - since >= settings.maxConnectionAge
        {
            close(stream)
        }
        switch phase {
        case .ready(let stream, _):
            start(call, over: stream)
            proceed(stream)
        case .connecting, .handshaking: break
        case .closed:
            phase = .connecting
            Task(executorPreference: loop) { await self.connect() }
        }
    }

    /// Ends a call whose time is over. If its bytes were queued, the connection is closed too, or the bytes
    /// would stay in the buffer and the next attempt would add the same bytes again.
    private func timeOut(_ id: UInt64) {
        guard let call = calls[id] else { return }
        call.timer = nil
        let isOnItsWay = call.end != nil
        let failure = Failure(
            kind: .timeout,
            message: isOnItsWay
                ? "\(address.host) did not take all messages in time (request_timeout)"
                : "no connection to \(address.host) in time (request_timeout)")
        guard isOnItsWay, case .ready(let stream, _) = phase else { return finish(id, .retry(failure)) }
        // The server reads nothing: without closing, unsent bytes would pile up.
        fail(stream, .retry(failure))
    }

    /// Ends one call. The first outcome counts; later ones no longer find the call.
    private func finish(_ id: UInt64, _ outcome: Outcome) {
        guard let call = calls.removeValue(forKey: id) else { return }
        if let timer = call.timer {
            loop.cancel(timer)
        }
        call.continuation.resume(returning: outcome)
        // The server does not read, and the next attempt brings the same bytes again: unsent bytes must not
        // pile up.
        if outcome != .acknowledged, call.end != nil, case .ready(let stream, _) = phase, stream.hasUnsent {
            fail(stream, outcome)
        }
    }

    /// Ends all calls with one outcome, in the order of their begin.
    private func finishAll(_ outcome: Outcome) {
        for id in calls.keys.sorted() { finish(id, outcome) }
    }

    // MARK: Connecting

    /// Makes a connection with libcurl, which hands over the connected socket.
    private func connect() async {
        switch await http.perform(HTTPRequest(method: .connect, url: "http://\(address.authority)/")) {
        case .noRoute: connectingFailed(.offline)
        case .failed(let failure): connectingFailed(failure.outcome)
        case .answered(let answer): connected(SecureStream(answer.socket, to: address.host, on: loop))
        }
    }

    /// No connection could be made: ends all calls.
    private func connectingFailed(_ outcome: Outcome) {
        phase = .closed
        finishAll(outcome)
    }

    /// Begins TLS on a new connection, or uses it at once without TLS.
    private func connected(_ stream: SecureStream) {
        guard address.isTLS else { return becomeReady(stream) }
        do throws(OutputError) {
            stream.begin(try TLSSession(tls, settings.tls, host: address.verifiedName))
        } catch {
            stream.close()
            return connectingFailed(error.failure.outcome)
        }
        let timer = after(settings.connectTimeout) { $0.handshakeIsLate() }
        phase = .handshaking(stream, timer)
        shakeHands(stream)
        proceed(stream)
    }

    /// Ends a handshake that takes too long: a plain server waits for a line, and would never answer.
    private func handshakeIsLate() {
        guard case .handshaking(let stream, _) = phase else { return }
        let message =
            "\(address.host) accepted the connection but not TLS in time:"
            + " does it speak TLS?"
        fail(stream, .retry(Failure(kind: .timeout, message: message)))
    }

    /// Continues the handshake, and reads the server's expiry when it is complete.
    private func shakeHands(_ stream: SecureStream) {
        switch stream.shakeHands() {
        case nil, .pending: break
        case .failed(let failure):
            // The TLS alert that tells the server the reason should go out before the connection closes.
            _ = stream.flush()
            fail(stream, .retry(failure))
        case .done:
            serverExpiry = stream.peerExpiry
            if case .handshaking(_, let timer) = phase {
                loop.cancel(timer)
            }
            becomeReady(stream)
        }
    }

    /// Starts all calls that have waited for the connection, in order.
    private func becomeReady(_ stream: SecureStream) {
        phase = .ready(stream, since: time.bootTime)
        for id in calls.keys.sorted() { calls[id].map { start($0, over: stream) } }
        proceed(stream)
    }

    // MARK: Sending

    /// Queues the bytes of a call, and notes where they end in the connection's bytes.
    private func start(_ call: Call, over stream: SecureStream) {
        if let failure = stream.say(call.bytes) { return fail(stream, .retry(failure)) }
        call.end = stream.totalBytes
    }

    /// Sends what the kernel accepts, ends calls whose bytes were acknowledged, and sets the timer for the
    /// others.
    private func proceed(_ stream: SecureStream, wait: Duration = SyslogClient.shortestWait) {
        guard stream.isOpen else { return }
        var failure = stream.flush()
        if failure == nil {
            // Closing a stream ends its watch, so this readiness is always about the present stream.
            failure = stream.watch { [weak self] ready in self?.assumeIsolated { $0.streamIsReady(ready) } }
        }
        if let failure { return fail(stream, .retry(failure)) }
        let arrived = stream.arrivedBytes
        for (id, call) in calls {
            if let end = call.end, end <= arrived {
                finish(id, .acknowledged)
            }
        }
        // The kernel signals room for more bytes, but not that the other side has them.
        let waits = calls.values.contains { $0.end != nil }
        guard waits, nextLook == nil, !stream.hasUnsent else { return }
        nextLook = after(wait) { $0.lookAgain(after: wait) }
    }

    /// Looks again after twice the wait.
    private func lookAgain(after wait: Duration) {
        nextLook = nil
        guard case .ready(let stream, _) = phase else { return }
        proceed(stream, wait: min(wait * 2, SyslogClient.longestWait))
    }

    /// Reads what the server sent: TLS records of the handshake, or the end of the connection.
    private func streamIsReady(_ ready: EventLoop.Readiness) {
        guard let stream = phase.stream else { return }
        var end: Failure?
        if !ready.isDisjoint(with: [.readable, .failed, .hungUp]) {
            end = stream.receive().failure
            if case .handshaking = phase {
                shakeHands(stream)
            }
            // A syslog server sends no data: bytes are dropped, only the end of TLS matters.
            if stream.isOpen, let failure = stream.decrypt().end {
                end = end ?? failure
            }
        }
        guard stream.isOpen else { return }
        if let end {
            fail(stream, .retry(end))
        } else {
            proceed(stream)
        }
    }

    /// Closes a broken connection and ends all its calls. Their bytes may have arrived or not, so the
    /// batches are sent again.
    private func fail(_ stream: SecureStream, _ outcome: Outcome) {
        guard stream.isOpen else { return }
        close(stream)
        finishAll(outcome)
    }

    /// Closes a connection, with the timer of its handshake.
    private func close(_ stream: SecureStream) {
        if case .handshaking(_, let timer) = phase {
            loop.cancel(timer)
        }
        phase = .closed
        stream.close()
    }
}
