import EventLoops
import Foundation
import Model
import Receiver
import TestKit
import Testing

@testable import Outputs

/// ClickHouse's engine (chdb) behind a small HTTP server: see Fixtures/clickhouse_server.py.
@Suite("ClickHouse")
struct ClickHouseTests {
    private struct Stage {
        let bench: Bench
        let server: PythonServer

        init(_ words: String...) async throws {
            bench = try Bench()
            let file = "\(bench.directory.path)/port"
            let password = "\(bench.directory.path)/password"
            try PrivateFile.replace(password, with: "secret")
            server = try await PythonServer(
                "clickhouse_server.py",
                [
                    "\(bench.directory.path)/tables", "--ready", file, "--user", "me", "--password-file",
                    password,
                ]
                    + words,
                portFile: file)
        }

        func query(_ text: String) async throws -> String {
            let options = HTTPOptions(url: "http://127.0.0.1:\(server.port)/")
            let client = try HTTPClient(
                on: bench.loop,
                settings: TransferSettings(
                    options: options, tls: try TLSMaterial(options.settings.tls).contents)
            )
            let request = HTTPRequest(
                url: options.url, headers: ["X-ClickHouse-User: me", "X-ClickHouse-Key: secret"],
                body: Array(text.utf8),
                answerLimit: 1 << 20)
            guard case .answered(let answer) = await client.perform(request), answer.status == 200 else {
                throw Refused(query: text)
            }
            return String(decoding: answer.body, as: UTF8.self)
        }

        struct Refused: Error { var query: String }

        func make(_ table: String, _ settings: String = "non_replicated_deduplication_window = 100")
            async throws
        {
            _ = try await query(
                "CREATE TABLE \(table) (name String, n UInt16) ENGINE = MergeTree ORDER BY name SETTINGS \(settings)"
            )
        }

        func output(
            _ insert: String = "INSERT%20INTO%20events%20FORMAT%20JSONEachRow", password: String = "secret",
            _ change: (inout DestinationSettings) -> Void = { _ in }
        ) throws -> HTTPOutput {
            try bench.output(to: "http://127.0.0.1:\(server.port)/?query=\(insert)") {
                $0.logIn("me", .inline(Secret(password)))
                $0.http.batchIDParameter = "insert_deduplication_token"
                change(&$0)
            }
        }
    }

