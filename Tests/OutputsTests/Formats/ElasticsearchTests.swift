import Model
import Receiver
import TestKit
import Testing

@testable import Outputs

@Suite("Format elasticsearch")
struct ElasticsearchTests {
    private let encoder = ElasticsearchEncoder(index: "events")

    @Test("an event is two lines: create with its id, and the event with its @timestamp")
    func body() throws {
        let lines = try encoded(encoder).split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.count == 5 && lines[4].isEmpty)
        #expect(
            lines[0] == #"{"create":{"_index":"events","_id":"web/0192f3a4-0000-7abc-8def-000000000001"}}"#)
        #expect(
            lines[1].hasPrefix(
                #"{"@timestamp":"2026-11-20T10:00:00.123Z","name":"Video clicked","timestamp""#))
        // An event without an id has its place in its batch.
        #expect(lines[2] == #"{"create":{"_index":"events","_id":"01930000-0000-7000-0000-000000000001-1"}}"#)
        #expect(lines[3].hasPrefix(#"{"@timestamp":"2026-11-20T10:00:02.000Z","name":"say \"hi\"\\""#))
        #expect(try encoded(ElasticsearchEncoder()).hasPrefix(#"{"create":{"_id":"#))
        let own = try encoded(encoder, #"{"name":"a","@timestamp":"x","timestamp":1700000000}"# + "\n")
        #expect(own.hasSuffix("\n" + #"{"name":"a","@timestamp":"x","timestamp":1700000000}"# + "\n"))
    }

    /// The document of one event under the names of the Elastic Common Schema.
    private func ecsDocument(_ event: String, of app: String = "") throws -> String {
        var header = header(events: 1)
        header.apps = [app]
        let body = try ElasticsearchEncoder(index: "a", ecs: true).encode(
            Array((event + "\n").utf8), of: header)
        return String(String(decoding: body, as: UTF8.self).split(separator: "\n")[1])
    }

    @Test("ecs: known members have the schema's names, with nanoseconds; all others are unchanged")
    func ecs() throws {
        let record =
            #"{"msg":"a","severity":"warn","timestamp":"2026-11-20T10:00:00.123456789Z","log.file.path":"/l","app":"web","host_name":"h","observed_at":"2026-11-20T10:00:01Z"}"#
        #expect(
            try ecsDocument(record)
                == #"{"@timestamp":"2026-11-20T10:00:00.123456789Z","ecs.version":"8.11","host.name":"h","service.name":"web","event.ingested":"2026-11-20T10:00:01Z","log.level":"warn","msg":"a","timestamp":"2026-11-20T10:00:00.123456789Z","log.file.path":"/l"}"#
        )
        #expect(
            ElasticsearchEncoder(ecs: true).traits.namesOwners && !ElasticsearchEncoder().traits.namesOwners)
        // The app that a record names is its own; a level of its own too.
        let other = try ecsDocument(#"{"level":"WARNING","app":"shop"}"#, of: "web")
        #expect(
            other
                == #"{"ecs.version":"8.11","service.name":"web","log.level":"warn","level":"WARNING","app":"shop"}"#
        )
    }

    @Test(
        "ecs: a name that would conflict with the event is not added, because Elasticsearch would refuse it"
    )
    func ecsConflicts() throws {
        let record =
            #"{"event":"started","host":{"name":"own"},"service":{"id":1},"log.level":"x","level":"info","app":"web","host_name":"h","observed_at":"2026-11-20T10:00:01Z","ecs":{"version":"1"}}"#
        #expect(
            try ecsDocument(record)
                == #"{"@timestamp":"2026-11-20T10:00:01.000Z","service.name":"web","event":"started","host":{"name":"own"},"service":{"id":1},"log.level":"x","level":"info","host_name":"h","observed_at":"2026-11-20T10:00:01Z","ecs":{"version":"1"}}"#
        )
    }

    @Test("without errors all events are acknowledged")
    func acknowledged() {
        let items = #"[{"create":{"status":201}},{"create":{"status":201}}]"#
        #expect(outcome(encoder, events: 2, #"{"took":3,"errors":false,"items":\#(items)}"#) == .acknowledged)
        #expect(outcome(encoder, events: 2, #"{"took":3,"errors":false}"#) == .acknowledged)
        #expect(outcome(encoder, events: 2, #"{"num_docs_for_processing":2}"#) == .acknowledged)
        #expect(outcome(encoder, events: 2, #"{"message":"ok","record_count":2}"#) == .acknowledged)
    }

    @Test("each item has its outcome: stored, already stored, retry, rejected")
    func items() {
        let answer = """
            {"took":1,"errors":true,"items":[{"create":{"_id":"a","status":201}},
            {"create":{"_id":"b","status":409,"error":{"type":"version_conflict_engine_exception","reason":"x"}}},
            {"create":{"_id":"c","status":429,"error":{"type":"es_rejected_execution_exception","reason":"y"}}},
            {"create":{"_id":"d","status":400,"error":{"type":"document_parsing_exception","reason":"[1:9] failed"}}},
            {"create":{"_id":"e","status":403,"error":{"type":"cluster_block_exception","reason":"z"}}}]}
            """
        guard case .partial(let rejected, let retry) = outcome(encoder, events: 5, answer) else {
            Issue.record("not partial")
            return
        }
        #expect(retry == [2, 4] && rejected.map(\.index) == [3])
        #expect(rejected.first?.failure.status == 400 && rejected.first?.failure.excerpt == "[1:9] failed")
        #expect(
            rejected.first?.failure.message == "the answer for an event was 400: document_parsing_exception")
    }

    @Test("an answer that claims no errors is judged by its items")
    func itemsAgainstTheWord() {
        let answer = """
            {"took":1,"errors":false,"items":[{"create":{"_id":"a","status":201}},
            {"create":{"_id":"b","status":429,"error":{"type":"es_rejected_execution_exception","reason":"y"}}},
            {"create":{"_id":"c","status":400,"error":{"type":"document_parsing_exception","reason":"x"}}},
            {"create":{"_id":"d"}},{"create":{"_id":"error","status":201,"error":null}}]}
            """
        guard case .partial(let rejected, let retry) = outcome(encoder, events: 5, answer) else {
            Issue.record("not partial")
            return
        }
        #expect(retry == [1] && rejected.map(\.index) == [2] && rejected.first?.failure.status == 400)
        let quiet = #"[{"create":{"_id":"error"}},{"create":{}}]"#
        #expect(outcome(encoder, events: 2, #"{"errors":false,"items":\#(quiet)}"#) == .acknowledged)
    }

    @Test("only known error types appear in messages, because another could quote an event")
    func knownErrorWords() {
        let answer =
            #"{"errors":true,"items":[{"create":{"status":201}},{"create":{"status":400,"error":{"type":"alice@example.com"}}}]}"#
        guard case .partial(let rejected, _) = outcome(encoder, events: 2, answer) else {
            Issue.record("not partial")
            return
        }
        #expect(rejected.first?.failure.message == "the answer for an event was 400: other")
    }

    @Test("if no event was stored, the batch as a whole waits or is held")
    func nothingTaken() {
        func answer(_ status: Int) -> String {
            #"{"errors":true,"items":[{"create":{"status":\#(status)}},{"create":{"status":\#(status)}}]}"#
        }
        guard case .retry = outcome(encoder, events: 2, answer(429)),
            case .held = outcome(encoder, events: 2, answer(404)),
            case .partial(let rejected, let retry) = outcome(encoder, events: 2, answer(400))
        else {
            Issue.record("wrong")
            return
        }
        #expect(rejected.count == 2 && retry.isEmpty)
    }

    @Test(
        "an unclear answer causes a retry, which is harmless",
        arguments: [
            #"{"errors":true,"items":[{"create":{"status":201}}]}"#, #"{"errors":true,"items":[{"cre"#,
            "", "{}", #"{"took":3,"errors":false,"items":[]}"#, #"{"num_docs_for_processing":1}"#,
            #"{"took":3,"errors":false,"items":[{"create":{"status":201}}]}"#, #"{"acknowledged":true}"#,
            #"{"errors":true}"#, "Please log in", "[]", "ok",
        ])
    func unreadable(answer: String) {
        guard case .retry(let failure) = outcome(encoder, events: 2, answer) else {
            Issue.record("not tried again")
            return
        }
        #expect(failure.kind == .protocolViolation)
    }

    @Test("a login page holds the destination, as in every format")
    func loginPage() {
        guard case .held(let failure) = outcome(encoder, events: 2, "<html>Please log in</html>") else {
            Issue.record("not held")
            return
        }
        #expect(failure.message.hasPrefix("this is a web page"))
    }

    @Test(
        "the answer to a large batch, which lists every event, is read to its end",
        arguments: [6_000, 20_000])
    func largeAnswers(events: Int) async throws {
        // What a data stream answers when a batch comes again: every event is there already.
        let index = ".ds-logs-shop-of-a-customer-default-2026.11.21-000001"
        let items = (0..<events).map { number in
            #"{"create":{"_index":"\#(index)","_id":"0192f3a4-0000-7abc-8def-\#(100_000_000_000 + number)","status":409,"error":"#
                + #"{"type":"version_conflict_engine_exception","reason":"[0192f3a4-0000-7abc-8def-\#(100_000_000_000 + number)]"#
                + #": version conflict, document already exists (current version [1])","index_uuid":"aAsFqTI0Tc2W0LCWgPNrOA","#
                + #""shard":"0","index":"\#(index)"}}}"#
        }
        let body = #"{"errors":true,"took":30,"items":["# + items.joined(separator: ",") + "]}"
        let bench = try Bench()
        let peer = try ScriptedPeer(bench.identity()) { connection in
            while connection.request() != nil {
                let head =
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n\r\n"
                guard connection.write(Array((head + body).utf8)) else { return }
            }
        }
        defer { peer.stop() }
        let output = try bench.output(to: peer.url, format: encoder)
        let batch = try Sample.batch(events)
        #expect(await output.send(batch) == .acknowledged)
        // Others have the ids of a batch that was never sent; one that was sent before has them itself.
        #expect(await output.measures.repeats == [batch.header.id: Array(0..<events)])
        let again = Batch(header: batch.header, parts: batch.parts, mayHaveBeenSent: true)
        #expect(await output.sendMeasured(again).measures.repeats[batch.header.id]?.count == events)
        #expect(await output.measures.repeats.isEmpty)
    }

    @Test("an answer beyond the limit splits the batch; each piece is judged, even with a long reason")
    func longReasons() async throws {
        let bench = try Bench()
        let reason = "Preview of field's value: '" + String(repeating: "v", count: 300_000) + "'"
        let bad =
            #"{"create":{"status":400,"error":{"type":"document_parsing_exception","reason":"\#(reason)"}}}"#
        let peer = try ScriptedPeer(bench.identity()) { connection in
            while let (_, body) = connection.request() {
                let events = body.count { $0 == UInt8(ascii: "\n") } / 2
                let items = (0..<events).map { $0 < 20 ? bad : #"{"create":{"status":201}}"# }
                let answer = #"{"errors":true,"items":[\#(items.joined(separator: ","))]}"#
                connection.write("HTTP/1.1 200 OK\r\nContent-Length: \(answer.utf8.count)\r\n\r\n\(answer)")
            }
        }
        defer { peer.stop() }
        let output = try bench.output(to: peer.url, format: encoder) { $0.compression = .none }
        guard case .rejected(let failure) = await output.send(try Sample.batch(120)),
            case .partial(let rejected, let retry) = await output.send(try Sample.batch(3, number: 2))
        else {
            Issue.record("neither split nor judged")
            return
        }
        let kept = (1 << 20) + 120 * 1024
        #expect(failure.message == "its answer was longer than \(kept) bytes: the agent stopped reading")
        #expect(rejected.map(\.index) == [0, 1, 2] && retry.isEmpty)
        #expect(rejected.first?.failure.excerpt.hasPrefix("Preview of field's value") == true)
    }

    @Test("other statuses have their meaning in the table")
    func statuses() {
        guard case .tooLarge = outcome(encoder, events: 2, status: 413, ""),
            case .held = outcome(encoder, events: 2, status: 401, #"{"error":{"type":"security_exception"}}"#)
        else {
            Issue.record("wrong")
            return
        }
    }
}

@Suite("Format loki")
struct LokiTests {
    @Test("a batch is one stream with its labels, each event a line with its time")
    func body() throws {
        let text = try encoded(LokiEncoder(labels: ["job": "shop", "env": "te\"st"], host: "web-1"))
        let stream = try #require(slice(text)?["streams"]?.elements?.first)
        #expect(stream["stream"]?.text == #"{"app":"web","env":"te\"st","job":"shop"}"#)
        let values = try #require(stream["values"]?.elements)
        #expect(values.count == 1 && values[0].elements?[0].string == "1795168800123000000")
        let lines = sampleLines.split(separator: "\n").map { String($0) }
        #expect(values[0].elements?[1].string == lines[0])
        #expect(
            values[0].elements?[2].text
                == #"{"event_id":"web/0192f3a4-0000-7abc-8def-000000000001","session_id":"0192f3a4-0000-7abc-8def-0123456789ab"}"#
        )
        // An event without an app is in a stream of its own.
        let other = try #require(slice(text)?["streams"]?.elements?.last)
        #expect(other["stream"]?.text == #"{"app":"none","env":"te\"st","job":"shop"}"#)
        #expect(other["values"]?.elements?.first?.elements?[0].string == "1795168802000000000")
        #expect(other["values"]?.elements?.first?.elements?[1].string == lines[1])
        let plain = try encoded(LokiEncoder(labels: ["app": ""], structuredMetadata: .none))
        #expect(plain.hasPrefix(#"{"streams":[{"stream":{"job":"spoolship"},"values":["#))
        #expect(
            slice(plain)?["streams"]?.elements?.first?["values"]?.elements?.map { $0.elements?.count } == [
                2, 2,
            ])
    }

    @Test("values of a label are limited, without losing events; the label app has any number of values")
    func manyApps() throws {
        let lines = (0..<400).map { #"{"name":"n\#($0)","app":"app\#($0)"}"# + "\n" }.joined()
        let encoder = LokiEncoder(labels: ["name": try Template("{name}", for: .label)])
        #expect(encoder.traits.namesOwners)
        let streams = try #require(slice(try encoded(encoder, lines))?["streams"]?.elements)
        #expect(streams.compactMap { $0["stream"]?["app"]?.string } == (0..<400).map { "app\($0)" })
        #expect(streams.count { $0["stream"]?["name"]?.string == "other" } == 200)
        let own = LokiEncoder(labels: ["app": try Template("{app}", for: .label)])
        let bounded = try #require(slice(try encoded(own, lines))?["streams"]?.elements)
        #expect(bounded.count == 201 && bounded.last?["stream"]?["app"]?.string == "other")
        #expect(bounded.reduce(0) { $0 + ($1["values"]?.elements?.count ?? 0) } == 400)
    }

    @Test(
        "configured members become structured metadata with valid names, except lists, objects and missing ones"
    )
    func structuredMetadata() throws {
        let members = ["trace_id", "http.status", "2xx", "list", "absent", "event_id", "Plan"]
        let line =
            #"{"trace_id":"t\n1","http":{"status":200},"2xx":true,"list":[1],"event_id":"forged","properties":{"Plan":"pro"},"app":"web","id":"1"}"#
        let text = try encoded(LokiEncoder(structuredMetadata: .members(members)), line + "\n")
        let entry = slice(text)?["streams"]?.elements?.first?["values"]?.elements?.first
        #expect(
            entry?.elements?[2].text
                == #"{"Plan":"pro","_2xx":"true","event_id":"web/1","http_status":"200","trace_id":"t\u000a1"}"#
        )
        let long = #"{"trace_id":"\#(String(repeating: "é", count: 600))","id":"1"}"# + "\n"
        let cut = slice(try encoded(LokiEncoder(structuredMetadata: .members(["trace_id"])), long))
        let value = cut?["streams"]?.elements?.first?["values"]?.elements?.first?.elements?[2]["trace_id"]?
            .string
        #expect(value == String(repeating: "é", count: 512))
    }
}

