import EventLoops
import Glibc
import Logs
import Model
import Receiver
import TestKit
import Testing

@testable import Outputs

extension DestinationSettings {
    /// A syslog server at an address.
    init(syslog url: String) {
        self.init()
        reach = .syslog(SyslogSettings())
        self.url = EndpointURL(url)
    }
}

private func batch(_ lines: [String], apps: [String] = []) -> Batch {
    let bytes = Array(lines.map { $0 + "\n" }.joined().utf8)
    let part = Batch.Part(
        compression: .none, frame: bytes, bytes: bytes.count, eventsInFrame: lines.count,
        events: 0..<lines.count)
    var batch = Sample.batch([part])
    batch.header.apps = apps
    return batch
}

@Suite("Syslog messages")
struct SyslogMessageTests {
    /// The messages of some events, without their lengths.
    private func messages(
        _ lines: [String], apps: [String] = [], _ change: (inout SyslogSettings) -> Void = { _ in }
    ) throws -> (texts: [String], tooLong: [RejectedEvent]) {
        var settings = SyslogSettings()
        change(&settings)
        let batch = batch(lines, apps: apps)
        let events = try EventView.all(Array(lines.map { $0 + "\n" }.joined().utf8))
        let made = SyslogEncoder(settings, host: "web-1").messages(events, of: batch.header)
        var rest = made.bytes[...]
        var texts: [String] = []
        while let blank = rest.firstIndex(of: 0x20) {
            let count = try #require(Int(String(decoding: rest[..<blank], as: UTF8.self)))
            let start = rest.index(after: blank)
            texts.append(String(decoding: rest[start..<(start + count)], as: UTF8.self))
            rest = rest[(start + count)...]
        }
        #expect(rest.isEmpty)
        return (texts, made.tooLong)
    }

