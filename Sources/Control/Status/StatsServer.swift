package import EventLoops
internal import Glibc
package import Metrics
internal import Synchronization

/// The stats port: metrics, health, readiness and the status page. It is read-only.
package final class StatsServer: Sendable {
    private let host: String
    private let port: UInt16
    private let server: HTTPServer
    private let bound = Mutex<UInt16?>(nil)

    /// With more requests in a second, the answers that were made in it are given again: a crowd must not keep the loop from others.
    static let answersOfASecond = 50

    /// A server that does not listen yet.
    ///
    /// - Parameters:
    ///   - host: where to listen, an address in numbers, without brackets.
    ///   - port: 0 lets the system choose.
    ///   - names: under which the port may be asked for, besides addresses, `localhost` and the machine's name.
    ///   - collectors: asked for each scrape, on the loop; they read what others have published.
    ///   - obstacles: why the agent is not ready, a sentence each; empty when it is. Called for each `/readyz`, on the loop.
    ///   - page: makes the status page as HTML; nil when it is switched off.
    package init(
        on loop: EventLoop, host: String = "127.0.0.1", port: UInt16 = 0, names: [String] = [],
        collectors: [any MetricCollector] = [], obstacles: @escaping @Sendable () async -> [String] = { [] },
        page: (@Sendable () -> String)? = nil, time: any TimeSource = SystemTime()
    ) {
        self.host = host
        self.port = port
        let figures = ServerFigures(of: "stats")
        let collectors = collectors + figures.collectors
        let hosts = AcceptedHosts(names)
        let lately = Mutex((second: Int64(0), requests: 0, made: [String: ControlResponse]()))
        server = HTTPServer(
            on: loop, options: HTTPServerOptions(bodyBytes: 1024),
            judge: { head, _ in
                guard let host = head.host, !hosts.contains(host) else { return nil }
                return ControlRefusal(
                    421, "unknown_host",
                    "this port is not known as \(host): use its address, or add the name to stats.hosts")
            },
            figures: figures,
            handler: { request in
                let second = time.bootTime.nanoseconds / 1_000_000_000
                let key = "\(request.method) \(request.path) \(ExpositionFormat(accept: request.accept).contentType)"
                let known = lately.withLock { lately in
                    if lately.second != second { lately = (second, 0, [:]) }
                    lately.requests += 1
                    return lately.requests > StatsServer.answersOfASecond ? lately.made[key] : nil
                }
                if let known { return known }
                let response = await StatsServer.answer(request, collectors, obstacles, page)
                if [200, 503].contains(response.status) { lately.withLock { $0.made[key] = response } }
                return response
            })
    }

    /// Answers from now on and gives the port; throws `addressInUse`, `badAddress` or `notPermitted` with what to do.
    @discardableResult
    package func start() async throws(ControlError) -> UInt16 {
        let listener: Descriptor
        do throws(SystemError) {
            listener = try InternetSocket.listen(at: host, port: bound.withLock { $0 } ?? port)
        } catch {
            throw failure(error)
        }
        let port = InternetSocket.port(of: listener.raw)
        bound.withLock { $0 = port }
        try await server.start(listener)
        return port
    }

    private func failure(_ error: SystemError) -> ControlError {
        let place = host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        return switch error.number {
        case EADDRINUSE:
            ControlError(
                .addressInUse,
                "\(place) is in use by another program (ss -ltnp 'sport = :\(port)' shows which): "
                    + "stop it, or set stats.listen to another address")
        case EACCES:
            ControlError(.notPermitted, "\(place) may not be listened on: choose a port above 1023 for stats.listen")
        case EADDRNOTAVAIL:
            ControlError(.badAddress, "\(place) is not an address of this machine: change stats.listen")
        default: ControlError(.system, "\(place) cannot be listened on: \(SystemError.message(error.number))")
        }
    }

    package func stop() async { await server.stop() }

    private static func answer(
        _ request: ControlRequest, _ collectors: [any MetricCollector], _ obstacles: @Sendable () async -> [String],
        _ page: (@Sendable () -> String)?
    ) async -> ControlResponse {
        guard request.method == "GET" || request.method == "HEAD" else {
            return .text("the stats port is read-only: use GET\n", status: 405, headers: [("Allow", "GET, HEAD")])
        }
        switch request.path {
        case "/metrics":
            let format = ExpositionFormat(accept: request.accept)
            let text = format.write(Exposition(from: collectors))
            return .text(text, type: format.contentType, headers: [("Vary", "Accept")])
        case "/healthz": return .text("ok\n")
        case "/readyz":
            let obstacles = await obstacles()
            guard !obstacles.isEmpty else { return .text("ready\n") }
            return .text("not ready\n" + obstacles.map { "- \($0)\n" }.joined(), status: 503)
        case "/":
            guard let page else { return .text("see /metrics, /healthz and /readyz\n") }
            let policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'"
            return .text(page(), type: "text/html; charset=utf-8", headers: [("Content-Security-Policy", policy)])
        default: return .text("there is /metrics, /healthz, /readyz and /\n", status: 404)
        }
    }
}

extension StatsServer: SelfAnswering {
    package var label: String { "stats" }
    package var name: String { "stats port" }

    package func isAnswering() async -> Bool { await server.isAnsweringItself() }

    package func openAgain() async throws(ControlError) {
        await server.closeListener()
        try await start()
    }
}

/// The hosts that the stats port answers to. A web page elsewhere can have its own name lead to 127.0.0.1, and a browser on
/// this machine would let it read what comes: its requests have that name as their host.
struct AcceptedHosts: Sendable {
    private let names: Set<String>

    init(_ configured: [String]) {
        let own = hostName()
        let all = ["localhost", own, String(own.split(separator: ".").first ?? "")] + configured
        names = Set(all.map { $0.lowercased() }).subtracting([""])
    }

    /// - Parameter host: in small letters, without port and brackets.
    func contains(_ host: String) -> Bool {
        names.contains(host) || host.hasSuffix(".localhost") || InternetSocket.isAddress(host)
    }
}
