import Digests
import EventLoops
import Glibc
import Logs
import Model
import Receiver
import Synchronization
import TestKit
import Testing

@testable import Outputs

/// How many batches have arrived, from any thread.
private final class Done: Sendable {
    private let number = Mutex(0)
    var count: Int { number.withLock { $0 } }
    func add() { number.withLock { $0 += 1 } }
}

/// With Debian's nats-server, and a client of the tests' own that counts.
@Suite("NATS JetStream")
struct NATSServerTests {
    private func output(
        _ bench: Bench, _ servers: NATSServer..., time: any TimeSource = SystemTime(),
        _ change: (inout DestinationSettings) -> Void = { _ in }
    ) throws -> NATSOutput {
        var settings = DestinationSettings(nats: servers.map(\.url))
        change(&settings)
        return try NATSOutput(
            "main", NATSOptions(settings), version: "test", on: bench.loop, log: Log(bench.log), time: time)
    }

    /// Tries until it is acknowledged, as delivery would, without its waits.
    private func deliver(_ batch: Batch, _ output: NATSOutput) async -> Bool {
        await eventually { await output.send(batch) == .acknowledged }
    }

    private func held(_ outcome: Outcome) -> String {
        guard case .held(let failure) = outcome else { return "not held: \(outcome)" }
        return failure.message
    }

