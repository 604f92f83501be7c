// Control: HTTP for the stats port, the control socket and the development receiver, and the socket's client
// for commands.
//
// What the module promises:
// * A client, however slow, silent, numerous or hostile, cannot keep another client from an answer.
// * Requests are bounded in number, size and time. A waiting handler is cancelled when its client goes
//   away.
// * A request that two readers could understand in two ways is refused.
// * An idle agent is not woken: there is a timer only while there are connections.
// * Text from outside reaches a terminal only with its control characters escaped.
//
// Its parts:
// * `HTTPServer` (this file) is the server: deadlines and closing. `+Accepting` takes connections,
//   `+Requests` reads requests and writes answers and streams. `SelfProbe` asks a server whether it answers.
// * `HTTPChannel` is a connection's socket with its encryption, a `ConnectionCipher` that the server is
//   given.
// * `Reception` is what becomes of a request whose head has arrived.
// * `IncomingRequest` is the request as far as it has arrived, with `HTTPRequestHead` and `HTTPBodyReader` as
//   its parsers; `OutgoingBytes` is what waits to be sent, `HTTPAnswerHead` writes the head of answers;
//   `Claim` decides which connection yields its place: pure values without I/O.
// * `ControlServer` is the control socket (a Unix socket for a few users), `StatsServer` the stats port.
// * `ControlRoutes` finds the handler of a request. Requests, responses and refusals are values:
//   `ControlRequest`, `ControlResponse`, `ControlRefusal`.
// * `ControlClient` is the other end of the socket, in the commands. It blocks.
// * `EventTap` shows passing events to `spoolship tap` without slowing the reader.
// * `Status` has texts that the page, `status` and the commands share.
//
// Its rules:
// * A server is an actor on one loop; connections are touched on that loop only. It starts no thread.
// * Handlers are passed in, read published figures, and do not block. The module does not know what is
//   asked and answered.
// * Hostile: everything that a client sends, the names in it, and how it behaves on the connection.
//
// Begin with `HTTPServer.setDeadline` and `HTTPServer.admit`, then follow a request: `receive`, `process`,
// `answer`, `finish`, `flush`.

package import EventLoops
internal import Glibc
internal import Metrics

/// The bounds of a server.
package struct HTTPServerOptions: Sendable {
    /// Most connections at a time; a further one takes the place of the one with the weakest claim.
    package var connections: Int
    /// Longest time that a connection stays open without a request.
    package var idle = Duration.seconds(15)
    /// Longest time from the first byte of a request to the last byte of its body. Without it, a client
    /// that sends a byte now and then could keep its place for ever.
    package var request: Duration
    /// Longest time that an answer waits for a client that accepts none of it. An answer that is not a
    /// stream must be out within this time altogether.
    package var answer = Duration.seconds(60)
    /// Largest request line with headers, in bytes.
    package var headerBytes = 16_384
    /// Largest body, in bytes.
    package var bodyBytes: Int
    /// Bound for the bodies of all connections, perhaps shared with other servers; nil for no other bound
    /// than `connections` times `bodyBytes`.
    package var room: BodyRoom?
    /// Bytes of a stream that may wait for a slow client; then the stream's writer waits.
    package var streamBytes = 262_144

    package init(
        connections: Int = 32, request: Duration = .seconds(15), bodyBytes: Int = 1_048_576
    ) {
        self.connections = connections
        self.request = request
        self.bodyBytes = bodyBytes
    }
}

/// Counts requests by status, and connections that were cut early.
package struct ServerFigures: Sendable {
    private let server: String
    private let requests = CounterSet(\.requests)
    private let cuts = CounterSet(\.connectionsCut)

    /// - Parameter server: value of the label `server`.
    package init(of server: String) { self.server = server }

    var collectors: [any MetricCollector] { [requests, cuts] }

    /// Counts an answer by the class of its status.
    func answered(_ status: Int) { requests.add([server, "\(status / 100)xx"]) }

    /// Counts a connection that was cut.
    ///
    /// - Parameter reason: `slow`; `crowded`, its place was needed; `busy`, there was no place; `shortage`,
    ///   of descriptors or memory.
    func cut(_ reason: String) { cuts.add([server, reason]) }
}

