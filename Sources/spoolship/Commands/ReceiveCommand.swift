internal import Configuration
internal import EventLoops
internal import Glibc
internal import Receiver

enum ReceiveCommand {
    /// Runs a receiver for development and tests. It is not for production: it does not defend itself against
    /// hostile clients.
    static let receive = Command(
        name: "receive", summary: "receives batches over HTTPS and prints or stores them, for development",
        details: """
            POST to any path delivers a batch (NDJSON or JSON; gzip, zstd or plain), GET /stats returns the \
            figures as JSON. Each Idempotency-Key is accepted once. The certificate is made on first use \
            and kept; clients trust the ca.pem beside it. It does not defend itself: a packed body may take \
            300 MB. Ends with SIGINT or SIGTERM and prints its figures.

            The options from --fail on make it misbehave, to test how an agent reacts: --fail takes a \
            status (503), cut-in-body, cut-before-storing or cut-after-storing.
            """,
        options: [
            Command.Option("listen ADDRESS:PORT", "where to listen; default 127.0.0.1:8443, port 0 any"),
            Command.Option(
                "certificates DIRECTORY",
                "where the certificate is kept; default ~/.local/state/spoolship-receiver"),
            Command.Option("plain-http", "no TLS"),
            Command.Option("output FILE", letter: "o", "append events to FILE instead of printing them"),
            Command.Option("sync", "events are durable in FILE before they are acknowledged"),
            Command.Option("quiet", letter: "q", "only count events: neither print nor store them"),
            Command.Option("threads N", "threads that share the connections; default 2"),
            Command.Option("fail HOW", "how the chosen requests fail"),
            Command.Option("probability P", "the share of requests that is chosen; default 1"),
            Command.Option("seed N", "the same seed chooses the same requests; default 1"),
            Command.Option("first N", "choose among the first N requests only"),
            Command.Option("retry-after SECONDS", "the Retry-After of a chosen request that fails"),
            Command.Option("delay DURATION", "how long each answer waits"),
            Command.Option("largest-body SIZE", "answer 413 to larger bodies"),
            Command.Option("marker TEXT", "answer 400 to batches with an event that contains TEXT"),
            .json,
        ]
    ) { invocation in
        try ReceiveProgram(invocation).run()
    }
}

/// Runs a receiver until SIGINT or SIGTERM.
struct ReceiveProgram: Sendable {
    /// Where the address and the figures are printed.
    let console: Console
    /// The receiver's options, faults included.
    let options: ReceiverOptions
    /// The directory of the certificates; nil for plain HTTP.
    let certificates: String?
    /// Whether the figures are printed as JSON.
    let printsJSON: Bool

    /// Reads the options; throws with code 64 for values that cannot be used.
    init(_ invocation: Invocation) throws(CommandFailure) {
        console = invocation.console
        printsJSON = invocation.has("json")
        var options = ReceiverOptions()
        (options.address, options.port) = try ReceiveProgram.endpoint(
            invocation.value("listen") ?? "127.0.0.1:8443")
        if let file = invocation.value("output") {
            options.store = .file(file, sync: invocation.has("sync"))
        } else {
            // Durability is about the file; standard output cannot promise it.
            options.store = invocation.has("quiet") ? .none : .standardOutput
            if invocation.has("sync") { throw CommandFailure(.usage, "--sync is for --output FILE") }
        }
        options.threads = try invocation.number("threads", 1...64) ?? 2
        options.faults = try ReceiveProgram.faults(invocation)
        self.options = options
        let home = Console.environment("HOME") ?? "/tmp"
        certificates =
            invocation.has("plain-http")
            ? nil : invocation.value("certificates") ?? "\(home)/.local/state/spoolship-receiver"
    }

