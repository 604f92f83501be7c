public import EventLoops
internal import Glibc
public import Metrics
internal import Synchronization

/// What the stats port needs to know.
public struct StatsServerOptions: Sendable, Equatable {
    /// Address and port: `127.0.0.1:9464` (the default), `[::1]:9464`, `localhost:9464`.
    public var listen = "127.0.0.1:9464"
    /// Names under which the port may be asked for, besides addresses, `localhost` and the machine's own name.
    public var hosts: [String] = []

    package init() {}
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
    private let bound = Mutex<UInt16?>(nil)

    /// A server that does not listen yet.
    ///
    /// - Parameters:
    ///   - collectors: asked for each scrape, on the loop; they read what others have published.
    ///   - readiness: asked for each `/readyz`, on the loop.
    ///   - page: makes the status page as HTML; nil when it is switched off.
    public init(
        on loop: EventLoop, options: StatsServerOptions, collectors: [any MetricCollector],
        readiness: @escaping @Sendable () async -> Readiness, page: (@Sendable () -> String)? = nil
    ) {
        self.options = options
        let counters = CounterSet(.requests)
        let cuts = CounterSet(.connectionsCut)
        let collectors = collectors + [counters, cuts]
        let hosts = AcceptedHosts(options.hosts)
        server = HTTPServer(
            on: loop, options: HTTPServerOptions(bodyBytes: 1024),
            judge: { head, _ in
                guard let host = head.host, !hosts.contains(host) else { return nil }
                return ControlRefusal(
                    status: 421, code: "unknown_host",
                    message: "this port is not known as \(host): ask for its address, or add the name to stats.hosts")
            },
            note: { note in
                switch note {
                case .answered(let status): counters.add(["stats", "\(status / 100)xx"])
                case .cut(let reason): cuts.add(["stats", reason])
                }
            }, handler: { request in await StatsServer.answer(request, collectors, readiness, page) })
    }

    /// Answers from now on.
    ///
    /// - Returns: the port; of use when the address asked for port 0, which lets the system choose.
    /// - Throws: `ControlError`: `addressInUse`, `badAddress` or `notPermitted`, each saying what to do.
    @discardableResult
    public func start() async throws(ControlError) -> UInt16 {
        let listener = try InternetSocket.listen(at: options.listen, port: bound.withLock { $0 })
        let port = InternetSocket.port(of: listener.raw)
        bound.withLock { $0 = port }
        try await server.start(listener)
        return port
    }

    /// Ends all connections.
    public func stop() async { await server.stop() }

    private static func answer(
        _ request: ControlRequest, _ collectors: [any MetricCollector], _ readiness: @Sendable () async -> Readiness,
        _ page: (@Sendable () -> String)?
    ) async -> ControlResponse {
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
            let readiness = await readiness()
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

extension StatsServer: SelfAnswering {
    /// `stats`.
    public var label: String { "stats" }
    /// How people call it.
    public var name: String { "stats port" }

    /// Whether the port answers.
    public func isAnswering() async -> Bool { await server.isAnsweringItself() }

    /// Listens at the same port anew.
    public func openAgain() async throws(ControlError) {
        await server.closeListener()
        try await start()
    }
}

/// The hosts that the stats port answers to. A web page elsewhere can have its own name lead to 127.0.0.1, and a browser on
/// this machine would let it read what comes: its requests have that name as their host.
struct AcceptedHosts: Sendable {
    private let names: Set<String>

    init(_ configured: [String]) {
        var names: Set<String> = ["localhost"]
        var own = [CChar](repeating: 0, count: 256)
        if gethostname(&own, own.count - 1) == 0 {
            let name = String(decoding: own.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
                .lowercased()
            names.insert(name)
            if let short = name.split(separator: ".").first { names.insert(String(short)) }
        }
        for name in configured { names.insert(name.lowercased()) }
        names.remove("")
        self.names = names
    }

    /// - Parameter host: in small letters, without port and brackets.
    func contains(_ host: String) -> Bool {
        names.contains(host) || host.hasSuffix(".localhost") || InternetSocket.isAddress(host)
    }
}
