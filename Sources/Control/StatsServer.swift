public import EventLoops
public import Metrics

/// What the stats port needs to know.
public struct StatsServerOptions: Sendable, Equatable {
    /// Address and port: `127.0.0.1:9464` (the default), `[::1]:9464`, `localhost:9464`.
    public var listen = "127.0.0.1:9464"

    /// The defaults.
    public init() {}
}

/// Whether the agent gets on with its work, and if not, why not.
public struct Readiness: Sendable, Equatable {
    /// What stands in the way, each a sentence for a person; empty means ready.
    public var obstacles: [String]

    /// Ready unless something stands in the way.
    public init(obstacles: [String] = []) { self.obstacles = obstacles }

    /// Whether nothing stands in the way.
    public var isReady: Bool { obstacles.isEmpty }
}

/// The stats port: metrics, health, readiness and the status page. It only tells; nothing can be changed through it.
public final class StatsServer: Sendable {
    private let options: StatsServerOptions
    private let server: HTTPServer
    private let counters: CounterSet

    /// A server that does not listen yet.
    ///
    /// - Parameters:
    ///   - collectors: asked for each scrape, on the loop; they read what others have published.
    ///   - readiness: asked for each `/readyz`, on the loop.
    ///   - page: makes the status page as HTML; nil when it is switched off.
    public init(
        on loop: EventLoop, options: StatsServerOptions, collectors: [any MetricCollector],
        readiness: @escaping @Sendable () -> Readiness, page: (@Sendable () -> String)? = nil
    ) {
        self.options = options
        let counters = CounterSet(.requests)
        self.counters = counters
        let collectors = collectors + [counters]
        server = HTTPServer(on: loop, options: HTTPServerOptions(bodyBytes: 1024)) { request in
            let response = StatsServer.answer(request, collectors, readiness, page)
            counters.add(["stats", "\(response.status / 100)xx"])
            return response
        }
    }

    /// Answers from now on.
    ///
    /// - Returns: the port; of use when the address asked for port 0, which lets the system choose.
    /// - Throws: `ControlError`: `addressInUse`, `badAddress` or `notPermitted`, each saying what to do.
    @discardableResult
    public func start() async throws(ControlError) -> UInt16 {
        let listener = try InternetSocket.listen(at: options.listen)
        let port = InternetSocket.port(of: listener.raw)
        try await server.start(listener)
        return port
    }

    /// Ends all connections.
    public func stop() async { await server.stop() }

    private static func answer(
        _ request: ControlRequest, _ collectors: [any MetricCollector], _ readiness: () -> Readiness,
        _ page: (@Sendable () -> String)?
    ) -> ControlResponse {
        guard request.method == "GET" || request.method == "HEAD" else {
            return ControlResponse(
                status: 405, headers: [("Allow", "GET, HEAD"), ("Content-Type", "text/plain; charset=utf-8")],
                body: .bytes(Array("the stats port only tells: use GET\n".utf8)))
        }
        switch request.path {
        case "/metrics":
            let format = ExpositionFormat(accept: request.accept)
            let text = format.write(Exposition(from: collectors))
            return ControlResponse(
                status: 200, headers: [("Content-Type", format.contentType), ("Vary", "Accept")],
                body: .bytes(Array(text.utf8)))
        case "/healthz": return .text("ok\n")
        case "/readyz":
            let readiness = readiness()
            guard !readiness.isReady else { return .text("ready\n") }
            return .text("not ready\n" + readiness.obstacles.map { "- \($0)\n" }.joined(), status: 503)
        case "/":
            guard let page else { return .text("see /metrics, /healthz and /readyz\n") }
            return ControlResponse(
                status: 200,
                headers: [
                    ("Content-Type", "text/html; charset=utf-8"),
                    (
                        "Content-Security-Policy",
                        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'"
                    ),
                ], body: .bytes(Array(page().utf8)))
        default: return .text("there is /metrics, /healthz, /readyz and /\n", status: 404)
        }
    }
}
