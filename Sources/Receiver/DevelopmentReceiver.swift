// Receiver: the development receiver, an HTTPS server that accepts what the agent sends, shows, stores and
// counts it, and fails on request. For `spoolship receive`, for trying out an agent, and for tests.
//
// What the module promises:
// * A body that is answered with 200 was counted exactly once for its `Idempotency-Key`, and stored if
//   events are stored.
// * The same seed makes the same faults.
// * Hostile bodies cost bounded memory: of one body, of all bodies together, and of one unpacked.
//
// Its parts:
// * `DevelopmentReceiver` (this file) runs an `HTTPServer` of Control on each of its threads.
// * `ReceiverDesk` decides what happens to each request.
// * `ServerIdentity` is the certificate with which it answers over TLS, `ServerTLS` the TLS of a connection.
// * `FaultPlan` says how the receiver misbehaves, `FaultDice` draws the faults.
// * `KeyMemory` remembers keys, `EventStore` writes events, `EventLines` finds events in a body.
// * `CertificateAuthority` and `DevelopmentCertificates` make and keep certificates for this machine.
//
// Its rules:
// * A request belongs to one thread, from its first byte to its answer. All shared state is in
//   `ReceiverDesk` behind one lock.
// * It does not know the agent: any sender may use it.
//
// Begin with `ReceiverDesk.judge`.

internal import Control
internal import EventLoops
internal import Glibc
internal import Synchronization

/// An HTTPS server that accepts batches, for development and tests.
///
/// `POST` to any path accepts a batch (NDJSON or JSON; gzip, zstd or plain); `GET /stats` returns the
/// figures. It runs on threads of its own until it is stopped or released. Thread-safe.
package final class DevelopmentReceiver: Sendable {
    /// A server and the loop that it runs on.
    private struct Worker: Sendable {
        let loop: EventLoop
        let server: HTTPServer
    }

    /// The port that it listens on, also if the system chose it.
    package let port: UInt16
    /// Address for an agent's configuration.
    package let url: String

    /// Decides about requests.
    private let desk: ReceiverDesk
    /// One for each thread; they accept from the same socket.
    private let workers: [Worker]
    /// Whether `stop` was called.
    private let isStopped = Atomic<Bool>(false)

    /// Begins to listen.
    ///
    /// - Throws: `ReceiverError` with code `invalidSetting`, `listen`, `file` or `certificate`.
    package init(_ options: ReceiverOptions) throws(ReceiverError) {
        let listener = try DevelopmentReceiver.listen(options)
        port = InternetSocket.port(of: listener.raw)
        let host = options.address.contains(":") ? "[\(options.address)]" : options.address
        url = "\(options.identity == nil ? "http" : "https")://\(host):\(port)/"
        let desk = try ReceiverDesk(options)
        self.desk = desk
        let identity = try options.identity.map { (pem) throws(ReceiverError) in try ServerIdentity(pem) }
        var workers: [Worker] = []
        do throws(ReceiverError) {
            for _ in 0..<max(1, options.threads) {
                workers.append(try DevelopmentReceiver.worker(listener.raw, options, identity, desk))
            }
        } catch {
            for worker in workers { worker.loop.stop() }
            throw error
        }
        self.workers = workers
    }

    deinit { stop() }

    package var stats: ReceiverStats { desk.stats }

    /// Changes the faults from the next request on.
    package func misbehave(_ plan: FaultPlan) { desk.misbehave(plan) }

    /// Ends all connections, also those whose answer is delayed. The second call does nothing.
    package func stop() {
        guard !isStopped.exchange(true, ordering: .acquiringAndReleasing) else { return }
        for worker in workers {
            worker.loop.runAndWait { worker.server.assumeIsolated { $0.stop() } }
            // Handlers were cancelled: they end in the loop's next round, before it stops.
            worker.loop.post { worker.loop.stop() }
        }
    }

    /// The listening socket.
    private static func listen(_ options: ReceiverOptions) throws(ReceiverError) -> Descriptor {
        do throws(SystemError) {
            return try InternetSocket.listen(at: options.address, port: options.port)
        } catch {
            guard error.call != "getaddrinfo" else {
                throw ReceiverError(
                    .invalidSetting,
                    "\(options.address) is not an address; give a number such as 127.0.0.1 or ::1")
            }
            let reason = SystemError.message(error.number)
            throw ReceiverError(
                .listen, "cannot listen on \(options.address) port \(options.port): \(reason)")
        }
    }

    /// A server on a thread of its own, which accepts from a copy of the listening socket.
    private static func worker(
        _ listener: Int32, _ options: ReceiverOptions, _ identity: ServerIdentity?, _ desk: ReceiverDesk
    ) throws(ReceiverError) -> Worker {
        let raw: Int32
        let loop: EventLoop
        do throws(SystemError) {
            loop = try EventLoop(name: "receiver")
            raw = try Descriptor(checking: fcntl(listener, F_DUPFD_CLOEXEC, 0), "fcntl").release()
        } catch {
            throw ReceiverError(.listen, "cannot start the server: \(error)")
        }
        let threads = max(1, options.threads)
        var bounds = HTTPServerOptions()
        bounds.connections = max(1, 1024 / threads)
        bounds.idle = .seconds(120)
        bounds.request = .seconds(600)
        bounds.answer = .seconds(120)
        bounds.headerBytes = 131_072
        bounds.bodyBytes = options.largestBody
        bounds.room = desk.room
        var makeCipher: (@Sendable () -> (any ConnectionCipher)?)?
        if let identity {
            makeCipher = { ServerTLS(identity) }
        }
        let server = HTTPServer(
            on: loop, options: bounds, figures: ServerFigures(of: "receiver"), makeCipher: makeCipher,
            judge: { head, _ in desk.judge(head, on: loop) })
        do throws(SystemError) {
            try loop.start()
        } catch {
            close(raw)
            throw ReceiverError(.listen, "cannot start the server: \(error)")
        }
        let error = loop.runAndWait {
            server.assumeIsolated { (server: isolated HTTPServer) -> ControlError? in
                do throws(ControlError) {
                    try server.start(Descriptor(raw))
                    return nil
                } catch {
                    return error
                }
            }
        }
        if let error {
            loop.stop()
            throw ReceiverError(.listen, "cannot start the server: \(error.message)")
        }
        return Worker(loop: loop, server: server)
    }
}
