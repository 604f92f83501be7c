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
// * `DevelopmentReceiver` (this file) runs libmicrohttpd and passes its callbacks on.
// * `ReceiverDesk` decides what happens to each request; `Exchange` is a request under way.
// * `FaultPlan` says how the receiver misbehaves, `FaultDice` draws the faults.
// * `KeyMemory` remembers keys, `EventStore` writes events, `EventLines` finds events in a body.
// * `CertificateAuthority` and `DevelopmentCertificates` make and keep certificates for this machine.
//
// Its rules:
// * Callbacks come on libmicrohttpd's threads. All shared state is in `ReceiverDesk` behind one lock; a
//   request belongs to one thread at a time.
// * A suspended connection must be resumed before the server stops, or stopping would wait for ever.
// * It does not know the agent: any sender may use it.
//
// Begin with `ReceiverDesk.take`.

internal import CMicroHTTPD
internal import EventLoops
internal import Synchronization

/// An HTTPS server that accepts batches, for development and tests.
///
/// `POST` to any path accepts a batch (NDJSON or JSON; gzip, zstd or plain); `GET /stats` returns the
/// figures. It runs on threads of its own until it is stopped or released. Thread-safe.
package final class DevelopmentReceiver: Sendable {
    /// The port that it listens on, also if the system chose it.
    package let port: UInt16
    /// Address for an agent's configuration.
    package let url: String

    /// Decides about requests. The server's callbacks have a pointer to it without a reference, so it must
    /// outlive the server.
    private let desk: ReceiverDesk
    // Set in init, stopped once in `stop`, and used only by C functions that are thread-safe.
    nonisolated(unsafe) private let server: OpaquePointer
    /// Whether `stop` was called.
    private let isStopped = Atomic<Bool>(false)

    /// Begins to listen.
    ///
    /// - Throws: `ReceiverError` with code `invalidSetting`, `listen`, `file` or `certificate`.
    package init(_ options: ReceiverOptions) throws(ReceiverError) {
        let listener: Descriptor
        do throws(SystemError) {
            listener = try InternetSocket.listen(at: options.address, port: options.port)
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
        port = InternetSocket.port(of: listener.raw)
        let host = options.address.contains(":") ? "[\(options.address)]" : options.address
        url = "\(options.identity == nil ? "http" : "https")://\(host):\(port)/"
        let desk = try ReceiverDesk(options)
        self.desk = desk
        var settings = shim_mhd_settings()
        settings.flags = SHIM_MHD_THREAD | SHIM_MHD_SUSPEND | (options.identity == nil ? 0 : SHIM_MHD_TLS)
        settings.threads = UInt32(clamping: options.threads)
        settings.listener = listener.release()
        settings.connections = 1024
        settings.idle_seconds = 120
        settings.memory = 131_072
        settings.context = Unmanaged.passUnretained(desk).toOpaque()
        settings.request = { context, connection, path, method, piece, size, state in
            guard let context, let connection, let path, let method, let size, let state else { return 0 }
            let desk = Unmanaged<ReceiverDesk>.fromOpaque(context).takeUnretainedValue()
            let bytes = UnsafeRawBufferPointer(start: piece, count: size.pointee)
            if state.pointee == nil {
                let exchange = desk.begin(connection, path: path, method: method)
                state.pointee = Unmanaged.passRetained(exchange).toOpaque()
                // libmicrohttpd calls again at the request's end, also without a body.
                return 1
            }
            guard let raw = state.pointee else { return 0 }
            let exchange = Unmanaged<Exchange>.fromOpaque(raw).takeUnretainedValue()
            if size.pointee > 0 {
                size.pointee = 0
                return desk.read(bytes, exchange, connection) ? 1 : 0
            }
            return desk.end(exchange, connection) ? 1 : 0
        }
        settings.completed = { context, _, state, _ in
            guard let context, let state else { return }
            let exchange = Unmanaged<Exchange>.fromOpaque(state).takeRetainedValue()
            Unmanaged<ReceiverDesk>.fromOpaque(context).takeUnretainedValue().finish(exchange)
        }
        let started: OpaquePointer?
        if let identity = options.identity {
            started = identity.certificate.withCString { certificate in
                identity.key.withCString { key in
                    settings.certificate = certificate
                    settings.key = key
                    return shim_mhd_start(&settings)
                }
            }
        } else {
            started = shim_mhd_start(&settings)
        }
        guard let started else {
            throw ReceiverError(
                .listen, "the server could not be started: do certificate and key belong together?")
        }
        server = started
    }

    deinit { stop() }

    package var stats: ReceiverStats { desk.stats }

    /// Changes the faults from the next request on.
    package func misbehave(_ plan: FaultPlan) { desk.misbehave(plan) }

    /// Ends all connections; delayed answers are given at once. The second call does nothing.
    package func stop() {
        guard !isStopped.exchange(true, ordering: .acquiringAndReleasing) else { return }
        desk.letAllGo()
        shim_mhd_stop(server)
    }
}