    @Test("check compares the columns of the table with the format, and writes nothing")
    func columns() async throws {
        let stage = try await Stage()
        try await stage.make("events")
        func probe(_ query: String, password: String = "secret") async throws -> TableComparison {
            let output = try stage.bench.output(to: "http://127.0.0.1:\(stage.server.port)/?query=\(query)") {
                $0.logIn("me", .inline(Secret(password)))
            }
            return await output.compareTable(with: ["name", "timestamp", "n", "id"])
        }
        let insert = "INSERT%20INTO%20events%20FORMAT%20JSONEachRow"
        #expect(
            try await probe(insert)
                == .columns(table: "events", missing: ["timestamp", "id"], isRefused: true))
        #expect(
            try await probe("insert+into+table+events+format+JSONEachRow&input_format_skip_unknown_fields=1")
                == .columns(table: "events", missing: ["timestamp", "id"], isRefused: false))
        for other in [
            "SELECT%201", "INSERT%20INTO%20events%20(name)%20FORMAT%20JSONEachRow",
            "INSERT%20INTO%20a;b%20FORMAT%20JSONEachRow",
        ] {
            #expect(try await probe(other) == .notClickHouse, "\(other)")
        }
        for (query, password) in [
            (insert, "wrong"), ("INSERT%20INTO%20none%20FORMAT%20JSONEachRow", "secret"),
        ] {
            guard case .failed(let failure) = try await probe(query, password: password) else {
                Issue.record("\(query)")
                continue
            }
            #expect(failure.message.hasPrefix("DESCRIBE TABLE"), "\(failure.message)")
        }
        #expect(try await stage.query("SELECT count() FROM events FORMAT TSV") == "0\n")
    }

    @Test(
        "asynchronous inserts, which ignore the token, are recognised by the address, or by the server's default"
    )
    func asynchronous() async throws {
        let stage = try await Stage()
        try await stage.make("events")
        let insert = "INSERT%20INTO%20events%20FORMAT%20JSONEachRow"
        #expect(await (try stage.output(insert + "&async_insert=1")).insertsAsynchronously() == true)
        #expect(await (try stage.output(insert + "&async_insert=0")).insertsAsynchronously() == false)
        #expect(await (try stage.output("SELECT%201&async_insert=1")).insertsAsynchronously() == false)
        let stranger = try stage.output(password: "wrong")
        #expect(await stranger.insertsAsynchronously() == nil, "the server does not tell")
        let standard = try await stage.query("SELECT toString(getSetting('async_insert'))")
        #expect(
            await (try stage.output()).insertsAsynchronously() == (standard != "0\n" && standard != "false\n")
        )
    }

    @Test("a batch that is sent twice is stored once; the same events in another batch are stored again")
    func repeats() async throws {
        let stage = try await Stage()
        try await stage.make("events")
        let output = try stage.output()
        for number: UInt64 in [1, 1, 2, 1, 2] {
            #expect(await output.send(try Sample.batch(50, number: number)) == .acknowledged)
        }
        #expect(try await stage.query("SELECT count() FROM events") == "100\n")
    }

    @Test("the documented table and address keep the content of events, above all their time")
    func documentedTable() async throws {
        let page = try String(contentsOfFile: "\(GoldenFile.root)/docs/destinations.md", encoding: .utf8)
        let start = try #require(page.range(of: "CREATE TABLE events"))
        let end = try #require(page.range(of: ";", range: start.lowerBound..<page.endIndex))
        let address = try #require(page.range(of: "https://clickhouse.example.com:8443/?query="))
        let query = page[address.upperBound...].prefix { $0 != "\"" }
        let stage = try await Stage()
        _ = try await stage.query(String(page[start.lowerBound..<end.lowerBound]))
        let lines = [
            #"{"name":"a","timestamp":"2026-11-20T10:00:00.123Z","app":"shop","observed_at":"2026-11-20T10:00:01.000Z","id":"1"}"#,
            #"{"name":"b","properties":{"x":1},"app":"shop","observed_at":"2026-11-20T10:00:02.000Z","id":"2"}"#,
        ]
        let text = Array(lines.map { $0 + "\n" }.joined().utf8)
        let part = Batch.Part(
            compression: .none, frame: text, bytes: text.count, eventsInFrame: 2, events: 0..<2)
        #expect(await (try stage.output(String(query))).send(Sample.batch([part])) == .acknowledged)
        let rows = try await stage.query(
            "SELECT name, toUnixTimestamp64Milli(timestamp), app, properties FROM events ORDER BY id FORMAT CSV"
        )
        #expect(
            rows == "\"a\",1795168800123,\"shop\",\"\"\n\"b\",1795168802000,\"shop\",\"{\"\"x\"\":1}\"\n",
            "\(rows)")
    }

    @Test(
        "a wrong query, a missing table and a wrong password hold the destination; no event is blamed",
        arguments: [
            ("INSRT%20INTO%20events%20FORMAT%20JSONEachRow", "secret", "SYNTAX_ERROR (62)"),
            (
                "INSERT%20INTO%20events%20(name,m)%20FORMAT%20JSONEachRow", "secret",
                "NO_SUCH_COLUMN_IN_TABLE (16)"
            ),
            ("INSERT%20INTO%20events%20FORMAT%20JSONEachRaw", "secret", "UNKNOWN_FORMAT (73)"),
            ("INSERT%20INTO%20event%20FORMAT%20JSONEachRow", "secret", "UNKNOWN_TABLE (60)"),
            ("INSERT%20INTO%20shop.events%20FORMAT%20JSONEachRow", "secret", "UNKNOWN_DATABASE (81)"),
            (
                "INSERT%20INTO%20events%20FORMAT%20JSONEachRow&no_such_setting=1", "secret",
                "UNKNOWN_SETTING (115)"
            ),
            ("INSERT%20INTO%20events%20FORMAT%20JSONEachRow", "wrong", "AUTHENTICATION_FAILED (516)"),
        ])
    func holds(insert: String, password: String, words: String) async throws {
        let stage = try await Stage()
        try await stage.make("events")
        let outcome = await (try stage.output(insert, password: password)).send(try Sample.batch(3))
        guard case .held(let failure) = outcome else {
            Issue.record("not held: \(outcome)")
            return
        }
        #expect(failure.message.contains(words), "\(failure.message)")
    }

    @Test("a row that the table rejects is searched for; the table's message appears in the excerpt only")
    func badRows() async throws {
        let stage = try await Stage()
        try await stage.make("events")
        let output = try stage.output()
        let lines =
            Array(#"{"name":"a","n":1}"#.utf8) + [10] + Array(#"{"name":"b","n":"private"}"#.utf8) + [10]
        let part = Batch.Part(
            compression: .none, frame: lines, bytes: lines.count, eventsInFrame: 2, events: 0..<2)
        let outcome = await output.send(Sample.batch([part]))
        guard case .rejected(let failure) = outcome else {
            Issue.record("not rejected: \(outcome)")
            return
        }
        #expect(failure.message.contains("the table rejects"), "\(failure.message)")
        #expect(!failure.message.contains("private") && !failure.excerpt.isEmpty)
        #expect(try await stage.query("SELECT count() FROM events") == "0\n")
    }

    @Test("a table with too many parts is retried, and no event is blamed")
    func tooManyParts() async throws {
        let stage = try await Stage()
        try await stage.make("events", "parts_to_delay_insert = 1, parts_to_throw_insert = 1")
        _ = try await stage.query("SYSTEM STOP MERGES events")
        let output = try stage.output()
        #expect(await output.send(try Sample.batch(3, number: 1)) == .acknowledged)
        var outcome = Outcome.acknowledged
        for number: UInt64 in 2...4 where outcome == .acknowledged {
            outcome = await output.send(try Sample.batch(3, number: number))
        }
        let failure = retried(outcome)
        #expect(failure?.message.contains("TOO_MANY_PARTS (252)") == true, "\(outcome)")
    }

    @Test("the names of error codes are those of ClickHouse")
    func names() async throws {
        let stage = try await Stage()
        let codes = ClickHouseError.all.keys.sorted()
        let list = codes.map(String.init).joined(separator: ", ")
        let names = try await stage.query("SELECT errorCodeToName(arrayJoin([\(list)]))").split(
            separator: "\n"
        ).map(
            String.init)
        #expect(names == codes.compactMap { ClickHouseError.all[$0]?.name })
    }

    @Test("an error is no acknowledgement, whatever the status; a setting for a status overrides it")
    func precedence() {
        func outcome(_ status: Int, _ code: String, _ overrides: [String: AnswerMeaning] = [:]) -> Outcome {
            AnswerReader(table: AnswerTable(overrides), encoder: NDJSONEncoder()).outcome(
                of: HTTPAnswer(status: status, clickHouseCode: code), for: Sample.batch([]).header,
                wireBytes: 1,
                now: Timestamp(milliseconds: 0)
            ) { () throws(OutputError) in [] }
        }
        for code in ["1", "99999", "", "nonsense", "99999999999999999999", "-1", "252"] {
            #expect(retried(outcome(200, code)) != nil, "\(code)")
        }
        for (code, meaning) in [
            ("1", "rejected"), ("62", "held"), ("26", "rejected"), ("252", "retry"), ("516", "held"),
        ] {
            #expect("\(outcome(400, code))".hasPrefix(meaning), "\(code)")
        }
        #expect("\(outcome(500, "252", ["500": .bisect]))".hasPrefix("rejected"))
        #expect("\(outcome(500, "26"))".hasPrefix("rejected"))
    }
}