@Suite("Format splunk_hec")
struct SplunkTests {
    @Test("events are concatenated objects, with the time in seconds")
    func body() throws {
        let lines = try encoded(SplunkEncoder()).split(separator: "\n")
        #expect(
            lines.count == 2
                && lines[0].hasPrefix(#"{"time":1795168800.123,"event":{"name":"Video clicked","#))
        #expect(
            lines[1]
                == #"{"time":1795168802.000,"event":{"name":"say \"hi\"\\","observed_at":"2026-11-20T10:00:02.000Z"}}"#
        )
    }

    @Test("host, source, sourcetype and index are sent with each event")
    func metadata() throws {
        var settings = SplunkSettings()
        (settings.host, settings.source, settings.sourcetype) = ("web-1", "shop", "_json")
        settings.index = "main"
        let encoder = SplunkEncoder(settings)
        for line in try encoded(encoder).split(separator: "\n") {
            let event = try #require(slice(String(line)))
            #expect(event["host"]?.string == "web-1" && event["source"]?.string == "shop")
            #expect(event["sourcetype"]?.string == "_json" && event["index"]?.string == "main")
            #expect(event["event"]?.kind == .object)
        }
    }

    @Test(
        "host, source and source type can come from events; source is the file by default; members become fields"
    )
    func eventMetadata() throws {
        var settings = SplunkSettings()
        settings.host = try Template("{member:node}", for: .label)
        settings.sourcetype = try Template("log-{app}", for: .label)
        settings.fields = .members(["trace_id", "http.status", "list"])
        let lines =
            #"{"app":"web","node":"n1","log.file.path":"/var/log/web.log","trace_id":"t","http":{"status":200},"list":[],"level":"info"}"#
            + "\n" + #"{"app":"shop","log":{"file":{"path":"/l"}}}"# + "\n"
        let events = try encoded(SplunkEncoder(settings, host: "h"), lines).split(separator: "\n").map {
            slice(String($0))
        }
        #expect(events[0]?["host"]?.string == "n1" && events[1]?["host"]?.string == "none")
        #expect(events.map { $0?["sourcetype"]?.string } == ["log-web", "log-shop"])
        #expect(events.map { $0?["source"]?.string } == ["/var/log/web.log", "/l"])
        #expect(events[0]?["fields"]?.text == #"{"trace_id":"t","http.status":"200","level":"info"}"#)
        #expect(events[1]?["fields"] == nil)
        settings.source = "set"
        let set = try encoded(SplunkEncoder(settings), lines).split(separator: "\n").map { slice(String($0)) }
        #expect(set.map { $0?["source"]?.string } == ["set", "set"])
    }

