import Model
import Synchronization
import TestKit
import Testing

@testable import Control

/// An agent that notes what it is asked.
private final class NotingAgent: StatusSource, SendingControl, CollectionControl, RecordControl, BackfillControl {
    let notes = Mutex<[String]>([])
    let drains = Mutex(0)

    private func note(_ text: String) { notes.withLock { $0.append(text) } }

    func status() async -> StatusReport { SampleReport.healthy }

    func dispatch(to destination: DestinationName?) async throws(ControlRefusal) {
        guard destination != "nowhere" else {
            throw ControlRefusal(status: 404, code: "unknown_destination", message: "there is no destination nowhere")
        }
        note("dispatch \(destination?.text ?? "all")")
    }

    func dispatchAndWait(
        to destination: DestinationName?, report: @escaping @Sendable (DispatchReport) -> Void
    ) async throws(ControlRefusal) -> CommandResult {
        guard destination != "nowhere" else {
            throw ControlRefusal(status: 404, code: "unknown_destination", message: "there is no destination nowhere")
        }
        for waiting in [2, 1, 0] { report(.good("main", waiting: waiting)) }
        return .done
    }

    func drain(
        timeout: Duration, to destination: DestinationName?, report: @escaping @Sendable (DispatchReport) -> Void
    ) async throws(ControlRefusal) -> CommandResult {
        note("drain \(timeout)")
        report(.noData("main", .paused))
        guard destination == "endless" else {
            return .stuck(["main": .paused])
        }
        drains.withLock { $0 += 1 }
        await waitForCancellation()
        drains.withLock { $0 -= 1 }
        return .cancelled
    }

    func pause(token: String, destination: DestinationName?, ttl: Duration?, untilRestart: Bool) async {
        note("pause \(token) \(destination?.text ?? "all") \(ttl.map { "\($0)" } ?? "-") \(untilRestart)")
    }

    func resume(token: String?, destination: DestinationName?) async { note("resume \(token ?? "all")") }
    func setNetwork(on: Bool) async { note("network \(on)") }
    func networkChanged() async { note("network changed") }

    func setInterval(_ interval: Duration?, persist: Bool) async -> String {
        note("interval \(interval.map { "\($0)" } ?? "default") \(persist)")
        return "2m"
    }

    func setEnabled(_ isEnabled: Bool) async -> DiscardedEvents {
        isEnabled ? DiscardedEvents() : DiscardedEvents(all: 12, inFlight: 2)
    }
    func startSession(app: String?) async -> String { "new session of \(app ?? "every app")" }
    func setCountry(_ code: String?) async { note("country \(code ?? "none")") }

    func setLogLevel(_ level: String) async throws(ControlRefusal) {
        guard level == "debug" else { throw ControlRefusal(status: 400, code: "bad_level", message: "no such level") }
        note("level \(level)")
    }

    func reload() async throws(ControlRefusal) -> ReloadResult {
        ReloadResult(changed: ["queue.max_size: 10MiB → 20MiB"], needRestart: ["stats.listen"])
    }

    func list(
        _ store: RecordStore, _ filter: RecordSelection, after: String?, limit: Int
    ) async -> (records: [JSONValue], next: String?) {
        note("list \(store.rawValue) \(filter.destination?.text ?? "-") \(filter.priority?.name ?? "-") \(limit)")
        return after == nil ? ([["id": "1"]], "1") : ([["id": "2"]], nil)
    }

    func show(_ store: RecordStore, id: String) async -> JSONValue {
        ["id": .string(id), "store": .string(store.rawValue)]
    }

    func export(
        _ store: RecordStore, _ filter: RecordSelection, after: String?
    ) async throws(ControlRefusal) -> (lines: [UInt8], next: String?) {
        switch after {
        case nil: (Array("{\"a\":1}\n".utf8), "1")
        case "1": ([], "2")
        case "2": (Array("{\"a\":2}\n".utf8), store == .queue ? nil : "3")
        default: throw ControlRefusal(status: 500, code: "database", message: "the database is damaged")
        }
    }

    func retry(_ store: RecordStore, _ filter: RecordSelection) async -> Int { filter.ids?.count ?? 100 }
    func purge(_ store: RecordStore, _ filter: RecordSelection) async -> Int { filter.ids?.count ?? 100 }

