internal import CMicroHTTPD
internal import EventLoops
internal import Synchronization

/// An HTTPS server that takes batches: for `make run`, for trying out an agent, and for tests.
///
/// `POST` to any path takes a batch (NDJSON or JSON; gzip, zstd or plain); `GET /stats` answers with its figures. Serves
/// on its own threads until it is stopped or released.
package final class DevelopmentReceiver: Sendable {
    package let port: UInt16
    /// Its address, to be given to an agent.
    package let url: String

    private let desk: ReceiverDesk
    // Made in init, ended once in `stop`, and used by C functions that are safe from any thread.
    nonisolated(unsafe) private let server: OpaquePointer
    private let isStopped = Atomic<Bool>(false)

    /// Starts to listen; throws with code `listen`, `file` or `certificate`.
    package init(_ options: ReceiverOptions) throws(ReceiverError) {
        let listener: Descriptor
        do throws(SystemError) {
            listener = try InternetSocket.listen(at: options.address, port: options.port)
        } catch {
            guard error.call != "getaddrinfo" else {
                throw ReceiverError(
                    .invalidSetting, "\(options.address) is not an address; give a number such as 127.0.0.1 or ::1")
            }
            let reason = SystemError.message(error.number)
            throw ReceiverError(.listen, "cannot listen on \(options.address) port \(options.port): \(reason)")
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
                // A request without a body is asked for again at its end.
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
            throw ReceiverError(.listen, "the server could not be started: do certificate and key belong together?")
        }
        server = started
    }

    deinit { stop() }

    package var stats: ReceiverStats { desk.stats }

    /// Changes how it misbehaves, from the next request on.
    package func misbehave(_ plan: FaultPlan) { desk.misbehave(plan) }

    /// Ends all connections. Answers that wait are given at once. Called again it does nothing.
    package func stop() {
        guard !isStopped.exchange(true, ordering: .acquiringAndReleasing) else { return }
        desk.letAllGo()
        shim_mhd_stop(server)
    }
}
