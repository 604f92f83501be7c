import Model
import TestKit
import Testing

@testable import Outputs

/// Members that the settings name for a message or a trace.
@Suite("Named members")
struct MessagePathTests {
    private static let trace = "0af7651916cd43dd8448eb211c80319c"
    private static let span = "b7b4180a9a8ff321"

    /// The settings of the app `shop`.
    private static func messages(_ paths: [String]) -> MessagePaths { MessagePaths(["shop": paths]) }

    /// An event as OTLP writes it.
    ///
    /// - Parameter app: the app that the batch's header names; empty for a batch of an older version.
    private func record(
        _ event: String, of app: String = "shop", messages: MessagePaths = MessagePaths(),
        _ change: (inout OTLPSettings) -> Void = { _ in }
    ) throws -> JSONSlice {
        var settings = OTLPSettings()
        change(&settings)
        var header = header(events: 1)
        header.apps = [app]
        let encoder = OTLPEncoder(.json, keys: OTLPKeys(settings), messages: messages)
        let body = try encoder.encode(Array("\(event)\n".utf8), of: header)
        let resource = slice(String(decoding: body, as: UTF8.self))?["resourceLogs"]?.elements?.first
        return try #require(resource?["scopeLogs"]?.elements?.first?["logRecords"]?.elements?.first)
    }

    private func body(_ record: JSONSlice) -> String? { record["body"]?["stringValue"]?.string }

    private func keys(_ record: JSONSlice) -> Set<String> {
        Set(record["attributes"]?.elements?.compactMap { $0["key"]?.string } ?? []).subtracting([
            "log.record.uid"
        ])
    }

