import Configuration
import EventLoops
import Foundation
import Model
import Outputs
import TestKit
import Testing

@Suite("docs/http-services.md")
struct ServicePageTests {
    private static let lines =
        #"{"name":"Order placed","message":"say \"hi\"","timestamp":"2026-11-20T10:00:00.123Z","level":"info","app":"shop","host_name":"h","id":"1"}"#
        + "\n" + #"{"name":"log","app":"shop","host_name":"h","id":"2"}"# + "\n"

    /// The page's examples.
    private func examples() throws -> [String] {
        let page = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../docs/http-services.md").standardized
        let parts = try String(contentsOf: page, encoding: .utf8).components(separatedBy: "```toml\n")
            .dropFirst()
        return parts.compactMap { $0.components(separatedBy: "```").first }
    }

    @Test("no example needs more than ten keys")
    func lengths() throws {
        let examples = try examples()
        #expect(!examples.isEmpty)
        for example in examples {
            let keys = example.split(separator: "\n").filter { $0.contains(" = ") }
            #expect(keys.count <= 10, "\(example)")
        }
    }

    /// The destination of the page's example of that name.
    private func destination(_ name: String) throws -> DestinationSettings {
        let text = try #require(examples().first { $0.contains("name = \"\(name)\"") })
        let loaded = try Settings.read([ConfigurationText(file: "page.toml", text: text)])
        // The page shows one destination of several.
        let warnings = loaded.warnings.map(\.message).filter {
            !$0.contains("by_default is false everywhere")
        }
        #expect(warnings.isEmpty, "\(warnings)")
        return try #require(loaded.settings.destinations.first)
    }

    /// The body of a request with so many of the events.
    private func body(_ name: String, _ events: Int = 2) throws -> JSONValue {
        let destination = try destination(name)
        let encoder = try destination.encoder(destination.http, installID: nil, hostName: "h", version: "1")
        let now = Timestamp(milliseconds: 1_795_168_800_000)
        let lines = ServicePageTests.lines.split(separator: "\n").prefix(events).map { $0 + "\n" }.joined()
        let header = BatchHeader(
            id: BatchID(high: 1, low: 1), destination: "a", priority: .normal, events: events,
            bytes: lines.utf8.count,
            acceptedAt: now, firstEventTime: now)
        return try JSONValue(
            parsing: String(decoding: try encoder.encode(Array(lines.utf8), of: header), as: UTF8.self))
    }

    private func elements(_ value: JSONValue?) throws -> [JSONValue] {
        guard case .array(let elements) = value else {
            Issue.record("no list: \(String(describing: value))")
            return []
        }
        return elements
    }

    private func decoded(_ value: JSONValue?) throws -> JSONValue {
        let data = try #require(Data(base64Encoded: value?.string ?? ""))
        return try JSONValue(parsing: String(decoding: data, as: UTF8.self))
    }

    @Test("Pub/Sub: at most 1,000 messages, each with data in Base64 and attributes that are texts")
    func pubsub() throws {
        let messages = try elements(body("pubsub")["messages"])
        #expect(try messages.map { try decoded($0["data"])["id"]?.string } == ["1", "2"])
        #expect(messages.map { $0["attributes"]?["event_id"]?.string } == ["shop/1", "shop/2"])
        #expect(try destination("pubsub").own.batchMostEvents == 1000)
    }

    @Test("Pub/Sub: tokens come from a service account's key")
    func googleTokens() throws {
        let oauth2 = try destination("pubsub").oauth2
        #expect(oauth2.grant == .jwtBearer && oauth2.missing.isEmpty)
    }