    /// Runs the receiver on a loop of its own, and turns its errors into exit codes.
    func run() throws {
        do {
            try EventLoop.runProgram(name: "receive", failure: { $0 as any Error }) {
                try await serve(on: $0)
            }
        } catch let error as ReceiverError {
            let code: ExitCode =
                switch error.code {
                case .invalidSetting: .usage
                case .listen: .temporaryFailure
                case .file: .cannotCreate
                case .certificate: .software
                }
            throw CommandFailure(code, error.message)
        }
    }

    /// Starts the receiver, waits for a signal, stops it and prints the figures.
    private func serve(on loop: EventLoop) async throws {
        // The signals are blocked before the receiver makes its threads: threads inherit the mask, and a
        // signal that one of them took would end the process.
        let (ends, end) = AsyncStream.makeStream(of: Void.self)
        let watcher = try SignalWatcher([SIGINT, SIGTERM], on: loop) { _ in end.yield() }
        defer { watcher.cancel() }
        var options = options
        var trust = ""
        if let certificates {
            let made = try DevelopmentCertificates(directory: certificates, now: SystemTime().wallTime)
            options.identity = try made.identity()
            trust = " trust=\(made.caFile)"
        }
        let receiver = try DevelopmentReceiver(options)
        // On standard error, because standard output has the events. Scripts wait for this line, and take the
        // URL from it.
        console.printError("receiving url=\(receiver.url)\(trust)")
        _ = await ends.first { true }
        receiver.stop()
        let stats = receiver.stats
        if printsJSON {
            try console.write(stats.json)
        } else {
            console.printError(
                "received events=\(stats.events) batches=\(stats.batches) repeats=\(stats.repeats) "
                    + "requests=\(stats.requests)")
        }
    }

    /// The address and port of `--listen`: `127.0.0.1:8443`, `[::1]:0`, `:8443` or `8443`. Without an address
    /// it is loopback: a receiver that accepts everything must not be open to the network by mistake.
    static func endpoint(_ text: String) throws(CommandFailure) -> (String, UInt16) {
        let host = text.prefix { $0 != ":" }
        let port = host == text ? host : text[host.endIndex...].dropFirst()
        let isOwn = host == text || host.isEmpty || host == "localhost"
        guard let address = ListenAddress(isOwn ? "127.0.0.1:\(port)" : text) else {
            throw CommandFailure(
                .usage, "--listen \(text): give ADDRESS:PORT, such as 127.0.0.1:8443 or [::1]:8443")
        }
        return (address.host, address.port)
    }

    /// The faults that the options ask for; none by default.
    private static func faults(_ invocation: Invocation) throws(CommandFailure) -> FaultPlan {
        // Each option is checked here, because a fault that never occurs would make a test pass.
        var plan = FaultPlan()
        switch invocation.value("fail") {
        case nil: break
        case "cut-in-body": plan.fault = .cutInBody
        case "cut-before-storing": plan.fault = .cutBeforeStoring
        case "cut-after-storing": plan.fault = .cutAfterStoring
        case let word?:
            guard let status = Int(word), (200...599).contains(status) else {
                throw CommandFailure(
                    .usage,
                    "--fail \(word): give a status from 200 to 599, cut-in-body, cut-before-storing or "
                        + "cut-after-storing"
                )
            }
            plan.fault = .status(status)
        }
        let share = try invocation.read("probability", as: "a number from 0 to 1") {
            Double($0).flatMap { (0...1).contains($0) ? $0 : nil }
        }
        plan.probability = share ?? plan.probability
        // The default is a fixed seed, so that a test that fails can be repeated.
        plan.seed = UInt64(try invocation.number("seed", 0...Int.max) ?? 1)
        plan.first = try invocation.number("first", 0...Int.max)
        plan.retryAfter = try invocation.number("retry-after", 0...1_000_000)
        plan.delay = try invocation.duration("delay") ?? plan.delay
        plan.largestBody = try invocation.read(
            "largest-body", as: "a size such as 64KiB or 1MB", SizeText.parse)
        plan.marker = invocation.value("marker")
        return plan
    }
}
