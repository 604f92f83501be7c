import Control
import EventLoops
import Glibc
import Model
import TestKit
import Testing

@testable import Agent

@Suite("Control API", .timeLimit(.minutes(2)))
struct ControlAPITests {
    /// Puts events into the queue, past the spool: each line is one.
    private func put(_ lines: String, by client: ControlClient, _ more: [(String, String)] = []) throws
        -> JSONValue
    {
        let query =
            [("key", "0aF"), ("file", "/x/ä b.jsonl"), ("app", "shop"), ("offset", "0"), ("end", "1:9")]
            + more
        return try client.request("POST", "/v1/backfill", query: query, content: Array(lines.utf8)).json()
    }

    @Test("docs/control-api.md describes every route, and no others")
    func documentation() async throws {
        try await withAgent { (agent) async throws in
            let page = try readFile("\(GoldenFile.root)/docs/control-api.md")
            let described = page.split(separator: "\n").compactMap { line -> String? in
                guard line.hasPrefix("| `"), let request = line.split(separator: "`").dropFirst().first else {
                    return nil
                }
                return String(request)
            }
            let routes = agent.routes.list
            #expect(Set(described) == Set(routes.map { "\($0.method) \($0.path)" }))
            #expect(described.count == routes.count)
        }
    }

    @Test("a backfill's pieces are lines with their positions; anything else is refused")
    func backfill() async throws {
        try await withAgent { (agent) async throws in
            let client = agent.client
            let new = try client.request("GET", "/v1/backfill", query: [("key", "0aF")]).json()
            #expect(new["place"] == .null && new["max_event_size"] == 1_000_000)
            #expect(
                try put("{\"name\":\"a\"}\nx\n", by: client) == ["read": 2, "refused": 0, "quarantined": 1])
            #expect(
                try client.request("GET", "/v1/backfill", query: [("key", "0aF")]).json()["place"] == "1:9")
            let problem = [("from", "1:9"), ("reason", "too_long"), ("detail", "long"), ("length", "9")]
            #expect(try put("{", by: client, problem)["quarantined"] == 1)
            let elsewhere = try put("{}\n", by: client, [("from", "1:7")])
            #expect(elsewhere["error"]?["status"] == 409 && elsewhere["error"]?["code"] == "elsewhere")
            for wrong in [
                [("key", "a/b")], [("key", "")], [("file", "")], [("app", "a/b")], [("app", ".hidden")],
                [("end", "")],
                [("offset", "-1")], [("offset", "x")], [("reason", "too_long"), ("detail", "x")],
            ] {
                let base = [("key", "0aF"), ("file", "/x"), ("app", "shop"), ("offset", "7"), ("end", "1:9")]
                let names = Set(wrong.map(\.0))
                let query = base.filter { !names.contains($0.0) } + wrong.filter { !$0.1.isEmpty }
                let answer = try client.request(
                    "POST", "/v1/backfill", query: query, content: Array("{}\n".utf8))
                #expect(answer.status == 400, "\(wrong)")
            }
            #expect(try put("{}", by: client)["error"]?["status"] == 400)
            #expect(try put("", by: client)["error"]?["status"] == 400)
        }
    }

    @Test("requests have their effect, and `status` shows it")
    func requests() async throws {
        try await withAgent { (agent) async throws in
            let client = agent.client
            func status(_ query: (String, String)...) throws -> JSONValue {
                try client.request("GET", "/v1/status", query: query).json()
            }
            func ask(_ method: String, _ path: String, _ body: JSONValue? = nil) throws -> JSONValue {
                try client.request(method, path, body: body).json()
            }
            #expect(
                try status()["version"] == "1.2.3" && status()["ready"] == true && status()["text"] == nil)
            let screen = try status(("text", "screen"))["text"]?.string ?? ""
            #expect(screen.contains("main: active"))
            let marks = StyleMarks()
            let marked = try status(("text", "screen"), ("styles", marks.key))["text"]?.string ?? ""
            #expect(marks.resolved(marked).contains("\u{1B}[1mmain"))
            #expect(
                try status(("text", "screen"), ("styles", "31m"))["text"]?.string?.contains("main: active")
                    == true)
            let one = try status(("text", "destination"), ("destination", "main"))["text"]?.string ?? ""
            #expect(one.hasPrefix("main: active") && one.contains("critical"))
            let unknown = try status(("text", "destination"), ("destination", "nowhere"))
            #expect(unknown["error"]?["code"] == "unknown_destination")
            #expect(try status(("text", "apps"))["text"] == "no app has written anything since the start\n")
            #expect(try status(("text", "poem"))["error"]?["status"] == 400)
            #expect(try client.request("POST", "/v1/dispatch").status == 202)
            #expect(
                try client.request("POST", "/v1/dispatch", body: ["destination": "nowhere"]).status == 404)
            let pause: JSONValue = [
                "token": "t", "destination": "main", "ttl_ms": 1500, "until_restart": true,
            ]
            #expect(try ask("POST", "/v1/pause", pause) == [:])
            #expect(try ask("POST", "/v1/pause") == [:])
            #expect(try status()["pause_tokens"] == ["manual"])
            #expect(try status()["destinations"]?.array?.first?["pause_tokens"] == ["manual", "t"])
            let released = try ask("POST", "/v1/resume", ["token": "t"])
            let paused = "main: paused by manual (spoolship resume --token manual)"
            #expect(released == ["ended": ["pause t of main"], "remaining": [.string(paused)]])
            let resumed = try ask("POST", "/v1/resume")
            #expect(resumed == ["ended": ["pause manual of all destinations"], "remaining": []])
            #expect(try status()["pause_tokens"] == [])
            #expect(try ask("PUT", "/v1/network", ["on": false]) == [:] && status()["network_on"] == false)
            #expect(
                try ask("PUT", "/v1/network", ["on": true]) == [:]
                    && ask("POST", "/v1/network/changed") == [:])
            #expect(
                try ask("PUT", "/v1/interval", ["interval_ms": 120_000, "persist": true]) == [
                    "interval": "2m"
                ])
            #expect(try ask("PUT", "/v1/interval", ["interval_ms": -1]) == ["interval": "off"])
            #expect(try ask("PUT", "/v1/interval", ["interval_ms": 500])["error"]?["code"] == "out_of_range")
            #expect(try ask("PUT", "/v1/interval", ["interval_ms": .null]) == ["interval": "6s"])
            #expect(
                try ask("PUT", "/v1/log-level", ["level": "debug"]) == [:] && status()["log_level"] == "debug"
            )
            #expect(try ask("PUT", "/v1/country", ["code": "IT"]) == [:])
            #expect(
                try status()["overrides"] == [
                    ["setting": "country.code", "value": "\"IT\"", "origin": "command"]
                ])
            #expect(try ask("PUT", "/v1/country", ["code": "Italy"])["error"]?["code"] == "out_of_range")
            #expect(
                try ask("POST", "/v1/session", ["app": "shop"]) == [
                    "message": "sessions are automatic; nothing changed"
                ])
            #expect(try ask("PUT", "/v1/collection", ["enabled": false]) == ["discarded": 0, "in_flight": 0])
            #expect(try status()["collection_enabled"] == false)
            #expect(try ask("PUT", "/v1/collection", ["enabled": true]) == ["discarded": 0, "in_flight": 0])
            let file = "\(agent.directory)/spoolship.toml"
            try writeFile(
                file, readFile(file) + "\n[dispatch]\nbatch_events = 7\n[device]\nproperties = []\n")
            let change = "dispatch.batch_events { full = 50, max = 5000 } -> { full = 7, max = 5000 }"
            #expect(try ask("POST", "/v1/reload")["changed"]?.array?.first?.string == change)
            try writeFile(file, "[dispatch]\ninterval = 1\n")
            #expect(try ask("POST", "/v1/reload")["error"]?["code"] == "configuration")
        }
    }

    @Test("invalid requests are refused and change nothing")
    func nonsense() async throws {
        try await withAgent { (agent) async throws in
            for (method, path, body) in [
                ("PUT", "/v1/network", JSONValue.object([])), ("PUT", "/v1/network", ["on": "yes"]),
                ("POST", "/v1/pause", ["token": 5]), ("POST", "/v1/pause", ["ttl_ms": -1]),
                ("POST", "/v1/pause", ["ttl_ms": 0]), ("POST", "/v1/pause", ["token": ""]),
                ("POST", "/v1/pause", []),
                ("PUT", "/v1/interval", ["interval_ms": "2m"]), ("PUT", "/v1/log-level", ["level": "loud"]),
                ("POST", "/v1/queue/purge", ["priority": "high"]), ("POST", "/v1/queue/purge", ["ids": [1]]),
            ] {
                #expect(try agent.client.request(method, path, body: body).status == 400, "\(path) \(body)")
            }
            #expect(try agent.client.request("GET", "/v1/queue", query: [("limit", "0")]).status == 400)
            #expect(try agent.client.request("GET", "/v1/queue", query: [("limit", "many")]).status == 400)
            #expect(try agent.client.request("GET", "/v1/tap", query: [("priority", "high")]).status == 400)
            #expect(try agent.client.request("POST", "/v1/queue/retry").status == 405)
            let status = try agent.client.request("GET", "/v1/status").json()
            #expect(
                status["network_on"] == true && status["pause_tokens"] == [] && status["log_level"] == "error"
            )
        }
    }

    @Test("an unknown parameter is refused, because a misspelled filter would select everything")
    func unknownNames() async throws {
        try await withAgent { (agent) async throws in
            let client = agent.client
            #expect(try put("{\"name\":\"a\"}\nx\n", by: client)["read"] == 2)
            for (method, path, body) in [
                ("POST", "/v1/queue/purge", JSONValue.object([.init("idss", ["1"])])),
                ("POST", "/v1/queue/purge", ["destinations": "main"]),
                ("POST", "/v1/queue/purge", ["app": "shop"]),
                ("POST", "/v1/dead-letters/purge", ["priority": "normal"]),
                ("POST", "/v1/dead-letters/retry", ["priority": "normal"]),
                ("POST", "/v1/quarantine/purge", ["destination": "main"]),
                ("POST", "/v1/quarantine/retry", ["id": "1"]), ("POST", "/v1/pause", ["tokn": "t"]),
                ("POST", "/v1/resume", ["tokn": "t"]), ("POST", "/v1/reload", ["force": true]),
            ] {
                #expect(try client.request(method, path, body: body).status == 400, "\(path) \(body)")
            }
            for path in ["/v1/queue/purge", "/v1/dead-letters/purge", "/v1/quarantine/purge"] {
                // Where GET has it.
                #expect(
                    try client.request("POST", path, query: [("reason", "status")]).status == 400, "\(path)")
            }
            let asked = try client.request("GET", "/v1/queue", query: [("destinaton", "main")])
            #expect(asked.status == 400)
            #expect(
                try asked.json()["error"]?["message"]
                    == "the query of this request has no destinaton; it takes destination, priority, after, limit"
            )
            // None is not all.
            #expect(
                try client.request("POST", "/v1/quarantine/purge", body: ["ids": []]).json() == ["purged": 0])
            #expect(try client.request("POST", "/v1/quarantine/purge").json() == ["purged": 1])
        }
    }

    @Test("dispatch --wait and drain report progress, and end with their result")
    func reports() async throws {
        try await withAgent { (agent) async throws in
            let client = agent.client
            func lines(_ path: String, _ body: JSONValue) throws -> [JSONValue] {
                try client.request("POST", path, body: body).body.split(separator: UInt8(ascii: "\n"))
                    .map { try JSONValue(parsing: Array($0)) }
            }
            #expect(
                try lines("/v1/dispatch", ["wait": true]) == [
                    ["destination": "main", "outcome": "no_data", "reason": "empty", "waiting": 0],
                    ["exit_code": 0, "obstacles": [:], "waiting": 0],
                ])
            _ = try client.request("POST", "/v1/pause", body: ["token": "t"])
            #expect(try put("{\"name\":\"a\"}\n", by: client)["read"] == 1)
            #expect(
                try lines("/v1/drain", ["timeout_ms": 500]) == [
                    ["destination": "main", "outcome": "no_data", "reason": "paused", "waiting": .null],
                    ["exit_code": 75, "obstacles": ["main": "paused"], "waiting": .null],
                ])
            _ = try client.request("POST", "/v1/resume")
            let drained = try lines("/v1/drain", ["timeout_ms": 30_000])
            #expect(drained.last == ["exit_code": 0, "obstacles": [:], "waiting": 0])
            #expect(try readFile("\(agent.directory)/out.jsonl").hasPrefix("{\"name\":\"a\""))
            let refused = try client.request(
                "POST", "/v1/dispatch", body: ["wait": true, "destination": "nowhere"])
            #expect(try refused.json()["error"]?["status"] == 404)
        }
    }

    @Test("records are listed by pages, shown, exported, retried, moved and purged")
    func records() async throws {
        let other =
            "[[destination]]\nname = \"other\"\ntype = \"file\"\npath = \"DIRECTORY/b\"\nby_default = false\n"
        try await withAgent(other) { (agent) async throws in
            let client = agent.client
            _ = try client.request("POST", "/v1/pause")
            #expect(try put("{\"name\":\"a\"}\n{\"name\":\"b\"}\nx\ny\n", by: client)["read"] == 4)
            let query = [("destination", "main"), ("priority", "normal"), ("limit", "5")]
            let page = try client.request("GET", "/v1/queue", query: query).json()
            let id = try #require(page["records"]?.array?.first?["id"]?.string)
            #expect(page["records"]?.array?.count == 1 && page["next"] == .null)
            #expect(try client.request("GET", "/v1/queue/\(id)").json()["events"]?.array?.count == 2)
            #expect(
                try client.request("GET", "/v1/queue", query: [("priority", "critical")]).json()["records"]
                    == [])
            #expect(try client.request("GET", "/v1/dead-letters/42").status == 404)
            let exported = try client.request("GET", "/v1/queue/export").body.split(
                separator: UInt8(ascii: "\n"))
            #expect(exported.count == 3 && exported.last.map { Array($0) } == Array("{\"end\":true}".utf8))
            let first = try client.request("GET", "/v1/quarantine", query: [("limit", "1")]).json()
            #expect(first["records"]?.array?.first?["reason"] == "not_json" && first["next"]?.string != nil)
            #expect(try client.request("POST", "/v1/quarantine/retry").json() == ["retried": 2])
            #expect(
                try client.request("POST", "/v1/quarantine/retry", body: ["files": true]).json() == [
                    "retried": 0
                ])
            #expect(
                try client.request("POST", "/v1/quarantine/purge", body: ["app": "bank"]).json() == [
                    "purged": 0
                ])
            #expect(try put("z\n", by: client, [("from", "1:9")])["quarantined"] == 1)
            let kept = try client.request("GET", "/v1/quarantine").json()["records"]?.array ?? []
            let last = try #require(kept.last?["id"]?.string)
            for request in ["quarantine/retry", "quarantine/purge", "dead-letters/retry", "queue/purge"] {
                // An id is no filter: nothing is done for those that are there.
                let ids: JSONValue = request.hasPrefix("quarantine") ? [.string(last), "99"] : ["99"]
                let answer = try client.request("POST", "/v1/\(request)", body: ["ids": ids])
                #expect(answer.status == 404, "\(request)")
                #expect(
                    try answer.json()["error"]?["message"]?.string?.contains("no record 99") == true,
                    "\(request)")
            }
            #expect(try client.request("GET", "/v1/quarantine").json()["records"]?.array == kept)
            #expect(
                try client.request("POST", "/v1/quarantine/purge", body: ["ids": [.string(last)]]).json() == [
                    "purged": 1
                ])
            for wrong: JSONValue in [
                ["destination": .null], ["priority": .null], ["ids": .null], ["files": "yes"],
            ] {
                #expect(try client.request("POST", "/v1/queue/purge", body: wrong).status == 400, "\(wrong)")
                #expect(
                    try client.request("POST", "/v1/quarantine/retry", body: wrong).status == 400, "\(wrong)")
            }
            for body: JSONValue in [["reason": "x"], ["destination": "main", "app": "bank"]] {
                #expect(
                    try client.request("POST", "/v1/dead-letters/retry", body: body).json() == ["retried": 0])
            }
            func move(to target: String) throws -> JSONValue {
                let body: JSONValue = ["destination": "main", "to": .string(target)]
                return try client.request("POST", "/v1/queue/move", body: body).json()
            }
            #expect(try move(to: "nowhere")["error"]?["code"] == "unknown_destination")
            #expect(try move(to: "other") == ["moved": 2, "kept": 0])
            let purged = try client.request("POST", "/v1/queue/purge", body: ["destination": "other"])
            #expect(try purged.json() == ["purged": 2])
        }
    }

    @Test("erase searches the archive by what apps wrote, and names the files of others that it leaves alone")
    func erasureOfFiles() async throws {
        try await withAgent(
            "[apps.shop]\nread = [\"DIRECTORY/logs/*.log\"]\n"
        ) { (agent) async throws in
            let folder = "\(agent.directory)/spool/.spoolship/archive/2026-11-20/shop"
            var made = "\(agent.directory)/spool"
            for name in [".spoolship", "archive", "2026-11-20", "shop"] {
                made += "/\(name)"
                mkdir(made, 0o750)
            }
            let lines = [
                #"{"name":"a","properties":{"user":"4711"}}"#,
                #"{"name":"a","properties":{"user":"17","amount":4711}}"#,
                #"{"name":"a","properties":{"user":"4711","user":"17"}}"#,
                #"{"name":"a","properties":{"user":"\u0034711"}}"#,
                "4711 paid", "17 paid",
            ]
            try writeFile("\(folder)/app.jsonl", lines.map { $0 + "\n" }.joined())
            func erase(_ isTrial: JSONValue) throws -> JSONValue {
                try agent.client.request(
                    "POST", "/v1/erase",
                    body: ["where": "properties.user == '4711'", "dry_run": isTrial]
                ).json()
            }
            #expect(try erase(true)["archive"] == ["events": 4, "files": 1])
            let receipt = try erase(false)
            #expect(receipt["archive"] == ["events": 4, "files": 1] && receipt["complete"] == true)
            let left = try WholeFile.bytes(of: "\(folder)/app.jsonl", atMost: 1 << 20) ?? []
            #expect(String(decoding: left, as: UTF8.self) == "\(lines[1])\n\(lines[5])\n")
            let places = receipt["not_searched"]?.array?.compactMap(\.string) ?? []
            #expect(places.first == "0 files of apps in \(agent.directory)/spool (0 bytes)")
            #expect(places.last == "files that are read in place for shop: \(agent.directory)/logs/*.log")
            try writeFile("\(folder)/broken.jsonl.gz", "no gzip")
            #expect(try erase(true)["complete"] == false)
        }
    }

    @Test("erase counts, erases in every store and returns a receipt; a second run finds nothing")
    func erasure() async throws {
        try await withAgent { (agent) async throws in
            let client = agent.client
            _ = try client.request("POST", "/v1/pause")
            let lines =
                [4711, 17, 4711].map { #"{"name":"a","properties":{"user":"\#($0)"}}"# } + [
                    "{cut 4711", "{cut 17",
                ]
            #expect(try put(lines.map { $0 + "\n" }.joined(), by: client)["quarantined"] == 2)
            func erase(_ more: [JSONValue.Member] = []) throws -> JSONValue {
                let body = JSONValue.object([.init("where", "properties.user == '4711'")] + more)
                return try client.request("POST", "/v1/erase", body: body).json()
            }
            let trial = try erase([.init("dry_run", true)])
            #expect(trial["queue"]?["events"] == 2 && trial["quarantine"] == 1 && trial["dry_run"] == true)
            let receipt = try erase()
            #expect(receipt["queue"]?["deliveries"] == ["main": 2] && receipt["quarantine"] == 1)
            #expect(receipt["where"] == "properties.user == '4711'" && receipt["complete"] == true)
            #expect(receipt["began"]?.string?.hasSuffix("Z") == true && receipt["ended"] != nil)
            #expect(receipt["not_searched"]?.array?.count == 1)
            #expect(receipt["archive"] == ["events": 0, "files": 0])
            let second = try erase()
            #expect(second["queue"]?["events"] == 0 && second["quarantine"] == 0)
            let exported = try client.request("GET", "/v1/queue/export").body
            #expect(!String(decoding: exported, as: UTF8.self).contains("4711"))
            for wrong: JSONValue in [
                [:], ["where": 1], ["where": "properties.user = 1"], ["where": "x", "all": true],
            ] {
                #expect(try client.request("POST", "/v1/erase", body: wrong).status == 400, "\(wrong)")
            }
            #expect(
                try client.request("POST", "/v1/erase", body: ["where": "properties.n > 3"]).json()[
                    "not_searched"]?
                    .array?.count == 2)
        }
    }
}