    @Test("nanoseconds of a text line arrive")
    func nanoseconds() throws {
        func time(_ text: String) throws -> String? {
            slice(try encoded(SplunkEncoder(), #"{"timestamp":"\#(text)"}"# + "\n"))?["time"]?.text
        }
        #expect(try time("2026-11-20T10:00:00.123456789Z") == "1795168800.123456789")
        #expect(try time("2026-11-20T10:00:00.123456Z") == "1795168800.123456")
        #expect(try time("1969-12-31T23:59:59.5Z") == "-0.500")
    }

    @Test("with indexer acknowledgement, an answer without an ackId is no acknowledgement")
    func noAcknowledgementID() {
        let encoder = SplunkEncoder(channel: "11111111-2222-4333-8444-555555555555")
        for answer in ["", "{}", #"{"text":"Success","code":0}"#, #"{"ackId":"x"}"#] {
            guard case .held = outcome(encoder, events: 4, answer) else {
                Issue.record("\(answer) was taken for an acknowledgement")
                return
            }
        }
    }

    @Test("the event that the collector names is rejected, and those after it are sent again")
    func invalidEvent() {
        let answer = #"{"text":"Invalid data format","code":6,"invalid-event-number":1}"#
        guard
            case .partial(let rejected, let retry) = outcome(SplunkEncoder(), events: 4, status: 400, answer)
        else {
            Issue.record("not partial")
            return
        }
        #expect(rejected.map(\.index) == [1] && retry == [2, 3])
        #expect(outcome(SplunkEncoder(), events: 4, #"{"text":"Success","code":0}"#) == .acknowledged)
        for code in [7, 10, 11, 14] {
            guard case .held = outcome(SplunkEncoder(), events: 4, status: 400, "{\"code\":\(code)}") else {
                Issue.record("code \(code) was not held")
                return
            }
        }
        for body in [#"{"text":"No data","code":5}"#, #"{"invalid-event-number":9}"#, "x"] {
            guard case .rejected = outcome(SplunkEncoder(), events: 4, status: 400, body) else {
                Issue.record("\(body)")
                return
            }
        }
    }

    @Test("a status 200 with a failure code counts as that failure")
    func codesOfSuccess() {
        func means(_ body: String) -> Outcome { outcome(SplunkEncoder(), events: 4, body) }
        for body in ["", "ok", "{}", #"{"text":"Success","code":0}"#, #"{"code":"0"}"#] {
            #expect(means(body) == .acknowledged, "\(body)")
        }
        for code in ["8", "9", "18", "23", "99", "null", "\"x\""] {
            let failure = retried(means(#"{"text":"Server is busy","code":\#(code)}"#))
            #expect(failure?.status == 200, "\(code)")
            #expect(failure?.message.hasPrefix("answered 200, but the collector's code is ") == true)
        }
        for code in [1, 2, 3, 4, 7, 10, 17] { #expect(held(means("{\"code\":\(code)}")) != nil, "\(code)") }
        guard case .rejected = means(#"{"text":"No data","code":5}"#),
            case .partial(let rejected, let retry) = means(#"{"code":6,"invalid-event-number":1}"#)
        else {
            Issue.record("not bisected")
            return
        }
        #expect(rejected.map(\.index) == [1] && retry == [2, 3])
        let channel = SplunkEncoder(channel: "11111111-2222-4333-8444-555555555555")
        #expect(retried(outcome(channel, events: 4, #"{"code":9}"#)) != nil)
    }

    @Test(
        "acknowledgements are requested at the right address",
        arguments: [
            "https://h:8088/services/collector", "https://h:8088/services/collector/",
            "https://h:8088/services/collector/event", "https://h:8088/services/collector/event/1.0?x=1",
        ])
    func acknowledgementAddress(url: String) {
        #expect(SplunkEncoder.acknowledgementAddress(for: url) == "https://h:8088/services/collector/ack")
    }

    @Test(
        "with indexer acknowledgement a batch counts once it is indexed; if it never is, it is sent again",
        arguments: [true, false])
    func indexerAcknowledgement(comes: Bool) async throws {
        let bench = try Bench()
        let seen = Seen()
        let peer = try ScriptedPeer(bench.identity()) { connection in
            var asked = 0
            while let (head, body) = connection.request() {
                var answer = #"{"text":"Success","code":0,"ackId":7}"#
                seen.note(head)
                if head.hasPrefix("POST /services/collector/ack ") {
                    guard body == Array(#"{"acks":[7]}"#.utf8) else { return }
                    asked += 1
                    answer = #"{"acks":{"7":\#(comes && asked >= 2)}}"#
                }
                connection.write("HTTP/1.1 200 OK\r\nContent-Length: \(answer.utf8.count)\r\n\r\n\(answer)")
            }
        }
        defer { peer.stop() }
        let channel = "11111111-2222-4333-8444-555555555555"
        let output = try bench.output(
            to: "\(peer.url)services/collector/event", format: SplunkEncoder(channel: channel)
        ) {
            $0.requestTimeout = comes ? .seconds(30) : .seconds(1)
            $0.token.inline = Secret("t")
        }
        let outcome = await output.send(try Sample.batch(3))
        #expect(comes ? outcome == .acknowledged : retried(outcome)?.kind == .timeout)
        #expect(seen.all.count >= (comes ? 3 : 2))
        #expect(seen.all.allSatisfy { $0.contains("X-Splunk-Request-Channel: \(channel)\r\n") })
        #expect(seen.all.allSatisfy { $0.contains("Authorization: Splunk t\r\n") })
        // The next batch goes to the collector again, by the same handle.
        let before = seen.all.count
        _ = await output.send(try Sample.batch(3, number: 2))
        #expect(seen.all[before].hasPrefix("POST /services/collector/event "))
    }
}