    @Test("Azure Blob: a PUT of a block blob with a line for each event, under an address of its own")
    func azure() throws {
        let destination = try destination("azure")
        let http = destination.http
        let method: BodySettings.Method? =
            if case .template(let body) = http.format { body.method } else { nil }
        #expect(method == .put)
        #expect(destination.headers["x-ms-blob-type"]?.revealed == "BlockBlob")
        #expect(http.tokenIn == .query)
        #expect(destination.url?.text.contains("/{batch_id}.") == true)
        let encoder = try destination.encoder(destination.http, installID: nil, hostName: "h", version: "1")
        let now = Timestamp(milliseconds: 1_795_168_800_000)
        let header = BatchHeader(
            id: BatchID(high: 1, low: 1), destination: "a", priority: .normal, events: 2,
            bytes: ServicePageTests.lines.utf8.count, acceptedAt: now, firstEventTime: now)
        let body = String(
            decoding: try encoder.encode(Array(ServicePageTests.lines.utf8), of: header), as: UTF8.self)
        let lines = body.split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.count == 3 && lines[2].isEmpty)
        #expect(try lines.prefix(2).map { try JSONValue(parsing: String($0))["id"]?.string } == ["1", "2"])
    }

    @Test(
        "Kinesis and Firehose: at most 500 records in Base64; a failed record is in the answer",
        arguments: ["kinesis", "firehose"])
    func amazon(name: String) throws {
        let body = try body(name)
        let records = try elements(body["Records"])
        #expect(try records.map { try decoded($0["Data"])["id"]?.string } == ["1", "2"])
        #expect(body[name == "kinesis" ? "StreamName" : "DeliveryStreamName"]?.string == "events")
        if name == "kinesis" {
            #expect(records.allSatisfy { (1...256).contains($0["PartitionKey"]?.string?.count ?? 0) })
        }
        let destination = try destination(name)
        #expect(destination.own.batchMostEvents == 500)
        #expect(destination.http.accept.body?.contains("Failed") == true)
        #expect(destination.http.aws.service == name)
        #expect(destination.headers["Content-Type"]?.revealed == "application/x-amz-json-1.1")
    }

    @Test("Slack: an object with text, one a request")
    func slack() throws {
        #expect(try body("slack", 1)["text"]?.string == #"shop on h: Order placed say "hi""#)
        #expect(try destination("slack").own.batchMostEvents == 1)
    }

    @Test("Datadog: a list of at most 1,000 objects, answered by 202")
    func datadog() throws {
        let logs = try elements(body("datadog"))
        #expect(
            logs.count == 2 && logs[0]["message"]?.string == #"say "hi""#
                && logs[0]["service"]?.string == "shop")
        #expect(logs[0]["timestamp"]?.integer == 1_795_168_800_123 && logs[0]["event"]?["id"]?.string == "1")
        #expect(try destination("datadog").http.accept.statuses == [202])
    }

    @Test("Honeycomb: a list of objects with a time and data")
    func honeycomb() throws {
        let events = try elements(body("honeycomb"))
        #expect(events.map { $0["data"]?["id"]?.string } == ["1", "2"])
        #expect(events[0]["time"]?.string == "2026-11-20T10:00:00.123Z")
    }

    @Test("GELF: version, host and short message; further names begin with _; one object for each request")
    func gelf() throws {
        guard case .object(let members) = try body("graylog", 1) else {
            Issue.record("no object")
            return
        }
        let known = ["version", "host", "short_message", "timestamp"]
        #expect(members.allSatisfy { known.contains($0.key) || $0.key.hasPrefix("_") && $0.key != "_id" })
        let body = try body("graylog", 1)
        #expect(body["version"]?.string == "1.1" && body["host"]?.string == "h")
        #expect(body["short_message"]?.string == #"Order placed say "hi""#)
        #expect(try destination("graylog").own.batchMostEvents == 1)
    }

    @Test("PostgREST: a list of objects with the same keys")
    func postgrest() throws {
        let rows = try elements(body("postgrest"))
        #expect(rows.map { $0["id"]?.string } == ["shop/1", "shop/2"])
        for row in rows {
            guard case .object(let members) = row else { continue }
            #expect(members.map(\.key) == ["id", "at", "app", "name", "event"])
        }
    }
}
