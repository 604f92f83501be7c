package import EventLoops
internal import Glibc
package import Metrics
internal import Synchronization

/// The stats port: metrics, health, readiness and the status page. It is read-only. Thread-safe.
package final class StatsServer: Sendable {
    private let host: String
    private let port: UInt16
    private let server: HTTPServer
    /// The port in use after the first start. A port that the system chose must stay the same when the
    /// server opens again.
    private let bound = Mutex<UInt16?>(nil)

    /// Requests in a second after which equal requests get the answers that were made in that second: a
    /// crowd of clients must not keep the loop from its other work.
    static let answersOfASecond = 50

    /// A server that does not listen yet.
    ///
    /// - Parameters:
    ///   - host: address to listen on, in numbers, without brackets.
    ///   - port: 0 lets the system choose.
    ///   - names: host names that requests may use, besides addresses, `localhost` and the machine's name.
    ///   - collectors: asked for each scrape, on the loop; they read published figures and never wait.
    ///   - readiness: whether the agent and its destinations are ready. Called for each `/readyz` and
    ///     `/readyz/NAME`, on the loop.
    ///   - page: makes the status page as HTML; nil if the page is disabled.
    package init(
        on loop: EventLoop, host: String = "127.0.0.1", port: UInt16 = 0, names: [String] = [],
        collectors: [any MetricCollector] = [],
        readiness: @escaping @Sendable () async -> Readiness = { Readiness() },
        page: (@Sendable () -> String)? = nil, time: any TimeSource = SystemTime()
    ) {
        self.host = host
        self.port = port
        let figures = ServerFigures(of: "stats")
        let collectors = collectors + figures.collectors
        let hosts = AcceptedHosts(names)
        let lately = Mutex(Lately())
        server = HTTPServer(
            on: loop, options: HTTPServerOptions(bodyBytes: 1024),
            refusal: { head, _ in
                guard let host = head.host, !hosts.contains(host) else { return nil }
                return ControlRefusal(
                    421, "unknown_host",
                    "this port is not known as \(host): use its address, or add the name to"
                        + " stats.listen.hosts"
                )
            },
            figures: figures,
            handler: { request in
                let second = time.bootTime.nanoseconds / 1_000_000_000
                let isCrowded = lately.withLock { $0.count(second) }
                // Readiness is shared as a value, not as answers: otherwise each name, and each spelling of
                // a name, would have the report made once more.
                let judge = { @Sendable () async -> Readiness in
                    if isCrowded, let known = lately.withLock({ $0.readiness }) { return known }
                    let readiness = await readiness()
                    lately.withLock { $0.readiness = readiness }
                    return readiness
                }
                let key =
                    "\(request.method) \(request.path) "
                    + "\(ExpositionFormat(accept: request.accept).contentType)"
                if isCrowded, let known = lately.withLock({ $0.made[key] }) { return known }
                let response = await StatsServer.answer(request, collectors, judge, page)
                if response.status == 200, !request.path.hasPrefix(Readiness.path) {
                    lately.withLock { $0.made[key] = response }
                }
                return response
            })
    }

    /// Begins to answer, and returns the port.
    ///
    /// - Throws: `ControlError` with code `addressInUse`, `badAddress` or `notPermitted`, and what to do.
    @discardableResult
    package func start() async throws(ControlError) -> UInt16 {
        let listener: Descriptor
        do throws(SystemError) {
            listener = try InternetSocket.listen(at: host, port: bound.withLock { $0 } ?? port)
        } catch {
            throw StatsServer.failure(error, at: host, port: port)
        }
        let port = InternetSocket.port(of: listener.raw)
        bound.withLock { $0 = port }
        try await server.start(listener)
        return port
    }

    /// The error for an address that cannot be listened on, with what to do.
    static func failure(_ error: SystemError, at host: String, port: UInt16) -> ControlError {
        let address = host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        return switch error.number {
        case EADDRINUSE:
            ControlError(
                .addressInUse,
                "cannot listen on \(address): another program has it"
                    + " (ss -ltnp 'sport = :\(port)' shows which);"
                    + " stop it, or set stats.listen to another address")
        case EACCES:
            ControlError(
                .notPermitted,
                "cannot listen on \(address): only root may use ports below 1024;"
                    + " choose a port above 1023 for stats.listen"
            )
        case EADDRNOTAVAIL:
            ControlError(
                .badAddress,
                "cannot listen on \(address): it is no address of this machine; change stats.listen")
        default: ControlError(.system, "cannot listen on \(address): \(SystemError.message(error.number))")
        }
    }

    package func stop() async { await server.stop() }

    /// Answers a request.
    private static func answer(
        _ request: ControlRequest, _ collectors: [any MetricCollector],
        _ readiness: @Sendable () async -> Readiness,
        _ page: (@Sendable () -> String)?
    ) async -> ControlResponse {
        guard request.method == "GET" || request.method == "HEAD" else {
            return .text(
                "the stats port is read-only: use GET\n", status: 405, headers: [("Allow", "GET, HEAD")])
        }
        switch request.path {
        case "/metrics":
            let format = ExpositionFormat(accept: request.accept)
            let text = format.write(Exposition(from: collectors))
            return .text(text, type: format.contentType, headers: [("Vary", "Accept")])
        case "/healthz": return .text("ok\n")
        case "/":
            guard let page else { return .text("see /metrics, /healthz and /readyz\n") }
            let policy =
                "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'"
            return .text(
                page(), type: "text/html; charset=utf-8", headers: [("Content-Security-Policy", policy)])
        default:
            let known = request.path.hasPrefix(Readiness.path) ? await readiness().answer(request.path) : nil
            return known
                ?? .text("there is /metrics, /healthz, /readyz, /readyz/NAME and /\n", status: 404)
        }
    }
}

/// What was answered in the current second.
private struct Lately: Sendable {
    private var second: Int64 = 0
    private var requests = 0
    /// The answers by request.
    var made: [String: ControlResponse] = [:]
    var readiness: Readiness?

    /// Counts a request in a second, and returns whether it gets an answer that was made in that second.
    mutating func count(_ second: Int64) -> Bool {
        if self.second != second {
            self = Lately()
            self.second = second
        }
        requests += 1
        return requests > StatsServer.answersOfASecond
    }
}

extension StatsServer: SelfAnswering {
    package var label: String { "stats" }
    package var name: String { "stats port" }

    package func isAnswering() async -> Bool { await server.isAnsweringItself() }

    /// Listens again on the same port, after the server stopped answering.
    package func openAgain() async throws(ControlError) {
        await server.closeListener()
        try await start()
    }
}

/// The host names that the stats port answers to, as a defence against DNS rebinding: a web page elsewhere
/// can make its own name lead to 127.0.0.1, and a browser on this machine would let the page read the
/// answers. Its requests have that name as their host.
struct AcceptedHosts: Sendable {
    private let names: Set<String>

    init(_ configured: [String]) {
        let own = hostName()
        let all = ["localhost", own, String(own.split(separator: ".").first ?? "")] + configured
        names = Set(all.map { $0.lowercased() }).subtracting([""])
    }

    /// - Parameter host: in lower case, without port and brackets.
    func contains(_ host: String) -> Bool {
        names.contains(host) || host.hasSuffix(".localhost") || InternetSocket.isAddress(host)
    }
}