    @Test(
        "the first text at the paths of the app is the body; a member of the whole name is no attribute",
        arguments: [
            // A member, also one whose name is escaped or has dots, and one that occurs twice.
            (["caption"], #""caption":"hello","msg":"x""#, ["msg"]),
            (["caption"], #""c\u0061ption":"hello","msg":"x""#, ["msg"]),
            (["caption"], #""caption":"first","caption":"hello""#, []),
            (["event.original"], #""event.original":"hello","message":"x""#, ["message"]),
            (["beschrift\u{FC}ng"], #""beschrift\u00fcng":"hello""#, []),
            // A path into objects, which stay attributes.
            (["event.original"], #""event":{"original":"hello"},"message":"x""#, ["event", "message"]),
            (["a.b.c"], #""a":{"b":{"\u0063":"hello"}}"#, ["a"]),
            (["a.b"], #""a":{"b":"x"},"a.b":"hello""#, ["a"]),
            // A path that leads nowhere, or to no text, is passed over.
            (["a.b", "c"], #""a":"x","c":"hello""#, ["a"]),
            (["a.b", "c"], #""a":{"b":7},"c":"hello""#, ["a"]),
            (["a", "b"], #""a":"","b":"hello""#, ["a"]),
            (["a", "b"], #""a":null,"msg":"hello""#, ["a"]),
            // Escapes in the text.
            (["a.b"], #""a":{"b":"h\u0065llo"}"#, ["a"]),
            // A name that loggers use, in another order.
            (["text"], #""message":"x","text":"hello""#, ["message"]),
        ] as [([String], String, Set<String>)])
    func bodies(paths: [String], members: String, attributes: Set<String>) throws {
        let event = #"{\#(members),"name":"log","host_name":"h"}"#
        let record = try record(event, messages: MessagePathTests.messages(paths))
        #expect(body(record) == "hello")
        #expect(keys(record) == attributes)
    }

    @Test("properties of events are looked into, too")
    func properties() throws {
        let messages = MessagePathTests.messages(["caption", "deep.text"])
        let whole = try record(
            #"{"name":"bought","properties":{"caption":"hello","n":1}}"#, messages: messages)
        #expect(body(whole) == "hello" && keys(whole) == ["n"])
        let nested = try record(
            #"{"name":"bought","deep":1,"properties":{"deep":{"text":"hello"}}}"#, messages: messages)
        #expect(body(nested) == "hello" && keys(nested) == ["deep", "member.deep"])
        #expect(body(try record(#"{"name":"bought","properties":{}}"#, messages: messages)) == "bought")
    }

    @Test("the setting of one app counts for no other; without the header's app the event's own counts")
    func apps() throws {
        let messages = MessagePathTests.messages(["caption"])
        let event = #"{"caption":"hello","msg":"usual","app":"shop","name":"log","host_name":"h"}"#
        #expect(body(try record(event, messages: messages)) == "hello")
        #expect(body(try record(event, of: "bank", messages: messages)) == "usual")
        #expect(body(try record(event, of: "", messages: messages)) == "hello")
    }

    @Test("what is taken from one event is not missing in the next")
    func nextEvent() throws {
        let lines =
            #"{"caption":"one","name":"log","host_name":"h"}"# + "\n"
            + #"{"caption":7,"msg":"two","name":"log","host_name":"h"}"# + "\n"
        var header = header(events: 2)
        header.apps = ["shop", "shop"]
        let encoder = OTLPEncoder(.json, messages: MessagePathTests.messages(["caption"]))
        let text = String(decoding: try encoder.encode(Array(lines.utf8), of: header), as: UTF8.self)
        let scope = slice(text)?["resourceLogs"]?.elements?.first?["scopeLogs"]?.elements?.first
        let records = try #require(scope?["logRecords"]?.elements)
        try #require(records.count == 2)
        #expect(body(records[0]) == "one" && keys(records[0]) == [])
        #expect(body(records[1]) == "two" && keys(records[1]) == ["caption"])
    }

    @Test("{{text:message}} and syslog's text are the message of the same paths")
    func otherFormats() throws {
        let line = #"{"name":"log","host_name":"h","msg":"usual","event":{"original":"a\"b"}}"#
        let messages = MessagePathTests.messages(["event.original"])
        var header = header(events: 2)
        header.apps = ["shop", "bank"]
        var template = BodySettings()
        template.event = try BodyTemplate("{{text:message}};")
        let bytes = try TemplateEncoder(template, messages: messages)
            .encode(Array("\(line)\n\(line)\n".utf8), of: header)
        #expect(String(decoding: bytes, as: UTF8.self) == #"a\"b;usual;"#)
        var syslog = SyslogSettings()
        syslog.message = .text
        let events = try EventView.all(Array("\(line)\n\(line)\n".utf8))
        let made = SyslogEncoder(syslog, host: "h", messages: messages).messages(events, of: header)
        let text = String(decoding: made.bytes, as: UTF8.self)
        #expect(text.contains(#"] a"b"#) && text.hasSuffix("] usual"), "\(text)")
    }

    @Test(
        "trace, span and flags are found at the paths of the settings, before the usual names",
        arguments: [
            #""ctx":{"trace":"T","span":"S","flags":"01"}"#,
            #""ctx.trace":"T","ctx.span":"S","ctx.flags":true"#,
            #""ctx":{"tr\u0061ce":"T"},"ctx.span":"S","ctx.flags":1"#,
            #""ctx":{"trace":"T","span":"S","flags":1},"span_id":"0000000000000001","trace_flags":0"#,
            // A path may lead to a whole traceparent.
            #""ctx":{"trace":"00-T-S-01"}"#,
            // What no path gives comes from the usual names.
            #""ctx":{"trace":"T"},"spanId":"S","trace_flags":"1""#,
            #""trace_id":"T","ctx":{"span":"S","flags":1}"#,
            #""ctx":{"trace":"12345"},"trace_id":"T","span_id":"S","trace_flags":1"#,
            #""traceparent":"00-T-0000000000000001-00","ctx":{"span":"S","flags":1}"#,
        ])
    func traces(members: String) throws {
        let text = members.replacingAll("-T-S-", with: "-\(MessagePathTests.trace)-\(MessagePathTests.span)-")
            .replacingAll("-T-", with: "-\(MessagePathTests.trace)-")
            .replacingAll(#""T""#, with: #""\#(MessagePathTests.trace)""#)
            .replacingAll(#""S""#, with: #""\#(MessagePathTests.span)""#)
        let record = try record(#"{"msg":"a","host_name":"h",\#(text)}"#) {
            $0.trace = TraceMembers()
            $0.trace?.id = ["nowhere", "ctx.trace"]
            $0.trace?.spanID = ["ctx.span"]
            $0.trace?.flags = ["ctx.flags"]
        }
        #expect(record["traceId"]?.string == MessagePathTests.trace, "\(members)")
        #expect(record["spanId"]?.string == MessagePathTests.span, "\(members)")
        #expect(record["flags"]?.integer == 1, "\(members)")
        // Other names of the span and the flags stay attributes, as does the object.
        #expect(keys(record).isSubset(of: ["ctx", "span_id", "trace_flags"]), "\(keys(record))")
    }
}