    func move(
        from source: String, to target: String, _ priority: Priority?
    ) async throws(ControlRefusal) -> (moved: Int, kept: Int) {
        guard target == "main" else {
            throw ControlRefusal(status: 400, code: "unknown_destination", message: "there is no destination \(target)")
        }
        return (priority == .critical ? 3 : 30, 0)
    }

    func state(of key: String) async -> BackfillState {
        BackfillState(place: key == "new" ? nil : "1:2", pieceBytes: 1000, maxEventSize: 2000)
    }

    func take(_ piece: BackfillPiece) async throws(ControlRefusal) -> IntakeLedger {
        guard piece.from != "later" else {
            throw ControlRefusal(status: 503, code: "later", message: "7 events wait for main")
        }
        note("\(piece)")
        var result = IntakeLedger()
        (result.read, result.accepted, result.refused, result.quarantined) = (3, 1, 1, 1)
        return result
    }
}

@Suite("Control API", .timeLimit(.minutes(1)))
struct ControlAPITests {
    private func withAgent(_ body: (ControlClient, NotingAgent) async throws -> Void) async throws {
        let agent = NotingAgent()
        let routes = ControlAPI.routes(status: agent, sending: agent, collection: agent, records: agent)
        try await withControlServer(routes) { (client, _) async throws in try await body(client, agent) }
    }

    @Test("docs/control-api.md describes every route, and no others")
    func documentation() throws {
        let agent = NotingAgent()
        let routes = ControlAPI.routes(
            status: agent, sending: agent, collection: agent, records: agent, tap: EventTap(), backfill: agent,
            containers: NotingContainers()
        )
        .list
        let page = try readFile("\(GoldenFile.root)/docs/control-api.md")
        let described = page.split(separator: "\n").compactMap { line -> String? in
            guard line.hasPrefix("| `"), let request = line.split(separator: "`").dropFirst().first else { return nil }
            return String(request)
        }
        #expect(Set(described) == Set(routes.map { "\($0.method) \($0.path)" }))
        #expect(described.count == routes.count)
    }