/// An HTTP/1.1 server on an event loop, without a thread of its own.
///
/// It always accepts. If the limit of connections is reached, it cuts the connection with the weakest claim:
/// of the user or address with the most connections, an idle one before a busy one, and the oldest first. So
/// slow, silent or numerous clients do not delay a client that sends its request at once. Each request,
/// answer and silence has a bound in time; one timer serves all of them, and none runs without connections.
package actor HTTPServer: LoopActor {
    /// Decides about a request by its headers and sender, before its body is read.
    package typealias Judge = @Sendable (HTTPRequestHead, PeerCredentials?) -> Reception

    package nonisolated let loop: EventLoop
    let options: HTTPServerOptions
    let time: any TimeSource
    let judge: Judge
    /// Makes the encryption of a connection, or nil if there is no memory for it; nil for plain HTTP.
    let makeCipher: (@Sendable () -> (any ConnectionCipher)?)?
    let figures: ServerFigures
    /// The listening socket; nil while the server does not listen.
    private(set) var listener: Int32?
    /// Timer until accepting is tried again after a shortage of descriptors; nil without one.
    var retry: EventLoop.TimerID?
    /// The one timer, for the earliest deadline when it was set; it may fire too early, never too late.
    private var timer: (id: EventLoop.TimerID, due: BootInstant)?
    /// All connections, by id.
    var connections: [UInt: HTTPConnection] = [:]
    /// Id of the next connection. Ids are never reused, so that a late callback cannot reach another
    /// connection.
    var nextID: UInt = 1
    /// Bytes of bodies that `options.room` knows of.
    private var bodyBytes = 0

    /// Connections that are accepted before other work of the loop has its turn.
    static let acceptedAtOnce = 64

    /// - Parameters:
    ///   - makeCipher: makes the encryption of a connection, or nil if there is no memory for it; without it
    ///     the server speaks plain HTTP.
    ///   - judge: sees headers and sender before the body is read.
    package init(
        on loop: EventLoop, options: HTTPServerOptions, time: any TimeSource = SystemTime(),
        figures: ServerFigures, makeCipher: (@Sendable () -> (any ConnectionCipher)?)? = nil,
        judge: @escaping Judge
    ) {
        self.loop = loop
        self.options = options
        self.time = time
        self.judge = judge
        self.makeCipher = makeCipher
        self.figures = figures
    }

    /// A server that answers all requests that `refusal` does not refuse in one way.
    init(
        on loop: EventLoop, options: HTTPServerOptions, time: any TimeSource = SystemTime(),
        refusal: @escaping @Sendable (HTTPRequestHead, PeerCredentials?) -> ControlRefusal? = { _, _ in nil },
        figures: ServerFigures = ServerFigures(of: "stats"), handler: @escaping Reception.Handler
    ) {
        self.init(on: loop, options: options, time: time, figures: figures) { head, peer in
            refusal(head, peer).map { .refuse($0) } ?? .answer(handler)
        }
    }

    /// Serves a listening socket from now on, and closes the one before.
    package func start(_ listener: consuming Descriptor) throws(ControlError) {
        closeListener()
        let raw = listener.raw
        do {
            try watchListener(raw)
        } catch {
            throw ControlError(.system, "the server cannot be watched: \(error)")
        }
        self.listener = listener.release()
    }

    /// Whether a connection to this server's listening socket is answered.
    func isAnsweringItself() async -> Bool {
        guard let listener else { return false }
        return await answers { InternetSocket.connect(toListener: listener) }
    }

    /// Whether a connection that `connect` makes is answered in time.
    func answers(_ connect: () -> Descriptor?) async -> Bool {
        await SelfProbe(loop: loop).isAnswered(connect)
    }

    /// Ends all connections; requests that are being answered are cancelled.
    package func stop() {
        closeListener()
        for id in connections.keys { leave(id) }
    }

    /// Closes the listening socket; connections stay.
    func closeListener() {
        if let retry {
            loop.cancel(retry)
        }
        retry = nil
        guard let listener else { return }
        loop.forget(listener)
        close(listener)
        self.listener = nil
    }

    /// Closes a connection: cancels its handler, and tells a waiting writer of a stream.
    ///
    /// - Parameter inOrder: false for a connection that shall look broken to its client.
    func leave(_ id: UInt, inOrder: Bool = true) {
        guard let connection = connections.removeValue(forKey: id) else { return }
        if inOrder, connection.output.waiting == 0 {
            connection.channel.sayEnd()
        }
        loop.forget(connection.channel.socket.raw)
        connection.task?.cancel()
        connection.endStream()
        countBodies()
        if connections.isEmpty, let timer {
            loop.cancel(timer.id)
            self.timer = nil
        }
    }

    /// Counts the bodies that arrive; false if there is no room for all of them.
    @discardableResult
    func countBodies() -> Bool {
        guard let room = options.room else { return true }
        let bytes = connections.values.reduce(0) { $0 + $1.request.bodyBytes }
        defer { bodyBytes = bytes }
        return room.change(by: bytes - bodyBytes)
    }

    /// Sets the time at which a connection is cut. The timer is only moved forward: moving it back for each
    /// request would cost a system call each time, and firing early costs nothing.
    func setDeadline(_ id: UInt, _ wait: Duration) {
        let due = time.bootTime + wait
        connections[id]?.deadline = due
        if let timer {
            guard due < timer.due else { return }
            loop.cancel(timer.id)
        }
        timer = (loop.at(due) { self.assumeIsolated { $0.cutLate() } }, due)
    }

    /// Cuts the connections whose deadline has passed. A request that is late gets 408; in any other case
    /// there is nothing left to say.
    private func cutLate() {
        timer = nil
        let now = time.bootTime
        for connection in connections.values {
            guard let deadline = connection.deadline, deadline <= now else { continue }
            let isSlow = !connection.isIdle && connection.phase != .draining
            if isSlow {
                figures.cut("slow")
            }
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
