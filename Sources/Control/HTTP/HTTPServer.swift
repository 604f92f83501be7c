internal import EventLoops
internal import Glibc
internal import Metrics

struct HTTPServerOptions: Sendable {
    var connections = 32
    /// How long a connection may stay open without a request.
    var idle = Duration.seconds(15)
    /// How long a request may take to arrive as a whole, from its first byte to the last of its body.
    var request = Duration.seconds(15)
    /// How long an answer may wait for a client that takes nothing of it; one that is no stream must be out by then.
    var answer = Duration.seconds(60)
    /// Bytes of a request's line and headers.
    var headerBytes = 16_384
    var bodyBytes = 1_048_576
    /// Bytes of a streaming answer that may wait for a slow client.
    var streamBytes = 262_144
}

/// What a server counts: the requests that it answered, and the connections that it cut before their time.
struct ServerFigures: Sendable {
    private let server: String
    private let requests = CounterSet(\.requests)
    private let cuts = CounterSet(\.connectionsCut)

    init(of server: String) { self.server = server }

    var collectors: [any MetricCollector] { [requests, cuts] }

    func answered(_ status: Int) { requests.add([server, "\(status / 100)xx"]) }

    /// - Parameter reason: `slow`, `crowded` (place needed), `busy` (none free), `shortage` (descriptors, memory).
    func cut(_ reason: String) { cuts.add([server, reason]) }
}

/// An HTTP/1.1 server on an event loop, without its own thread.
///
/// It accepts always: where all places are taken, the connection with the weakest claim to its place is cut: of whoever
/// has the most connections, the one that has said nothing for longest, else the one whose request is longest under way.
/// So clients that are slow, silent or many do not delay one that sends its request at once. Each request, each answer and each silence
/// has a bound in time; one timer serves all of them, and there is none while there is no connection.
actor HTTPServer: LoopActor {
    typealias Handler = @Sendable (ControlRequest) async -> ControlResponse

    nonisolated let loop: EventLoop
    let options: HTTPServerOptions
    let time: any TimeSource
    let judge: @Sendable (HTTPRequestHead, PeerCredentials?) -> ControlRefusal?
    let handler: Handler
    let figures: ServerFigures
    private(set) var listener: Int32?
    var retry: EventLoop.TimerID?
    private var timer: (id: EventLoop.TimerID, due: BootInstant)?
    var connections: [UInt: HTTPConnection] = [:]
    var nextID: UInt = 1

    /// How much is read at a time, and how many connections are accepted before others have their turn.
    static let block = 65_536
    static let acceptedAtOnce = 64

    /// `judge` sees headers and sender before the body is read; `handler` runs on the loop, cancelled with its client.
    init(
        on loop: EventLoop, options: HTTPServerOptions, time: any TimeSource = SystemTime(),
        judge: @escaping @Sendable (HTTPRequestHead, PeerCredentials?) -> ControlRefusal? = { _, _ in nil },
        figures: ServerFigures = ServerFigures(of: "stats"), handler: @escaping Handler
    ) {
        (self.loop, self.options, self.time) = (loop, options, time)
        (self.judge, self.figures, self.handler) = (judge, figures, handler)
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

    func setDeadline(_ id: UInt, _ wait: Duration) {
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
            let isSlow = !connection.isIdle && connection.phase != .draining
            if isSlow { figures.cut("slow") }
            if isSlow, connection.phase == .receiving {
                refuse(connection.id, ControlRefusal(408, "slow", "the request took too long to arrive"))
            } else {
                leave(connection.id)
            }
        }
        guard timer == nil, let next = connections.values.compactMap(\.deadline).min() else { return }
        timer = (loop.at(next) { self.assumeIsolated { $0.cutLate() } }, next)
    }
}
