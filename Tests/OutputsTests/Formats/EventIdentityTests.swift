import EventLoops
import Model
import Testing

@testable import Outputs

@Suite("The id by which receivers recognise repeats")
struct EventIdentityTests {
    private let batch = BatchID(high: 0x0193_0000_0000_7000, low: 1)

    private func key(_ line: String, in other: BatchID? = nil, at index: Int = 0) throws -> String {
        try #require(EventView(Array(line.utf8)[...])).stableID(in: other ?? batch, at: index)
    }

    @Test(
        "an app's id is unique within the app, and no other app can choose it",
        arguments: [
            #"{"app":"web","id":"order-1001"}"#, #"{"app":"shop","id":"order-1001"}"#,
            #"{"id":"order-1001"}"#,
            #"{"app":"web/order-1001","id":"x"}"#, #"{"app":"web","id":"order-1001/x"}"#,
            #"{"app":"web%2Forder-1001","id":"x"}"#,
            #"{"id":"web/order-1001"}"#, #"{"id":"/order-1001"}"#, #"{"app":"web"}"#,
            #"{"app":"web","id":"01930000-0000-7000-0000-000000000001-0"}"#,
        ])
    func apart(line: String) throws {
        let lines = [
            #"{"app":"web","id":"order-1001"}"#, #"{"app":"shop","id":"order-1001"}"#,
            #"{"id":"order-1001"}"#,
            #"{"app":"web/order-1001","id":"x"}"#, #"{"app":"web","id":"order-1001/x"}"#,
            #"{"app":"web%2Forder-1001","id":"x"}"#, #"{"id":"web/order-1001"}"#, #"{"id":"/order-1001"}"#,
            #"{"app":"web"}"#, #"{"app":"web","id":"01930000-0000-7000-0000-000000000001-0"}"#,
        ]
        let key = try key(line)
        #expect(try lines.filter { try self.key($0) == key } == [line])
    }

    @Test("a number is an id like a text, and stays the same after a split, in another batch or position")
    func numbers() throws {
        let other = BatchID(high: 0x0193_0000_0000_7000, low: 2)
        for line in [#"{"app":"web","id":42}"#, #"{"app":"web","id":"42"}"#] {
            #expect(try key(line) == "web/42" && key(line, in: other, at: 7) == "web/42")
        }
        #expect(try key(#"{"app":"web"}"#) != key(#"{"app":"web"}"#, in: other))
    }

    @Test("a record's id is the agent's, whatever members the record has")
    func ofRecords() throws {
        let own = "01930000-0000-7000-0000-000000000007"
        for (line, id) in [
            (#"{"app":"web","id":5,"record_id":"\#(own)"}"#, own),
            (#"{"app":"web","record_id":7,"id":"\#(own)"}"#, own),
            (#"{"app":"web","id":5,"record_id":7,"spoolship_id":"\#(own)"}"#, own),
            (#"{"app":"web","name":"Order changed","id":"order-1","record_id":42}"#, "order-1"),
        ] {
            #expect(try key(line) == "web/\(id)", "\(line)")
        }
        let line =
            #"{"name":"log","app":"audit","record_id":7,"id":"\#(own)","timestamp":"2026-11-20T10:00:00Z"}"#
            + "\n"
        #expect(
            try encoded(OTLPEncoder(.json), line).contains(#"{"key":"record_id","value":{"intValue":"7"}}"#))
    }

    @Test("a reserved name with a value of another type is data: OTLP sends it as an attribute")
    func otherKinds() throws {
        let line =
            #"{"name":{"a":1},"app":"web","device":"eth0","type":{"b":2},"timestamp":"soon","id":"i"}"# + "\n"
        let body = try encoded(OTLPEncoder(.json), line)
        for name in ["name", "device", "type", "timestamp"] {
            #expect(body.contains("{\"key\":\"\(name)\",\"value\""), "\(name): \(body)")
        }
    }

    @Test("a key that is too long for a receiver is replaced by its hash, different for each id")
    func long() throws {
        let long = String(repeating: "x", count: 600)
        let first = try key(#"{"app":"web","id":"\#(long)"}"#)
        #expect(try first.utf8.count == 64 && first != key(#"{"app":"shop","id":"\#(long)"}"#))
    }

    @Test("all formats send the same key")
    func oneRule() throws {
        let line = #"{"name":"a","app":"web","id":42,"timestamp":"2026-11-20T10:00:00Z"}"# + "\n"
        #expect(try encoded(ElasticsearchEncoder(), line).contains(#""_id":"web/42""#))
        #expect(try encoded(LokiEncoder(), line).contains(#""event_id":"web/42""#))
        #expect(
            try encoded(OTLPEncoder(.json), line).contains(
                #"{"key":"log.record.uid","value":{"stringValue":"web/42"}}"#))
        #expect(try encoded(AppCenterEncoder(installID: "i"), line).contains(AppCenterEncoder.uuid("web/42")))
    }
}
