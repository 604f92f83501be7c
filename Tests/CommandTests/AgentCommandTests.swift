import Configuration
import Control
import EventLoops
import Metrics
import Model
import Synchronization
import TestKit
import Testing

@testable import Agent
@testable import Queue
@testable import spoolship

/// What a report says of a destination's normal events.
private func lane(_ ledger: Ledger) -> QueueSnapshot.LaneState {
    .init(destination: "main", priority: .normal, isConfigured: true, summary: LaneSummary(), ledger: ledger)
}

@Suite("Commands over the control socket", .timeLimit(.minutes(1)))
struct AgentCommandTests {
    /// What an agent was asked: method, path and body.
    private final class Notes: Sendable {
        let list = Mutex<[String]>([])
        func add(_ request: ControlRequest) {
            let body = String(decoding: request.body, as: UTF8.self)
            list.withLock { $0.append("\(request.method) \(request.path) \(body)") }
        }
    }

    private func route(
        _ routes: inout ControlRoutes, _ notes: Notes, _ method: String, _ path: String,
        _ answer: JSONValue = [:]
    ) {
        routes.add(method, path) { request in
            notes.add(request)
            return .json(answer)
        }
    }

    @Test("each command sends the request that its help describes")
    func requests() async throws {
        let notes = Notes()
        var routes = ControlRoutes()
        for (method, path) in [
            ("POST", "/v1/dispatch"), ("POST", "/v1/pause"), ("PUT", "/v1/network"),
            ("POST", "/v1/network/changed"), ("PUT", "/v1/country"), ("PUT", "/v1/log-level"),
        ] { route(&routes, notes, method, path) }
        route(&routes, notes, "PUT", "/v1/interval", ["interval": "2m"])
        route(
            &routes, notes, "POST", "/v1/reload",
            ["changed": ["queue.max_size: 1 → 2"], "need_restart": ["x"]])
        route(&routes, notes, "PUT", "/v1/collection", ["discarded": 7])
        route(&routes, notes, "POST", "/v1/session", ["message": "done"])
        let agent = try await FakeAgent(routes)
        func run(_ words: String...) -> (ExitCode, KeptConsole) {
            let kept = KeptConsole()
            return (
                CommandLineTool(console: kept.console()).run(words + ["--config", agent.configuration]), kept
            )
        }
        for words in [
            ["dispatch", "--destination", "main"], ["pause", "--token", "deploy", "--ttl", "1h30m"],
            ["pause", "--until-restart"], ["network", "off"],
            ["network", "on"], ["network-changed"], ["country", "set", "IT"], ["country", "clear"],
            ["log-level", "debug"], ["enable"],
        ] {
            let kept = KeptConsole()
            let code = CommandLineTool(console: kept.console()).run(
                words + ["--config", agent.configuration])
            #expect(code == .success, "\(words) \(kept.errorOutput)")
            #expect(kept.output.isEmpty && kept.errorOutput.isEmpty)
        }
        #expect(run("interval", "2m", "--persist").1.output == "dispatch every 2m\n")
        _ = run("interval", "off")
        _ = run("interval", "default")
        #expect(run("reload").1.output == "queue.max_size: 1 → 2\nx (after a restart)\n")
        #expect(run("session", "start", "--app", "shop").1.output == "done\n")
        #expect(
            notes.list.withLock { $0 } == [
                #"POST /v1/dispatch {"destination":"main"}"#,
                #"POST /v1/pause {"token":"deploy","ttl_ms":5400000,"until_restart":false}"#,
                #"POST /v1/pause {"token":"manual","until_restart":true}"#, #"PUT /v1/network {"on":false}"#,
                #"PUT /v1/network {"on":true}"#,
                "POST /v1/network/changed ", #"PUT /v1/country {"code":"IT"}"#,
                #"PUT /v1/country {"code":null}"#,
                #"PUT /v1/log-level {"level":"debug"}"#, #"PUT /v1/collection {"enabled":true}"#,
                #"PUT /v1/interval {"interval_ms":120000,"persist":true}"#,
                #"PUT /v1/interval {"interval_ms":0,"persist":false}"#,
                #"PUT /v1/interval {"interval_ms":null,"persist":false}"#, "POST /v1/reload ",
                #"POST /v1/session {"app":"shop"}"#,
            ])
        #expect(run("interval", "10000").0 == .usage)
        #expect(run("pause", "--ttl", "soon").0 == .usage)
        await agent.stop()
    }

    @Test("resume reports what it ended, and which destinations are still held back")
    func resume() async throws {
        let notes = Notes()
        var routes = ControlRoutes()
        routes.add("POST", "/v1/resume") { request in
            notes.add(request)
            let isAll = !String(decoding: request.body, as: UTF8.self).contains("token")
            return .json(
                isAll
                    ? ["ended": ["hold of main", "pause deploy of all destinations"], "remaining": []]
                    : [
                        "ended": [],
                        "remaining": ["main: the network is switched off (spoolship network on)"],
                    ])
        }
        let agent = try await FakeAgent(routes)
        let (code, all) = KeptConsole.run("resume", "--config", agent.configuration)
        #expect(code == .success && all.output == "ended: hold of main; pause deploy of all destinations\n")
        let still = "still held back: main: the network is switched off (spoolship network on)\n"
        let (_, one) = KeptConsole.run("resume", "--token", "deploy", "--config", agent.configuration)
        #expect(one.output == "no pause has the token deploy\n" + still)
        let (_, alone) = KeptConsole.run(
            "resume", "--token", "deploy", "--destination", "main", "--config", agent.configuration)
        #expect(alone.output == "no pause of main alone has the token deploy\n" + still)
        #expect(
            notes.list.withLock { $0 } == [
                "POST /v1/resume {}", #"POST /v1/resume {"token":"deploy"}"#,
                #"POST /v1/resume {"token":"deploy","destination":"main"}"#,
            ])
        await agent.stop()
    }

    @Test(
        "ac17: disable shows how many events it deletes and asks for confirmation; without a yes nothing changes"
    )
    func ac17_disableAsks() async throws {
        let notes = Notes()
        var routes = ControlRoutes()
        route(&routes, notes, "PUT", "/v1/collection", ["discarded": 7000, "in_flight": 150])
        route(&routes, notes, "POST", "/v1/dead-letters/purge", ["purged": 1003])
        route(&routes, notes, "POST", "/v1/quarantine/purge", ["purged": 2])
        let now = Timestamp(milliseconds: 1_795_168_800_000)
        var report = StatusReport(started: now, now: now)
        var main = StatusReport.Destination(name: "main", state: .active)
        var ledger = Ledger()
        ledger.accepted = 1234
        ledger.queued = 1234
        main.lanes = [lane(ledger)]
        report.destinations = [main]
        report.queue.deadLetters.count = 1003
        report.queue.quarantine.count = 2
        let json = report.json
        routes.add("GET", "/v1/status") { _ in .json(json) }
        let agent = try await FakeAgent(routes)
        let (code, kept) = KeptConsole.run("disable", "--config", agent.configuration)
        #expect(code == .usage)
        #expect(
            kept.errorOutput.contains(
                "1,234 queued deliveries will be deleted; 1,003 dead letters and 2 quarantined lines stay (--all):"
                    + " confirm with --yes"))
        let (_, all) = KeptConsole.run("disable", "--all", "--config", agent.configuration)
        #expect(
            all.errorOutput.contains(
                "1,234 queued deliveries will be deleted with 1,003 dead letters and 2 quarantined lines:"
                    + " confirm with --yes"))
        #expect(notes.list.withLock { $0 } == [])
        let (yes, told) = KeptConsole.run("disable", "--yes", "--config", agent.configuration)
        #expect(yes == .success)
        #expect(
            told.output
                == "collection is off; 7,000 deliveries discarded, 150 of them in flight: their arrival is unknown\n"
                + "1,003 dead letters stay: `spoolship dead-letters purge`\n"
                + "2 quarantined lines stay: `spoolship quarantine purge`\n"
        )
        let (emptied, removed) = KeptConsole.run("disable", "--all", "--yes", "--config", agent.configuration)
        #expect(emptied == .success)
        #expect(
            removed.output
                == "collection is off; 7,000 deliveries discarded, 150 of them in flight: their arrival is unknown\n"
                + "dead-letters: 1,003 removed\nquarantine: 2 removed\n"
        )
        #expect(
            notes.list.withLock { $0.suffix(3) } == [
                #"PUT /v1/collection {"enabled":false}"#, "POST /v1/dead-letters/purge {}",
                "POST /v1/quarantine/purge {}",
            ])
        await agent.stop()
    }

    @Test("ga06: drain reports progress, and ends with 0, 75 or 124", arguments: [0, 75, 124])
    func ga06_drain(exitCode: Int) async throws {
        var routes = ControlRoutes()
        routes.add("POST", "/v1/drain") { request in
            let timeout = (try? request.json())?["timeout_ms"]?.integer ?? -1
            return .stream { stream in
                _ = await stream.write(
                    ["destination": "main", "outcome": "good", "reason": .null, "waiting": .integer(timeout)])
                _ = await stream.write([
                    "exit_code": .integer(exitCode), "obstacles": exitCode == 75 ? ["main": "held"] : [:],
                    "waiting": 3,
                ])
            }
        }
        let agent = try await FakeAgent(routes)
        let (code, kept) = KeptConsole.run("drain", "--timeout", "5s", "--config", agent.configuration)
        #expect(code.rawValue == Int32(exitCode))
        #expect(kept.output == "main: good, 5000 waiting\n")
        #expect(kept.errorOutput.contains("main: held") == (exitCode == 75))
        #expect(kept.errorOutput.contains("time ran out") == (exitCode == 124))
        await agent.stop()
    }

    @Test("records are listed by pages, with times and quoted names")
    func recordList() async throws {
        var routes = ControlRoutes()
        routes.add("GET", "/v1/dead-letters") { request in
            let start = request.query["after"].flatMap { Int($0) } ?? 0
            let limit = request.query["limit"].flatMap { Int($0) } ?? 0
            let end = min(2500, start + limit)
            let records = (start..<end).map { number -> JSONValue in
                [
                    "id": .string("\(number)"), "destination": "main", "rejected_ms": 1_795_168_800_000,
                    "message": "a\nb", "status": 400, "extra": .null,
                ]
            }
            return .json(["records": .array(records), "next": end < 2500 ? .string("\(end)") : .null])
        }
        let agent = try await FakeAgent(routes)
        let (_, kept) = KeptConsole.run(
            "dead-letters", "list", "--limit", "2", "--config", agent.configuration)
        #expect(
            kept.output.split(separator: "\n")[1]
                == #"1 destination=main rejected=2026-11-20T10:00:00.000Z message="a\nb" status=400"#)
        #expect(kept.errorOutput.contains("there are more"))
        let (_, all) = KeptConsole.run(
            "dead-letters", "list", "--limit", "9999", "--config", agent.configuration)
        #expect(all.output.split(separator: "\n").count == 2500)
        #expect(all.errorOutput == "")
        await agent.stop()
    }

    @Test("an export is exact to the byte, and an incomplete one is reported")
    func export() async throws {
        let events =
            #"{"name":"a","n":1.0e5,"big":123456789012345678901}"# + "\n" + #"{"error":{"message":"x"}}"#
            + "\n"
        var routes = ControlRoutes()
        routes.add("GET", "/v1/queue/export") { request in
            let isBroken = request.query["priority"] == "critical"
            return .stream { stream in
                _ = await stream.write(Array(events.utf8))
                _ = await stream.write(
                    isBroken
                        ? ["error": ["status": 500, "code": "x", "message": "the disk is gone"]]
                        : ["end": true])
            }
        }
        let agent = try await FakeAgent(routes)
        let (code, kept) = KeptConsole.run("queue", "export", "--config", agent.configuration)
        #expect(code == .success)
        #expect(kept.output == events)
        let (broken, told) = KeptConsole.run(
            "queue", "export", "--priority", "critical", "--config", agent.configuration)
        #expect(broken == .inputOutput)
        #expect(told.errorOutput == "spoolship: the disk is gone\n")
        await agent.stop()
    }

    @Test("an unknown choice for an option ends with exit code 64, in every command")
    func unknownWords() async throws {
        var routes = ControlRoutes()
        for path in ["/v1/tap", "/v1/queue"] {
            routes.add("GET", path) { _ in
                ControlRefusal(400, "out_of_range", "priority must be normal or critical").response
            }
        }
        let agent = try await FakeAgent(routes)
        for words in [["tap"], ["queue", "list"]] {
            let (code, kept) = KeptConsole.run(words + ["--priority", "x", "--config", agent.configuration])
            #expect(
                code == .usage && kept.errorOutput == "spoolship: priority must be normal or critical\n",
                "\(kept)")
        }
        await agent.stop()
    }

    @Test("retry and purge take the records that are named; purge asks for confirmation")
    func retryAndPurge() async throws {
        let notes = Notes()
        var routes = ControlRoutes()
        route(&routes, notes, "POST", "/v1/dead-letters/retry", ["retried": 2])
        route(&routes, notes, "POST", "/v1/queue/purge", ["purged": 5])
        routes.add("GET", "/v1/queue") { request in
            let isSecond = request.query["after"] != nil
            return .json(
                isSecond
                    ? ["records": [["id": "old/2.0", "events": 234]], "next": .null]
                    : ["records": [["id": "old/1.0", "events": 1000]], "next": "0.1.0"])
        }
        routes.add("GET", "/v1/dead-letters") { _ in
            .json(["records": [["id": "4"], ["id": "5"]], "next": .null])
        }
        let agent = try await FakeAgent(routes)
        let (_, kept) = KeptConsole.run("dead-letters", "retry", "4", "5", "--config", agent.configuration)
        #expect(kept.output == "2 retried\n")
        // What goes is counted before the question, page by page.
        let (code, asked) = KeptConsole.run("queue", "purge", "--config", agent.configuration)
        #expect(code == .usage)
        #expect(asked.errorOutput.contains("1,234 queued deliveries will be removed"), "\(asked.errorOutput)")
        let (_, letters) = KeptConsole.run("dead-letters", "purge", "--config", agent.configuration)
        #expect(letters.errorOutput.contains("2 dead letters will be removed"), "\(letters.errorOutput)")
        let (_, named) = KeptConsole.run("dead-letters", "purge", "7", "--config", agent.configuration)
        #expect(named.errorOutput.contains("1 named entry will be removed"), "\(named.errorOutput)")
        let (_, counted) = KeptConsole.run("queue", "list", "--count", "--config", agent.configuration)
        #expect(counted.output == "1234\n")
        let (_, purged) = KeptConsole.run(
            "queue", "purge", "--destination", "old", "-y", "--config", agent.configuration)
        #expect(purged.output == "5 removed\n")
        #expect(
            notes.list.withLock { $0 } == [
                #"POST /v1/dead-letters/retry {"ids":["4","5"]}"#,
                #"POST /v1/queue/purge {"destination":"old"}"#,
            ])
        await agent.stop()
    }

    @Test(
        "erase asks for confirmation, prints the receipt, and ends with 75 if something is left",
        arguments: [true, false])
    func erase(isComplete: Bool) async throws {
        let notes = Notes()
        var routes = ControlRoutes()
        route(
            &routes, notes, "POST", "/v1/erase",
            ["queue": ["events": 2, "in_flight": 0], "quarantine": 1, "complete": .bool(isComplete)])
        let agent = try await FakeAgent(routes)
        let words = ["erase", "--where", "properties.user == '4711'", "--config", agent.configuration]
        #expect(KeptConsole.run(words).0 == .usage)
        let (trial, counted) = KeptConsole.run(words + ["--dry-run"])
        #expect(trial == .success && counted.output.contains(#""events": 2"#), "\(counted)")
        let (code, kept) = KeptConsole.run(words + ["--yes"])
        #expect(code == (isComplete ? .success : .temporaryFailure) && kept.output == counted.output)
        #expect(kept.errorOutput.isEmpty == isComplete)
        let asked = #"POST /v1/erase {"where":"properties.user == '4711'","dry_run""#
        #expect(notes.list.withLock { $0 } == ["\(asked):true}", "\(asked):true}", "\(asked):false}"])
        #expect(KeptConsole.run(["erase", "--config", agent.configuration]).0 == .usage)
        await agent.stop()
    }

    @Test("move reports how many events were moved, and why the others stay", arguments: [0, 3])
    func move(kept: Int) async throws {
        let notes = Notes()
        var routes = ControlRoutes()
        route(&routes, notes, "POST", "/v1/queue/move", ["moved": 5, "kept": .integer(kept)])
        let agent = try await FakeAgent(routes)
        let (code, text) = KeptConsole.run(
            "queue", "move", "--destination", "old", "--to", "new", "--config", agent.configuration)
        let rest = ", 3 stay: in flight, or new gets or got them anyway (purge them if old is gone)"
        #expect(code == .success && text.output == "5 moved\(kept == 0 ? "" : rest)\n")
        #expect(notes.list.withLock { $0 } == [#"POST /v1/queue/move {"destination":"old","to":"new"}"#])
        await agent.stop()
    }

    @Test("with an invalid configuration a command asks no agent; with --socket it needs no configuration")
    func otherSocket() async throws {
        let notes = Notes()
        var routes = ControlRoutes()
        route(&routes, notes, "POST", "/v1/network/changed")
        let agent = try await FakeAgent(routes)
        let socket = try Settings.load(path: agent.configuration).settings.control.socket
        let (code, kept) = KeptConsole.run("network-changed", "--config", "/none.toml")
        #expect(code == .configuration)
        #expect(
            kept.errorOutput
                == "spoolship: /none.toml cannot be used (`spoolship check --config /none.toml` says why);"
                + " give the agent's socket with --socket FILE\n")
        let (other, told) = KeptConsole.run("network-changed", "--config", "/none.toml", "--socket", socket)
        #expect(other == .success && told.errorOutput.isEmpty, "\(told.errorOutput)")
        #expect(notes.list.withLock { $0 } == ["POST /v1/network/changed "])
        #expect(KeptConsole.run("check", "--socket", socket).0 == .usage)
        await agent.stop()
    }

    @Test("top shows rates, computed from two reports")
    func topRates() async throws {
        let calls = Mutex(0)
        var routes = ControlRoutes()
        routes.add("GET", "/v1/status") { _ in
            let call = calls.withLock { count in
                count += 1
                return count
            }
            let start = Timestamp(milliseconds: 1_795_168_800_000)
            var report = StatusReport(started: start, now: start + .seconds(call * 2))
            var ledger = Ledger()
            ledger.accepted = call * 300
            ledger.acknowledged = call * 200
            ledger.queued = call * 100
            var main = StatusReport.Destination(name: "main", state: .active)
            main.lanes = [lane(ledger)]
            report.destinations = [main]
            return .json(.object((report.json.members ?? []) + [.init("text", "the screen")]))
        }
        let agent = try await FakeAgent(routes)
        let (code, kept) = KeptConsole.run(
            "top", "--count", "3", "--interval", "100ms", "--config", agent.configuration)
        #expect(code == .success)
        #expect(kept.output.contains("\n\nthe screen"))
        #expect(kept.output.contains("150/s"))
        #expect(kept.output.contains("100/s"))
        #expect(kept.output.contains("▅█  300\n") || kept.output.contains("▆█  300\n"))
        #expect(TopRates.sparkline([0, 1, 2, 4, 8]) == "▁▁▂▄█")
        #expect(KeptConsole.run("top", "--config", agent.configuration).0 == .usage)
        await agent.stop()
    }
}