    @Test("a backfill's pieces are lines with their places, and what cannot be one is refused")
    func backfill() async throws {
        let agent = NotingAgent()
        let routes = ControlAPI.routes(status: agent, backfill: agent)
        try await withControlServer(routes) { (client, _) async throws in
            let new = try client.request("GET", "/v1/backfill", query: [("key", "new")]).json()
            #expect(new == ["place": .null, "piece_bytes": 1000, "max_event_size": 2000])
            let base = [("key", "0aF"), ("file", "/x/ä b.jsonl"), ("app", "shop"), ("offset", "7"), ("end", "1:9")]
            func take(_ more: [(String, String)], _ lines: String = "{}\n") throws -> ControlClient.Answer {
                let names = Set(more.map(\.0))
                let query = base.filter { !names.contains($0.0) } + more
                return try client.request(
                    "POST", "/v1/backfill", query: query.filter { !$0.1.isEmpty }, content: Array(lines.utf8))
            }
            #expect(try take([("from", "1:7")]).json() == ["read": 3, "refused": 1, "quarantined": 1])
            #expect(try take([("reason", "too_long"), ("detail", "long"), ("length", "9")], "{").status == 200)
            let piece = BackfillPiece(
                key: "0aF", file: "/x/ä b.jsonl", app: "shop", from: "1:7",
                content: FilePiece(bytes: Array("{}\n".utf8), offset: 7, end: "1:9"))
            var problem = piece
            problem.from = nil
            problem.content.bytes = Array("{".utf8)
            problem.content.problem = .init(reason: .tooLong, detail: "long", length: 9)
            #expect(agent.notes.withLock { $0 } == ["\(piece)", "\(problem)"])
            let later = try take([("from", "later")])
            #expect(later.status == 503)
            #expect(try later.json()["error"]?["code"] == "later")
            for wrong in [
                [("key", "a/b")], [("key", "")], [("file", "")], [("app", "a/b")], [("app", ".hidden")], [("end", "")],
                [("offset", "-1")], [("offset", "x")], [("reason", "too_long"), ("detail", "x")],
                [("reason", "whim"), ("detail", "x"), ("length", "9")],
            ] { #expect(try take(wrong).status == 400, "\(wrong)") }
            #expect(try take([], "{}").status == 400 && take([], "").status == 400)
        }
    }

    @Test("requests reach the agent with what they ask")
    func requests() async throws {
        try await withAgent { (client, agent) async throws in
            let (report, words) = (SampleReport.healthy, StatusText(SampleReport.healthy))
            func status(_ query: (String, String)...) throws -> JSONValue {
                try client.request("GET", "/v1/status", query: query).json()
            }
            #expect(try status() == report.json)
            #expect(try status(("text", "screen")) == report.json.adding("text", .string(words.screen)))
            #expect(try status(("text", "apps"))["text"]?.string == words.apps)
            let coloured = StatusText(report, hasColours: true).screen
            #expect(try status(("text", "screen"), ("colours", "true"))["text"]?.string == coloured)
            #expect(try status(("text", "poem"))["error"]?["status"] == 400)
            #expect(try client.request("POST", "/v1/dispatch").status == 202)
            #expect(try client.request("POST", "/v1/dispatch", body: ["destination": "nowhere"]).status == 404)
            _ = try client.request(
                "POST", "/v1/pause", body: ["token": "t", "destination": "main", "ttl_ms": 1500, "until_restart": true])
            _ = try client.request("POST", "/v1/pause")
            _ = try client.request("POST", "/v1/resume", body: ["token": "t"])
            _ = try client.request("PUT", "/v1/network", body: ["on": false])
            _ = try client.request("POST", "/v1/network/changed")
            let interval = try client.request("PUT", "/v1/interval", body: ["interval_ms": 120_000, "persist": true])
            #expect(try interval.json() == ["interval": "2m"])
            _ = try client.request("PUT", "/v1/interval", body: ["interval_ms": .null])
            _ = try client.request("PUT", "/v1/log-level", body: ["level": "debug"])
            _ = try client.request("PUT", "/v1/country", body: ["code": "IT"])
            #expect(
                try client.request("PUT", "/v1/collection", body: ["enabled": false]).json() == [
                    "discarded": 12, "in_flight": 2,
                ])
            #expect(
                try client.request("POST", "/v1/reload").json()
                    == [
                        "changed": ["queue.max_size: 10MiB → 20MiB"], "need_restart": ["stats.listen"], "warnings": [],
                    ])
            #expect(
                agent.notes.withLock { $0 } == [
                    "dispatch all", "pause t main 1.5 seconds true", "pause manual all - false", "resume t",
                    "network false", "network changed", "interval 120.0 seconds true", "interval default false",
                    "level debug", "country IT",
                ])
        }
    }

    @Test("what makes no sense is refused before the agent is asked")
    func nonsense() async throws {
        try await withAgent { (client, agent) async throws in
            for (method, path, body) in [
                ("PUT", "/v1/network", JSONValue.object([])), ("PUT", "/v1/network", ["on": "yes"]),
                ("POST", "/v1/pause", ["token": 5]), ("POST", "/v1/pause", ["ttl_ms": -1]),
                ("POST", "/v1/pause", ["ttl_ms": 0]), ("POST", "/v1/pause", []),
                ("PUT", "/v1/interval", ["interval_ms": "2m"]), ("PUT", "/v1/log-level", ["level": "loud"]),
                ("POST", "/v1/queue/purge", ["priority": "high"]), ("POST", "/v1/queue/purge", ["ids": [1]]),
            ] {
                #expect(try client.request(method, path, body: body).status == 400, "\(path) \(body)")
            }
            #expect(try client.request("GET", "/v1/queue", query: [("limit", "0")]).status == 400)
            #expect(try client.request("GET", "/v1/queue", query: [("limit", "many")]).status == 400)
            #expect(try client.request("POST", "/v1/queue/retry").status == 405)
            #expect(agent.notes.withLock { $0 } == [])
        }
    }

    @Test("what a request does not know is refused: a filter with a mistake in its name would select everything")
    func unknownNames() async throws {
        try await withAgent { (client, agent) async throws in
            for (method, path, body) in [
                ("POST", "/v1/queue/purge", JSONValue.object([.init("idss", ["1"])])),
                ("POST", "/v1/queue/purge", ["destinations": "main"]), ("POST", "/v1/queue/purge", ["app": "shop"]),
                ("POST", "/v1/dead-letters/purge", ["priority": "normal"]),
                ("POST", "/v1/dead-letters/retry", ["app": "shop"]),
                ("POST", "/v1/quarantine/purge", ["destination": "main"]),
                ("POST", "/v1/quarantine/retry", ["id": "1"]), ("POST", "/v1/pause", ["tokn": "t"]),
                ("POST", "/v1/resume", ["tokn": "t"]), ("POST", "/v1/reload", ["force": true]),
            ] {
                let answer = try client.request(method, path, body: body)
                #expect(answer.status == 400, "\(path) \(body)")
            }
            for path in ["/v1/queue/purge", "/v1/dead-letters/purge", "/v1/quarantine/purge"] {
                // Where GET has it.
                let answer = try client.request("POST", path, query: [("reason", "status")])
                #expect(answer.status == 400, "\(path)")
            }
            let asked = try client.request("GET", "/v1/queue", query: [("destinaton", "main")])
            #expect(asked.status == 400)
            #expect(
                try asked.json()["error"]?["message"]
                    == "the query of this request has no destinaton; it takes destination, priority, after, limit")
            #expect(agent.notes.withLock { $0 } == [])
            // None is not all.
            #expect(try client.request("POST", "/v1/queue/purge", body: ["ids": []]).json() == ["purged": 0])
        }
    }

    @Test("dispatch --wait and drain report as they go, and end with their result")
    func reports() async throws {
        try await withAgent { (client, _) async throws in
            let sent = try client.request("POST", "/v1/dispatch", body: ["wait": true]).body
            let lines = try sent.split(separator: UInt8(ascii: "\n")).map { try JSONValue(parsing: Array($0)) }
            #expect(lines.map { $0["waiting"]?.integer } == [2, 1, 0, 0])
            #expect(lines.last?["exit_code"] == 0)
            let drained = try client.request("POST", "/v1/drain", body: ["timeout_ms": 500]).body
            #expect(
                String(decoding: drained, as: UTF8.self)
                    == #"{"destination":"main","outcome":"no_data","reason":"paused","waiting":null}"# + "\n"
                    + #"{"exit_code":75,"obstacles":{"main":"paused"},"waiting":null}"# + "\n")
            let refused = try client.request("POST", "/v1/dispatch", body: ["wait": true, "destination": "nowhere"])
            #expect(try refused.json()["error"]?["status"] == 404)
        }
    }

    @Test("a drain whose client goes away is cancelled")
    func drainIsCancelled() async throws {
        try await withAgent { (client, agent) async throws in
            let status = try client.stream("POST", "/v1/drain", body: ["destination": "endless"]) { _ in false }
            #expect(status == 200)
            #expect(await eventually { agent.notes.withLock { $0.count } == 1 && agent.drains.withLock { $0 } == 0 })
        }
    }

    @Test("stores are listed by pages, shown, exported, retried and purged")
    func records() async throws {
        try await withAgent { (client, agent) async throws in
            let page = try client.request(
                "GET", "/v1/queue", query: [("destination", "main"), ("priority", "critical"), ("limit", "5")])
            #expect(try page.json() == ["records": [["id": "1"]], "next": "1"])
            #expect(agent.notes.withLock { $0 } == ["list queue main critical 5"])
            #expect(
                try client.request("GET", "/v1/dead-letters/42").json() == ["id": "42", "store": "dead-letters"])
            #expect(
                try client.request("GET", "/v1/queue/export").body
                    == Array("{\"a\":1}\n{\"a\":2}\n{\"end\":true}\n".utf8))
            let broken = try client.request("GET", "/v1/quarantine/export").body.split(separator: UInt8(ascii: "\n"))
            #expect(try JSONValue(parsing: Array(try #require(broken.last)))["error"]?["code"] == "database")
            #expect(
                try client.request("POST", "/v1/dead-letters/retry", body: ["ids": ["1", "2"]]).json() == ["retried": 2]
            )
            #expect(try client.request("POST", "/v1/quarantine/purge").json() == ["purged": 100])
        }
    }
}