    @Test("an event is a message of RFC 5424, whose text is the event as stored")
    func event() throws {
        let line =
            #"{"name":"order placed","timestamp":"2026-11-20T10:00:00.123456789Z","level":"error","app":"shop","id":"7"}"#
        let made = try messages([line], apps: ["shop"])
        #expect(
            made.texts == [
                #"<11>1 2026-11-20T10:00:00.123456Z web-1 shop - order_placed [spoolship@32473 event_id="shop/7"] "#
                    + line
            ])
    }

    @Test(
        "levels become syslog severities; an event without one is a notice",
        arguments: [
            ("fatal", 2), ("error", 3), ("warn", 4), ("info", 6), ("debug", 7), ("trace", 7), ("whatever", 5),
        ])
    func severities(level: String, severity: Int) throws {
        let made = try messages([#"{"name":"a","level":"\#(level)"}"#]) { $0.facility = .local3 }
        #expect(made.texts[0].hasPrefix("<\(19 * 8 + severity)>1 "), "\(made.texts)")
    }

    @Test("an event without a time has its acceptance time, and one without a name has no MSGID")
    func missing() throws {
        let made = try messages([#"{"n":1}"#])
        #expect(
            made.texts[0].hasPrefix("<13>1 2026-11-20T10:00:00.000Z web-1 - - - [spoolship@32473 event_id="))
    }

    @Test("members become structured data; special characters of values and names are escaped or replaced")
    func structuredData() throws {
        let line =
            #"{"name":"a","id":"1","t":"x]\"\\y","http":{"status":500},"a b=":true,"gone":null,"properties":{"p":"q"}}"#
        let made = try messages([line]) {
            $0.structuredDataID = "shop@99999"
            $0.structuredData = ["t", "http.status", "a b=", "gone", "missing", "p"]
        }
        let wanted = #"[shop@99999 event_id="/1" t="x\]\"\\y" http.status="500" a_b_="true" p="q"] "#
        #expect(made.texts[0].contains(wanted), "\(made.texts)")
    }

    @Test("with `text` the message is the event's own, and no app can forge a header")
    func text() throws {
        let lines = [
            #"{"name":"log","host_name":"h ost","message":"one\ntwo\u0000"}"#,
            #"{"name":"log","host_name":"h","n":1}"#,
        ]
        let made = try messages(lines, apps: ["sh op\n<1>", String(repeating: "x", count: 60)]) {
            $0.message = .text
        }
        #expect(made.texts[0].contains(" h_ost sh_op_<1> - log [") && made.texts[0].hasSuffix("] one\ntwo "))
        let long = " h \(String(repeating: "x", count: 48)) - log ["
        #expect(made.texts[1].contains(long) && made.texts[1].hasSuffix("] " + lines[1]), "\(made.texts)")
    }

    @Test("a message beyond the receiver's limit is not sent, and the reason has both lengths")
    func tooLong() throws {
        let lines = [
            #"{"name":"a"}"#, #"{"name":"\#(String(repeating: "x", count: 600))"}"#, #"{"name":"b"}"#,
        ]
        let made = try messages(lines) { $0.maxMessage = 500 }
        #expect(made.texts.count == 2 && made.tooLong.map(\.index) == [1])
        let rejected = try #require(made.tooLong.first)
        #expect(rejected.isFinal && rejected.failure.message.contains("syslog.message.max_size is 500"))
    }
}

@Suite("Syslog servers")
struct SyslogServerTests {
    private func output(
        _ bench: Bench, _ url: String, _ change: (inout DestinationSettings) -> Void = { _ in }
    ) throws -> SyslogOutput {
        var settings = DestinationSettings(syslog: url)
        settings.tls.caFile = bench.caFile
        change(&settings)
        return try SyslogOutput(
            "main", settings, settings.syslog, hostName: "web-1", on: bench.loop, log: Log(bench.log))
    }

    private func numbered(_ numbers: Range<Int>) -> Batch {
        batch(numbers.map { #"{"name":"a","id":"\#($0)","message":"line \#($0)","app":"shop"}"# })
    }

    private func deliver(_ batch: Batch, _ output: SyslogOutput) async -> Bool {
        await eventually { await output.send(batch) == .acknowledged }
    }

    @Test(
        "rsyslog over TLS or TCP receives each event once, in order, with all its fields",
        arguments: [true, false])
    func rsyslog(tls: Bool) async throws {
        let bench = try Bench()
        let server = try await RsyslogServer(bench, tls: tls)
        let output = try output(bench, "\(tls ? "tls" : "tcp")://\(server.place)") {
            $0.syslog.structuredData = ["trace_id"]
            $0.syslog.facility = .local0
        }
        let line =
            #"{"name":"Order","timestamp":"2026-11-20T10:00:00.123456Z","level":"warn","trace_id":"a\"]b","text":"é\nü","id":"1","app":"shop"}"#
        #expect(await output.send(batch([line], apps: ["shop"])) == .acknowledged)
        for start in [0, 1000] {
            #expect(await output.send(numbered(start..<(start + 1000))) == .acknowledged)
        }
        #expect(await eventually { server.stored.count == 2001 }, "\(server.stored.count)")
        let first = try #require(server.stored.first)
        #expect(
            first.priority == "132" && first.time == "2026-11-20T10:00:00.123456Z" && first.host == "web-1")
        #expect(first.app == "shop" && first.id == "Order" && first.message.contains(line), "\(first)")
        #expect(first.structuredData == #"[spoolship@32473 event_id="shop/1" trace_id="a\"\]b"]"#)
        let others = server.stored.dropFirst().map(\.structuredData)
        #expect(others == (0..<2000).map { #"[spoolship@32473 event_id="shop/\#($0)"]"# })
        if tls { #expect(await output.certificates.serverExpiry != nil) }
    }

    @Test("after a restart of the server the next batch uses a new connection")
    func restart() async throws {
        let bench = try Bench()
        let server = try await RsyslogServer(bench, tls: true)
        let output = try output(bench, "tls://\(server.place)")
        #expect(await output.send(numbered(0..<10)) == .acknowledged)
        #expect(await eventually { server.stored.count == 10 })
        server.end(SIGKILL)
        let refused = try #require(retried(await output.send(numbered(10..<20))))
        #expect(refused.kind == .connect || refused.kind == .connection, "\(refused)")
        try await server.start()
        #expect(await deliver(numbered(10..<20), output))
        #expect(await eventually { server.stored.count == 20 }, "\(server.stored.count)")
    }

    /// A server that counts messages by the lengths before them, and complains about anything else.
    private func strict(
        _ bench: Bench, _ seen: Seen, tls: Bool = true
    ) throws -> ScriptedPeer {
        try ScriptedPeer(tls ? bench.identity() : nil) { connection in
            var bytes: [UInt8] = []
            while true {
                let more = connection.read()
                guard !more.isEmpty else { return }
                bytes += more
                while let blank = bytes.firstIndex(of: 0x20) {
                    guard let count = Int(String(decoding: bytes[..<blank], as: UTF8.self)), count > 0 else {
                        seen.note("not a length")
                        return
                    }
                    guard bytes.count > blank + count else { break }
                    seen.note(String(decoding: bytes[(blank + 1)...(blank + count)], as: UTF8.self))
                    bytes.removeFirst(blank + 1 + count)
                }
            }
        }
    }

    @Test("concurrent batches share a connection, and their messages do not mix")
    func together() async throws {
        let bench = try Bench()
        let seen = Seen()
        let peer = try strict(bench, seen)
        defer { peer.stop() }
        let output = try output(bench, "tls://127.0.0.1:\(peer.port)")
        let outcomes = await withTaskGroup(of: Outcome.self) { group in
            for start in 0..<8 {
                group.addTask { await output.send(numbered(start * 500..<(start + 1) * 500)) }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(outcomes == Array(repeating: .acknowledged, count: 8))
        #expect(await eventually { seen.all.count == 4000 }, "\(seen.all.count)")
        #expect(Set(seen.all).count == 4000 && seen.all.allSatisfy { $0.hasPrefix("<13>1 ") })
    }

    @Test("a server that closes between two batches causes no failure: the next uses a new connection")
    func closedBetween() async throws {
        let bench = try Bench()
        let seen = Seen()
        let peer = try ScriptedPeer(bench.identity()) { connection in
            // One message, then the end.
            let bytes = connection.read()
            seen.note(String(decoding: bytes, as: UTF8.self))
        }
        defer { peer.stop() }
        let output = try output(bench, "tls://127.0.0.1:\(peer.port)")
        for number in 0..<5 {
            #expect(await output.send(numbered(number..<(number + 1))) == .acknowledged)
            #expect(await eventually { seen.all.count == number + 1 }, "\(number): \(seen.all)")
            // The end of the connection is seen without anything being sent.
            #expect(await eventually { await !output.isConnected })
        }
    }

    @Test("a server that reads nothing is given up after request_timeout, and the batch is retried")
    func readsNothing() async throws {
        let bench = try Bench()
        let peer = try ScriptedPeer(nil) { $0.pause(milliseconds: 20_000) }
        defer { peer.stop() }
        let output = try output(bench, "tcp://127.0.0.1:\(peer.port)") {
            $0.requestTimeout = .milliseconds(500)
        }
        let line = #"{"name":"a","text":"\#(String(repeating: "x", count: 7000))"}"#
        let failure = try #require(retried(await output.send(batch(Array(repeating: line, count: 4000)))))
        #expect(failure.kind == .timeout && failure.message.contains("did not take all messages in time"))
        #expect(await !output.isConnected)
    }

    @Test("an untrusted certificate, and a server without TLS, are named")
    func noTrust() async throws {
        let bench = try Bench()
        let seen = Seen()
        let peer = try strict(bench, seen)
        defer { peer.stop() }
        let stranger = try output(bench, "tls://127.0.0.1:\(peer.port)") { $0.tls.caFile = nil }
        let failure = try #require(retried(await stranger.send(numbered(0..<1))))
        #expect(failure.kind == .tls && failure.message.contains("tls.ca_file"), "\(failure)")
        #expect(await stranger.probe()?.kind == .tls)
        let plain = try strict(bench, seen, tls: false)
        defer { plain.stop() }
        let late = try output(bench, "tls://127.0.0.1:\(plain.port)") {
            $0.connectTimeout = .milliseconds(500)
        }
        let silent = try #require(retried(await late.send(numbered(0..<1))))
        #expect(silent.message.contains("does it speak TLS?") || silent.kind == .connection, "\(silent)")
        #expect(!seen.all.contains { $0.hasPrefix("<") })
    }

    @Test("a refused connection is a retry, and a cancelled attempt ends at once")
    func absent() async throws {
        let bench = try Bench()
        let output = try output(bench, "tcp://127.0.0.1:\(try freePort())")
        let failure = try #require(retried(await output.send(numbered(0..<1))))
        #expect(failure.message.contains("connection refused"), "\(failure)")
        #expect(await output.probe()?.message == failure.message)
        let peer = try ScriptedPeer(nil) { $0.pause(milliseconds: 20_000) }
        defer { peer.stop() }
        let waiting = try self.output(bench, "tls://127.0.0.1:\(peer.port)") {
            $0.connectTimeout = .seconds(50)
        }
        let attempt = Task { await waiting.send(numbered(0..<1)) }
        #expect(await eventually { await waiting.isConnecting })
        attempt.cancel()
        #expect(retried(await attempt.value)?.message.contains("the wait ended") == true)
    }

    @Test(
        "invalid addresses are refused",
        arguments: ["tls://u:p@h", "tls://h/path", "http://h", "tcp://h.test"])
    func addresses(url: String) throws {
        let bench = try Bench()
        #expect(throws: OutputError.self) { try output(bench, url) }
    }
}