    @Test(
        "a batch becomes one compressed message of lines under its id; a repeat is stored once",
        arguments: Compression.allCases)
    func batch(compression: Compression) async throws {
        let bench = try Bench()
        let server = try await NATSServer(bench)
        let reader = try NATSReader(server)
        try reader.makeStream()
        let output = try output(bench, server) {
            $0.compression = compression
            $0.nats.stream = "EVENTS"
        }
        let batch = try Sample.batch(2_000)
        #expect(await output.send(batch) == .acknowledged)
        #expect(await output.send(batch) == .acknowledged)
        let message = try #require(try reader.messages().first)
        #expect(try reader.count() == 1)
        #expect(try message.numbers() == Array(0..<2_000))
        #expect(message.subject == "events.web" && message.headers["Nats-Msg-Id"] == "\(batch.header.id)")
        #expect(message.headers["Content-Encoding"] == (compression == .none ? nil : compression.name))
        #expect(
            message.headers["X-Spoolship-Events"] == "2000"
                && message.headers["Nats-Expected-Stream"] == "EVENTS")
        #expect(await output.takeSentBytes() == 2 * message.payload.count)
        #expect(await output.takeSentBytes() == 0)
    }

    /// Events of two apps, one of which tries for more words and a wildcard.
    private func mixed(_ count: Int) -> Batch {
        let lines = (0..<count).map {
            #"{"n":\#($0),"id":"e\#($0)","level":"\#($0 % 2 == 0 ? "INFO" : "warning")","app":"\#($0 % 3 == 0 ? "shop" : "w.b *>")"}"#
                + "\n"
        }.joined()
        let part = Batch.Part(
            compression: .none, frame: Array(lines.utf8), bytes: lines.utf8.count, eventsInFrame: count,
            events: 0..<count)
        return Sample.batch([part])
    }

    @Test(
        "headers from events: a message for each value, or for each event; repeats are stored once",
        arguments: NATSContent.allCases)
    func headersByEvent(content: NATSContent) async throws {
        let bench = try Bench()
        let server = try await NATSServer(bench)
        let reader = try NATSReader(server)
        try reader.makeStream()
        let output = try output(bench, server) {
            $0.nats.message = content
            $0.headers = ["X-Team": Secret("t-{app}"), "X-Site": Secret("eu")]
        }
        #expect(output.asksWhose)
        let batch = mixed(6)
        for _ in 1...2 { #expect(await output.send(batch) == .acknowledged) }
        let messages = try reader.messages()
        #expect(messages.count == (content == .batch ? 2 : 6))
        for message in messages {
            let isShop = try message.numbers().allSatisfy { $0 % 3 == 0 }
            #expect(message.headers["X-Team"] == (isShop ? "t-shop" : "t-w.b___"), "\(message)")
            #expect(message.headers["X-Site"] == "eu")
        }
        #expect(try messages.flatMap { try $0.numbers() }.sorted() == Array(0..<6))
        for name in ["Nats-Msg-Id", "content-type"] {
            #expect(throws: OutputError.self) {
                try self.output(bench, server) { $0.headers = [name: Secret("x")] }
            }
        }
    }

    @Test(
        "subjects from events: a message for each value, or for each event; repeats are stored once",
        arguments: NATSContent.allCases)
    func byEvent(content: NATSContent) async throws {
        let bench = try Bench()
        let server = try await NATSServer(bench)
        let reader = try NATSReader(server)
        try reader.makeStream("EVENTS", "events.*.*")
        let subject = try Template("events.{app}.{level}", for: .subject)
        let output = try output(bench, server) {
            $0.nats.message = content
            $0.nats.subject = subject
        }
        let batch = mixed(12)
        #expect(await output.send(batch) == .acknowledged)
        #expect(await output.send(batch) == .acknowledged)
        let messages = try reader.messages()
        #expect(messages.count == (content == .batch ? 4 : 12))
        var found: [String: [Int]] = [:]
        for message in messages { found[message.subject, default: []] += try message.numbers() }
        #expect(
            found == [
                "events.shop.info": [0, 6], "events.shop.warn": [3, 9], "events.w_b___.info": [2, 4, 8, 10],
                "events.w_b___.warn": [1, 5, 7, 11],
            ])
        if content == .batch {
            #expect(messages[0].headers["Nats-Msg-Id"] == "\(batch.header.id)/events.shop.info")
            #expect(messages[0].headers["X-Spoolship-Events"] == "2")
        }
    }

    @Test(
        "only an oversized part is split, after the others are stored; an unanswered one is sent again whole"
    )
    func partly() async throws {
        let bench = try Bench()
        let server = try await NATSServer(bench)
        let reader = try NATSReader(server)
        try reader.makeStream("SMALL", "events.shop", ",\"max_msg_size\":200")
        try reader.makeStream("LARGE", "events.w_b___")
        let subject = try Template("events.{app}", for: .subject)
        let output = try output(bench, server) {
            $0.compression = .none
            $0.nats.subject = subject
        }
        #expect(await output.send(mixed(12)) == .partial(rejected: [], retry: [0, 3, 6, 9]))
        #expect(try reader.count("LARGE") == 1)
        let loose = try Template("{app}", for: .subject)
        let other = try self.output(bench, server) { $0.nats.subject = loose }
        let failure = retried(await other.send(mixed(12)))
        #expect(
            failure?.message.contains("no stream takes {app}") == true, "no event's content in what is logged"
        )
    }

    @Test(
        "message = event: a message for each event under its own id, beyond the limit in flight, stored once"
    )
    func events() async throws {
        let bench = try Bench()
        let server = try await NATSServer(bench)
        let reader = try NATSReader(server)
        try reader.makeStream()
        let output = try output(bench, server) { $0.nats.message = .event }
        let count = NATSClient.window + 100
        let text = (0..<count).map { #"{"name":"a","n":\#($0),"id":"event-\#($0)","app":"web"}"# + "\n" }
            .joined()
        let part = Batch.Part(
            compression: .none, frame: Array(text.utf8), bytes: text.utf8.count, eventsInFrame: count,
            events: 0..<count
        )
        #expect(await output.send(Sample.batch([part])) == .acknowledged)
        // Another batch with the same events, as after a split.
        let again = Sample.batch([part], id: BatchID(high: 7, low: 7))
        #expect(await output.send(again) == .acknowledged)
        let messages = try reader.messages()
        #expect(
            messages.map { $0.headers["Nats-Msg-Id"] } == (0..<count).map { "web/event-\($0)/events.web" })
        #expect(try messages.map { try $0.numbers() } == (0..<count).map { [$0] })
    }

    @Test("after five kills under load the server has each event exactly once")
    func killed() async throws {
        let bench = try Bench()
        let server = try await NATSServer(bench)
        try NATSReader(server).makeStream()
        let output = try output(bench, server) { $0.requestTimeout = .seconds(20) }
        let batches = 240
        let done = Done()
        try await withThrowingTaskGroup { group in
            for lane in 0..<3 {
                group.addTask {
                    for number in stride(from: lane, to: batches, by: 3) {
                        let part = try Sample.part(number * 10..<number * 10 + 10, .gzip)
                        let batch = Sample.batch([part], id: BatchID(high: 1, low: UInt64(number)))
                        #expect(await deliver(batch, output))
                        done.add()
                    }
                }
            }
            group.addTask {
                for round in 1...5 {
                    #expect(await eventually { done.count >= round * 40 })
                    server.end(SIGKILL)
                    try await server.start()
                }
            }
            try await group.waitForAll()
        }
        let messages = try NATSReader(server).messages()
        #expect(messages.count == batches)
        #expect(try messages.flatMap { try $0.numbers() }.sorted() == Array(0..<batches * 10))
    }

    /// A batch that was formed right after the output was made: it cannot have been sent before.
    private func fresh(_ number: UInt64, _ time: ManualTime) throws -> Batch {
        let formed = UInt64(time.wallTime.nanoseconds / 1_000_000 + 1000)
        return Sample.batch([try Sample.part(0..<5, .gzip)], id: BatchID(high: formed << 16, low: number))
    }

    @Test("a server that hangs is given up in time, and what it stored meanwhile is not stored again")
    func hanging() async throws {
        let bench = try Bench()
        let server = try await NATSServer(bench)
        let reader = try NATSReader(server)
        try reader.makeStream()
        let time = ManualTime()
        let output = try output(bench, server, time: time) { $0.requestTimeout = .seconds(2) }
        #expect(await deliver(try fresh(1, time), output))
        server.signal(SIGSTOP)
        let batch = try fresh(2, time)
        #expect(retried(await output.send(batch))?.message.contains("no acknowledgement") == true)
        // It takes connections, by the kernel, and says nothing.
        #expect(retried(await output.send(batch))?.kind == .timeout)
        server.signal(SIGCONT)
        #expect(await output.measures.repeats.isEmpty)
        #expect(await deliver(batch, output))
        #expect(try reader.count() == 2)
        #expect(await output.measures.repeats == [batch.header.id: [0, 1, 2, 3, 4]])
        #expect(!bench.log.messages.contains { $0.text.contains("duplicate window") })
    }

    @Test("a batch that is repeated after the duplicate window is logged")
    func afterTheWindow() async throws {
        let bench = try Bench()
        let server = try await NATSServer(bench)
        try NATSReader(server).makeStream()
        let time = ManualTime()
        let output = try output(bench, server, time: time) { $0.requestTimeout = .seconds(2) }
        func warnings() -> Int { bench.log.messages.count { $0.text.contains("duplicate window") } }
        let batch = try fresh(1, time)
        #expect(await deliver(try fresh(2, time), output))
        server.signal(SIGSTOP)
        #expect(retried(await output.send(batch)) != nil)
        time.advance(by: .seconds(119))
        #expect(retried(await output.send(batch)) != nil)
        #expect(warnings() == 0)
        server.signal(SIGCONT)
        time.advance(by: .seconds(122))
        #expect(await deliver(batch, output))
        #expect(warnings() == 1)
        // One of an earlier process may have been sent by it.
        #expect(await deliver(try Sample.batch(1, number: 9), output))
        #expect(warnings() == 2)
    }

    @Test("a full stream is retried with the reason, and sending continues when there is room")
    func full() async throws {
        let bench = try Bench()
        let server = try await NATSServer(bench)
        let reader = try NATSReader(server)
        try reader.makeStream("EVENTS", "events.web", ",\"max_msgs\":2,\"discard\":\"new\"")
        let output = try output(bench, server)
        #expect(await output.send(try Sample.batch(1, number: 1)) == .acknowledged)
        #expect(await output.send(try Sample.batch(1, number: 2)) == .acknowledged)
        let failure = retried(await output.send(try Sample.batch(1, number: 3)))
        #expect(failure?.message.contains("maximum messages exceeded") == true, "\(failure?.message ?? "")")
        try reader.purge()
        #expect(await output.send(try Sample.batch(1, number: 3)) == .acknowledged)
    }

    @Test("a missing stream, a wrong stream and oversized messages have helpful messages")
    func wrongStream() async throws {
        let bench = try Bench()
        let server = try await NATSServer(bench, "max_payload: 8192")
        let reader = try NATSReader(server)
        let output = try output(bench, server) { $0.nats.stream = "EVENTS" }
        let lacking = retried(await output.send(try Sample.batch(1)))
        #expect(lacking?.status == 503 && lacking?.message.contains("no stream takes events.web") == true)
        try reader.makeStream("OTHER", "events.web")
        #expect(held(await output.send(try Sample.batch(1))).contains("check nats.stream"))

        try reader.makeStream("SMALL", "small", ",\"max_msg_size\":512")
        let small = try self.output(bench, server) {
            $0.nats.subject = "small"
            $0.compression = .none
        }
        guard case .tooLarge(let wireBytes, _) = await small.send(try Sample.batch(100)), wireBytes > 512
        else {
            Issue.record("a message above max_msg_size was not called too large")
            return
        }
        guard case .tooLarge(let size, let failure) = await small.send(try Sample.batch(1_000)), size > 8192
        else {
            Issue.record("a message above max_payload was not called too large")
            return
        }
        #expect(failure.message.contains("max_payload"))
        // Nothing of it was sent: the server would have closed the connection.
        #expect(await small.send(try Sample.batch(1)) == .acknowledged)
        let events = try self.output(bench, server) {
            $0.nats.subject = "small"
            $0.nats.message = .event
        }
        let text =
            #"{"id":"a"}"# + "\n" + #"{"id":"b","x":"\#(String(repeating: "x", count: 9_000))"}"# + "\n"
        let part = Batch.Part(
            compression: .none, frame: Array(text.utf8), bytes: text.utf8.count, eventsInFrame: 2,
            events: 0..<2)
        #expect(await events.send(Sample.batch([part])) == .partial(rejected: [], retry: [1]))
    }

    @Test("wrong credentials hold the destination, and are read again when they change: token, user, nkey")
    func credentials() async throws {
        let bench = try Bench()
        let server = try await NATSServer(bench, starts: false)
        let file = "\(bench.directory.path)/secret"
        let ways: [(String, String, String, String, (inout DestinationSettings) -> Void)] = [
            (
                "authorization { token: right }", ",\"auth_token\":\"right\"", "wrong", "right",
                { $0.token.file = file }
            ),
            (
                "authorization { user: me, password: right }", ",\"user\":\"me\",\"pass\":\"right\"", "wrong",
                "right",
                { $0.logIn("me", .file(file)) }
            ),
            (
                "authorization { users: [{ nkey: \(NATSIdentityTests.publicName) }, { user: r, password: r }] }",
                ",\"user\":\"r\",\"pass\":\"r\"", TestKey(9).seed(.user), NATSIdentityTests.seed,
                { $0.nats.nkey.file = file }
            ),
        ]
        for (number, (settings, readers, wrong, right, way)) in ways.enumerated() {
            server.configure(settings)
            try await server.start()
            let reader = try NATSReader(server, user: readers)
            if number == 0 { try reader.makeStream() }
            let time = ManualTime()
            try PrivateFile.replace(file, with: wrong)
            let output = try output(bench, server, time: time, way)
            #expect(
                held(await output.send(try Sample.batch(1, number: UInt64(number)))).contains("credentials"))
            try PrivateFile.replace(file, with: "\(right)\n")
            time.advance(by: .seconds(2))
            // Delivery asks while the destination is held.
            let isNew = await output.hasNewCredentials()
            #expect(output.followsFiles && isNew)
            #expect(await output.send(try Sample.batch(1, number: UInt64(number))) == .acknowledged)
            #expect(try reader.count() == number + 1)
            // Others than those that it connected with: the connection is not used any more.
            try PrivateFile.replace(file, with: wrong)
            time.advance(by: .seconds(2))
            #expect(held(await output.send(try Sample.batch(1, number: 50))).contains("credentials"))
            #expect(!bench.log.messages.contains { "\($0)".contains(right) || "\($0)".contains(wrong) })
            server.end(SIGTERM)
        }
    }

    @Test("an account's credentials file is accepted; one of another account holds the destination")
    func credentialsFile() async throws {
        let bench = try Bench()
        let world = JWTWorld()
        let server = try await NATSServer(bench, world.settings)
        let file = "\(bench.directory.path)/agent.creds"
        try PrivateFile.replace(file, with: world.credentials(of: TestKey(4), by: TestKey(5)))
        let time = ManualTime()
        let output = try output(bench, server, time: time) { $0.nats.credentials.file = file }
        #expect(held(await output.send(try Sample.batch(1))).contains("credentials"))
        try PrivateFile.replace(file, with: world.credentials(of: TestKey(4), by: world.account))
        time.advance(by: .seconds(2))
        // No stream takes it, which only those are told who may publish.
        let failure = retried(await output.send(try Sample.batch(1)))
        #expect(failure?.message.contains("no stream") == true, "\(failure?.message ?? "") \(server.log)")
    }

    @Test("a missing permission to publish or subscribe holds the destination, and is named")
    func permissions() async throws {
        let bench = try Bench()
        let server = try await NATSServer(
            bench,
            """
            authorization { users: [
                { user: a, password: x, permissions: { publish: "other", subscribe: ">" } },
                { user: b, password: x, permissions: { publish: ">", subscribe: "mine.>" } },
                { user: r, password: r } ] }
            """)
        try NATSReader(server, user: ",\"user\":\"r\",\"pass\":\"r\"").makeStream()
        func output(_ user: String, _ prefix: String = "_INBOX") throws -> NATSOutput {
            try self.output(bench, server) {
                $0.logIn(user, .inline(Secret("x")))
                $0.nats.inboxPrefix = prefix
            }
        }
        #expect(held(await (try output("a")).send(try Sample.batch(1))).contains("may not publish"))
        #expect(held(await (try output("b")).send(try Sample.batch(1))).contains("nats.inbox_prefix"))
        #expect(await (try output("b", "mine.inbox")).send(try Sample.batch(1)) == .acknowledged)
    }

    @Test("TLS and mutual TLS have the settings and messages of HTTP")
    func tls() async throws {
        let bench = try Bench()
        let server = try await NATSServer(bench)
        try NATSReader(server).makeStream()
        server.end(SIGTERM)
        let identity = try bench.identity(names: ["DNS:localhost"])
        let client = try bench.identity(names: ["DNS:agent"], isClient: true)
        let path = bench.directory.path
        for (name, text) in [
            ("server.pem", identity.certificate), ("server.key", identity.key),
            ("client.pem", client.certificate),
            ("client.key", client.key),
        ] { try PrivateFile.replace("\(path)/\(name)", with: text) }
        let files = "cert_file: \"\(path)/server.pem\", key_file: \"\(path)/server.key\""
        func send(_ host: String = "localhost", _ change: (inout DestinationSettings) -> Void = { _ in })
            async throws
            -> Outcome
        {
            let output = try self.output(bench) {
                $0.url = EndpointURL("tls://\(host):\(server.port)")
                $0.tls.caFile = bench.caFile
                change(&$0)
            }
            let outcome = await output.send(try Sample.batch(2))
            if outcome == .acknowledged { #expect(await output.certificates.serverExpiry != nil) }
            return outcome
        }
        server.configure("tls { \(files) }")
        try await server.start()
        #expect(try await send() == .acknowledged)
        #expect(try await send { $0.tls.minimumVersion = .tls13 } == .acknowledged)
        // nats:// becomes TLS where the server wants it.
        #expect(try await send { $0.url = EndpointURL("nats://localhost:\(server.port)") } == .acknowledged)
        #expect(retried(try await send { $0.tls.caFile = nil })?.message.contains("tls.ca_file") == true)
        #expect(retried(try await send("127.0.0.1"))?.message.contains("for another name") == true)
        let pin = "sha256//\(Base64.encode([UInt8](repeating: 7, count: 32)))"
        #expect(
            retried(try await send { $0.tls.pinnedKeys = [pin] })?.message.contains("pinned_keys") == true)
        server.end(SIGTERM)

        server.configure("tls { \(files), ca_file: \"\(bench.caFile)\", verify: true }")
        try await server.start()
        let refused = retried(try await send())
        #expect(
            refused?.kind == .tls && refused?.message.contains("the agent's certificate") == true,
            "\(refused?.message ?? "")")
        #expect(
            try await send {
                $0.tls.certificateFile = "\(path)/client.pem"
                $0.tls.keyFile = "\(path)/client.key"
            } == .acknowledged)
    }

    @Test("lame duck: a server that is about to stop is replaced before it closes, and nothing fails")
    func lameDuck() async throws {
        let bench = try Bench()
        let settings = "lame_duck_duration: \"30s\", lame_duck_grace_period: \"20s\""
        let servers = [
            try await NATSServer(bench, name: "a", settings),
            try await NATSServer(bench, name: "b", settings),
        ]
        for server in servers { try NATSReader(server).makeStream() }
        let output = try output(bench, servers[0], servers[1])
        #expect(await output.send(try Sample.batch(1, number: 1)) == .acknowledged)
        let first = try #require(try servers.firstIndex { try NATSReader($0).count() == 1 })
        servers[first].signal(SIGUSR2)
        #expect(await eventually { !servers[first].isListening })
        for number in 2...20 {
            #expect(await output.send(try Sample.batch(1, number: UInt64(number))) == .acknowledged)
        }
        // As it is now it may answer nobody: what it has is asked after another start.
        servers[first].end(SIGKILL)
        try await servers[first].start()
        let stayed = try NATSReader(servers[first]).count()
        // Those of the moment between the server's decision and its word may have gone to the first.
        #expect(try NATSReader(servers[1 - first]).count() + stayed == 20)
        #expect(stayed < 20)
    }

    @Test("of several servers the next is tried at once if one is down or dies")
    func failover() async throws {
        let bench = try Bench()
        let servers = [
            try await NATSServer(bench, name: "a", starts: false), try await NATSServer(bench, name: "b"),
        ]
        try NATSReader(servers[1]).makeStream()
        for _ in 0..<4 {
            // Which is tried first is drawn.
            let output = try output(bench, servers[0], servers[1])
            #expect(await output.send(try Sample.batch(1)) == .acknowledged)
        }
        let output = try output(bench, servers[0], servers[1])
        #expect(await output.send(try Sample.batch(1, number: 2)) == .acknowledged)
        try await servers[0].start()
        try NATSReader(servers[0]).makeStream()
        servers[1].end(SIGKILL)
        #expect(await deliver(try Sample.batch(1, number: 3), output))
        #expect(try NATSReader(servers[0]).count() == 1)
    }

    @Test(
        "check --connect names the stream for the subject, and settings of it that prevent acknowledgements"
    )
    func stream() async throws {
        let bench = try Bench()
        let server = try await NATSServer(bench)
        let reader = try NATSReader(server)
        func complaint(
            _ subject: String, _ change: (inout DestinationSettings) -> Void = { _ in }
        ) async throws -> (message: String, isRefused: Bool)? {
            var settings = DestinationSettings(nats: [server.url])
            settings.nats.subject = try Template(subject, for: .subject)
            change(&settings)
            return await (try NATSOutput("check", NATSOptions(settings), on: bench.loop, log: Log(bench.log)))
                .streamComplaint()
        }
        try reader.makeStream()
        try reader.makeStream("SHORT", "short", ",\"duplicate_window\":1000000000")
        try reader.makeStream("DEAF", "deaf", ",\"no_ack\":true")
        #expect(try await complaint("events.web") == nil)
        #expect(try await complaint("events.web") { $0.nats.stream = "EVENTS" } == nil)
        let other = try await complaint("events.web") { $0.nats.stream = "OTHER" }
        #expect(other?.message.contains("EVENTS takes events.web") == true && other?.isRefused == true)
        let none = try await complaint("nowhere")
        #expect(none?.message.contains("no stream takes nowhere") == true && none?.isRefused == true)
        let short = try await complaint("short")
        #expect(short?.message.contains("for 1 s only") == true && short?.isRefused == false)
        // Events fill it in: what they may become has to be asked for.
        try reader.makeStream("WIDE", "wide.*.log")
        #expect(try await complaint("wide.a{app}-{level}.log") == nil)
        #expect(try await complaint("events.{app}")?.message.contains("takes only some of events.*") == true)
        #expect(
            try await complaint("nowhere.{app}.{name}")?.message.contains("no stream takes nowhere.*.*")
                == true)
        let deaf = try await complaint("deaf")
        #expect(deaf?.message.contains("no_ack") == true && deaf?.isRefused == true)
        #expect(try reader.count() == 0)
    }

    @Test("check --connect distinguishes forbidden JetStream, missing JetStream and a wrong stream")
    func unasked() async throws {
        let bench = try Bench()
        let server = try await NATSServer(
            bench,
            "authorization { users = [{user: a, password: b, permissions: {publish: [\"events.>\"], subscribe: [\"_INBOX.>\"]}}] }"
        )
        var settings = DestinationSettings(nats: [server.url])
        settings.user = "a"
        settings.password.inline = Secret("b")
        settings.requestTimeout = .seconds(5)
        let complaint = await
            (try NATSOutput("check", NATSOptions(settings), on: bench.loop, log: Log(bench.log)))
            .streamComplaint()
        #expect(complaint?.message.contains("may not query") == true && complaint?.isRefused == false)
    }

    @Test("check --connect: a server that accepts the client, one that refuses, and no server")
    func probe() async throws {
        let bench = try Bench()
        let server = try await NATSServer(bench, "authorization { token: right }")
        func probe(_ token: String, _ url: String) async throws -> String? {
            var settings = DestinationSettings(nats: [url])
            settings.token.inline = Secret(token)
            return await
                (try NATSOutput(
                    "check", NATSOptions(settings), on: bench.loop, log: Log(bench.log))).probe()?
                .message
        }
        #expect(try await probe("right", server.url) == nil)
        #expect(try await probe("wrong", server.url)?.contains("refuses these credentials") == true)
        #expect(try await probe("right", "nats://127.0.0.1:1")?.contains("check that it runs") == true)
    }
}
