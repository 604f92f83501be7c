import EventLoops
import Model
import TestKit
import Testing

@testable import Outputs

@Suite("Format otlp")
struct OTLPTests {
    @Test("a whole number beyond 64 bits is sent as text with all its digits")
    func largeNumbers() throws {
        let line =
            #"{"msg":"a","order":12345678901234567891,"least":-9223372036854775808,"ratio":1e3}"# + "\n"
        let body = try encoded(OTLPEncoder(.json), line)
        #expect(body.contains(#"{"key":"order","value":{"stringValue":"12345678901234567891"}}"#))
        #expect(body.contains(#"{"key":"least","value":{"intValue":"-9223372036854775808"}}"#))
        #expect(body.contains(#"{"key":"ratio","value":{"doubleValue":1000.0}}"#))
    }

    @Test("JSON: a resource for each source, a record for each event, typed values")
    func json() throws {
        let text = try encoded(OTLPEncoder(.json, version: "1.2"))
        let groups = try #require(slice(text)?["resourceLogs"]?.elements)
        #expect(groups.count == 2)
        let resource = try #require(groups[0]["resource"]?["attributes"]?.elements)
        #expect(resource.first?.text == #"{"key":"service.name","value":{"stringValue":"web"}}"#)
        #expect(
            resource.contains { $0.text == #"{"key":"device.time_zone_offset","value":{"intValue":"60"}}"# })
        let scope = try #require(groups[0]["scopeLogs"]?.elements?.first)
        #expect(scope["scope"]?.text == #"{"name":"spoolship","version":"1.2"}"#)
        let record = try #require(scope["logRecords"]?.elements?.first)
        #expect(record["timeUnixNano"]?.string == "1795168800123000000")
        #expect(record["observedTimeUnixNano"]?.string == "1795168801000000000")
        #expect(
            record["eventName"]?.string == "Video clicked"
                && record["body"]?["stringValue"]?.string == "Video clicked")
        var attributes: [String: String] = [:]
        for attribute in record["attributes"]?.elements ?? [] {
            attributes[attribute["key"]?.string ?? ""] = attribute["value"]?.text
        }
        #expect(
            attributes == [
                "Category": #"{"stringValue":"Music"}"#, "Count": #"{"intValue":"3"}"#,
                "Ratio": #"{"doubleValue":0.5}"#,
                "Paid": #"{"boolValue":true}"#, "At": #"{"stringValue":"2026-11-20T09:00:00Z"}"#,
                "None": "{}",
                "Tags": #"{"arrayValue":{"values":[{"intValue":"1"},{"stringValue":"two"}]}}"#,
                "session.id": #"{"stringValue":"0192f3a4-0000-7abc-8def-0123456789ab"}"#,
                "geo.country.iso_code": #"{"stringValue":"IT"}"#,
                "log.record.uid": #"{"stringValue":"web/0192f3a4-0000-7abc-8def-000000000001"}"#,
            ])
    }

    @Test("protobuf: the bytes equal those of protoc")
    func protobuf() throws {
        let line =
            #"{"name":"a","timestamp":1700000000,"observed_at":"2023-11-14T22:13:20Z","properties":{"n":-1},"id":"x"}"#
            + "\n"
        let bytes = try OTLPEncoder().encode(Array(line.utf8), of: header(events: 1))
        // Written by hand from the field numbers of logs.proto.
        let nanoseconds = UInt64(1_700_000_000_000_000_000)
        let fixed = (0..<8).map { UInt8(truncatingIfNeeded: nanoseconds >> (8 * UInt64($0))) }
        let minusOne: [UInt8] = [0x18] + [UInt8](repeating: 0xFF, count: 9) + [0x01]
        let attribute: [UInt8] = [0x0A, 1, UInt8(ascii: "n"), 0x12, 11] + minusOne
        let uid: [UInt8] = [0x0A, 14] + Array("log.record.uid".utf8) + [0x12, 4, 0x0A, 2] + Array("/x".utf8)
        var record: [UInt8] = [0x09] + fixed + [0x2A, 3, 0x0A, 1, UInt8(ascii: "a")]
        record += [0x32, UInt8(uid.count)] + uid + [0x32, UInt8(attribute.count)] + attribute
        record += [0x59] + fixed + [0x62, 1, UInt8(ascii: "a")]
        let scope: [UInt8] = [0x0A, 11, 0x0A, 9] + Array("spoolship".utf8)
        let scopeLogs = scope + [0x12, UInt8(record.count)] + record
        let schema = Array("https://opentelemetry.io/schemas/1.28.0".utf8)
        let resourceLogs: [UInt8] =
            [0x0A, 0, 0x12, UInt8(scopeLogs.count)] + scopeLogs + [0x1A, UInt8(schema.count)] + schema
        // Lengths of 128 and more take two bytes.
        func length(_ count: Int) -> [UInt8] {
            count < 128 ? [UInt8(count)] : [UInt8(count & 127) | 128, UInt8(count >> 7)]
        }
        #expect(record.count < 128 && scopeLogs.count < 128)
        #expect(bytes == [0x0A] + length(resourceLogs.count) + resourceLogs)
    }

    @Test("a partial success counts as acknowledged and is not repeated; if all are rejected, each event is")
    func partialSuccess() {
        let json = OTLPEncoder(.json)
        #expect(outcome(json, events: 2, "{}") == .acknowledged)
        #expect(
            outcome(json, events: 2, #"{"partialSuccess":{"errorMessage":"slow down"}}"#) == .acknowledged)
        guard
            case .acknowledgedWithLoss(let count, let failure) = outcome(
                json, events: 3, #"{"partialSuccess":{"rejectedLogRecords":"2","errorMessage":"too old"}}"#)
        else {
            Issue.record("not acknowledged")
            return
        }
        #expect(
            count == 2 && failure.message == "2 of 3 events were rejected" && failure.excerpt == "too old")
        guard
            case .partial(let rejected, let retry) = outcome(
                json, events: 2, #"{"partialSuccess":{"rejectedLogRecords":2}}"#)
        else {
            Issue.record("not all rejected")
            return
        }
        #expect(rejected.map(\.index) == [0, 1] && retry.isEmpty && rejected.allSatisfy(\.isFinal))
        let read = OTLPProtobuf.partialSuccess([0x0A, 7, 0x08, 2, 0x12, 3, 0x6F, 0x6C, 0x64])
        #expect(read?.rejected == 2 && read?.message == "old")
        #expect(
            OTLPProtobuf.partialSuccess([])?.rejected == 0 && OTLPProtobuf.partialSuccess([0x0A, 99]) == nil)
    }

    /// What an answer to protocol buffers means.
    private func binary(_ answer: [UInt8]) -> Outcome {
        AnswerReader(table: AnswerTable(), encoder: OTLPEncoder()).outcome(
            of: HTTPAnswer(status: 200, body: answer), for: header(events: 9), wireBytes: 100,
            now: Timestamp(milliseconds: 0)
        ) { () throws(OutputError) in [] }
    }

    @Test("a success without the protocol's response is no acknowledgement")
    func noResponse() {
        let partial: [UInt8] = [0x0A, 7, 0x08, 2, 0x12, 3, 0x6F, 0x6C, 0x64]
        for answer in [
            [0xFF, 0xFF, 0xFF, 0xFF], Array(partial.dropLast()), [0x08, 14, 0x12, 1, 0x61],
            [0x0A, 2, 0x0A, 0],
            [0x0A, 11, 0x08] + [UInt8](repeating: 0xFF, count: 9) + [1], Array("not now".utf8),
        ] as [[UInt8]] {
            #expect(retried(binary(answer))?.kind == .protocolViolation, "\(answer)")
        }
        for answer in [
            #"{"error":"not now"}"#, #"{"partialSuccess":{"rejectedLogRecords":"5""#,
            #"{"code":14,"message":"busy"}"#,
            #"{"partialSuccess":{"rejectedLogRecords":"many"}}"#, #"{"partialSuccess":5}"#, "[]", "ok",
            #"{"partialSuccess":{"rejectedLogRecords":-1}}"#,
        ] {
            for result in [outcome(OTLPEncoder(.json), events: 9, answer), binary(Array(answer.utf8))] {
                #expect(retried(result)?.kind == .protocolViolation, "\(answer)")
            }
        }
        #expect(
            retried(binary(Array(#"{"error":"UNAVAILABLE"}"#.utf8)))?.message.hasSuffix(
                "Its error is UNAVAILABLE")
                == true)
    }

    @Test("an empty answer acknowledges, and so does one in the other encoding")
    func otherResponses() {
        for answer in [[], [0x12, 1, 0x61], [0x0A, 0]] as [[UInt8]] {
            #expect(binary(answer) == .acknowledged, "\(answer)")
        }
        for answer in ["", "\n", "{}", #"{"status":"ok"}"#, #"{"code":0,"partialSuccess":null}"#] {
            #expect(outcome(OTLPEncoder(.json), events: 9, answer) == .acknowledged, "\(answer)")
            #expect(binary(Array(answer.utf8)) == .acknowledged, "\(answer)")
        }
        let partial: [UInt8] = [0x0A, 7, 0x08, 5, 0x12, 3, 0x6F, 0x6C, 0x64]
        for result in [
            binary(partial), binary(Array(#"{"partialSuccess":{"rejectedLogRecords":"5"}}"#.utf8)),
            outcome(OTLPEncoder(.json), events: 9, String(decoding: partial, as: UTF8.self)),
        ] {
            guard case .acknowledgedWithLoss(5, _) = result else {
                Issue.record("\(result)")
                continue
            }
        }
    }

    /// The only record of one event.
    private func record(_ event: String) throws -> JSONSlice {
        let text = try encoded(OTLPEncoder(.json), event + "\n")
        let scope = try #require(slice(text)?["resourceLogs"]?.elements?.first?["scopeLogs"]?.elements?.first)
        return try #require(scope["logRecords"]?.elements?.first)
    }

    private func keys(_ record: JSONSlice) -> [String] {
        record["attributes"]?.elements?.compactMap { $0["key"]?.string } ?? []
    }

    private func attribute(_ record: JSONSlice, _ key: String) -> String? {
        record["attributes"]?.elements?.first { $0["key"]?.string == key }?["value"]?["stringValue"]?.string
    }

    @Test("facts of machine and agent are named by the semantic conventions")
    func conventions() throws {
        let line =
            #"{"name":"a","app":"web","device":{"host_name":"web-1","sdk_name":"spoolship","sdk_version":"1","os_name":"Debian","#
            + #""app_version":"3","install_id":"i"}}"# + "\n"
        let resource = slice(try encoded(OTLPEncoder(.json), line))?["resourceLogs"]?.elements?.first?[
            "resource"]
        let keys = resource?["attributes"]?.elements?.compactMap { $0["key"]?.string }
        #expect(
            keys == [
                "service.name", "host.name", "telemetry.sdk.name", "telemetry.sdk.version", "os.name",
                "service.version", "service.instance.id",
            ])
    }

    @Test("keys are unique, and no app can shadow the id by which readers remove repeats")
    func uniqueKeys() throws {
        let record = try record(
            #"{"name":"a","id":"true-id","session_id":"s","country":"IT","type":"t","#
                + #""log.record.uid":"member","both":"member","x":{"k":1,"k":2},"#
                + #""properties":{"log.record.uid":"forged","session.id":"forged","both":"property","event.type":"p"}}"#
        )
        let keys = keys(record)
        #expect(Set(keys).count == keys.count, "\(keys)")
        #expect(attribute(record, "log.record.uid") == "/true-id" && attribute(record, "session.id") == "s")
        #expect(attribute(record, "event.type") == "t")
        #expect(attribute(record, "property.log.record.uid") == "forged")
        #expect(attribute(record, "member.log.record.uid") == "member")
        #expect(attribute(record, "both") == "property" && attribute(record, "member.both") == "member")
        #expect(
            !(try encoded(OTLPEncoder(.json), #"{"name":"a","x":{"k":1,"k":2}}"# + "\n")).contains(
                #""intValue":"1""#))
    }

    @Test(
        "valid trace, span, severity and message have their own fields; invalid ones stay attributes",
        arguments: ["member", "property"])
    func fields(place: String) throws {
        func event(_ members: String) -> String {
            place == "member" ? #"{"name":"a",\#(members)}"# : #"{"name":"a","properties":{\#(members)}}"#
        }
        let trace = "0af7651916cd43dd8448eb211c80319c"
        let good = try record(
            event(
                #""trace_id":"\#(trace.uppercased())","span_id":"b7ad6b7169203331","level":"WARN","message":"hello""#
            )
        )
        #expect(good["traceId"]?.string == trace && good["spanId"]?.string == "b7ad6b7169203331")
        #expect(good["severityNumber"]?.integer == 13 && good["severityText"]?.string == "WARN")
        #expect(good["body"]?["stringValue"]?.string == "hello" && good["eventName"]?.string == "a")
        #expect(keys(good) == ["log.record.uid"])
        let zeros = String(repeating: "0", count: 32)
        let bad = try record(event(#""trace_id":"\#(zeros)","span_id":"xyz","severity":"loud","message":7"#))
        #expect(bad["traceId"] == nil && bad["spanId"] == nil && bad["severityText"] == nil)
        #expect(bad["severityNumber"] == nil && bad["body"]?["stringValue"]?.string == "a")
        #expect(Set(keys(bad)) == ["log.record.uid", "trace_id", "span_id", "severity", "message"])
        #expect(try record(event(#""severity":17"#))["severityNumber"]?.integer == 17)
        #expect(try record(#"{"name":"a","type":"crash"}"#)["severityNumber"]?.integer == 21)
    }

    @Test(
        "the body of a record is the message, by the logger's name for it",
        arguments: [
            #""message":"hello""#, #""msg":"hello","v":1"#, #""@m":"hello","@mt":"{X}""#,
            #""Message":"hello""#,
            #""event":"hello","logger":"x""#, #""text":"hello""#, #""log":"hello""#,
            #""short_message":"hello","full_message":"more""#,
            #""record":{"message":"hello","level":{"no":20}}"#,
            #""@mt":"hello""#, #""message":"","msg":"hello""#, #""message":{"a":1},"msg":"hello""#,
        ])
    func recordBodies(members: String) throws {
        let record = try record(#"{\#(members),"name":"log","app":"web","host_name":"h"}"#)
        #expect(record["body"]?["stringValue"]?.string == "hello")
        #expect(record["eventName"] == nil)
    }

    @Test("a record without a message has its JSON as the body, and no invented name or severity")
    func recordWithoutMessage() throws {
        let line = #"{"user":"ada","took":7,"name":"log","app":"web","host_name":"h"}"#
        let record = try record(line)
        #expect(record["body"]?["stringValue"]?.string == line)
        #expect(
            record["severityNumber"] == nil && record["severityText"] == nil && record["eventName"] == nil)
        #expect(keys(record) == ["log.record.uid", "user", "took"])
        let text = try self.record(#"{"message":"[emerg] no room","name":"log","host_name":"h"}"#)
        #expect(text["severityNumber"] == nil && text["severityText"] == nil)
    }

    @Test(
        "trace, span and flags are found under the names of common libraries",
        arguments: [
            #""trace_id":"T","span_id":"S","trace_flags":"01""#,
            #""traceId":"T","spanId":"S","traceFlags":1"#,
            #""TraceId":"T","SpanId":"S","TraceFlags":"1""#, #""@tr":"T","@sp":"S","trace_flags":1"#,
            #""trace.id":"T","span.id":"S","trace.flags":"01""#,
            #""trace":{"id":"T","flags":1},"span":{"id":"S"}"#,
            #""otelTraceID":"T","otelSpanID":"S","otelTraceSampled":true"#,
            #""dd.trace_id":"T","dd.span_id":"13237231638570595105","trace_flags":"01""#,
            #""dd":{"trace_id":"T","span_id":"13237231638570595105"},"trace_flags":"01""#,
            #""traceparent":"00-T-S-01""#,
        ])
    func traceNames(members: String) throws {
        let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "b7b4180a9a8ff321")
        let text = members.replacingAll(#""T""#, with: #""\#(trace)""#).replacingAll(
            #""S""#, with: #""\#(span)""#
        )
        .replacingAll("-T-S-", with: "-\(trace)-\(span)-")
        let record = try record(#"{"msg":"a","host_name":"h",\#(text)}"#)
        #expect(
            record["traceId"]?.string == trace && record["spanId"]?.string == span
                && record["flags"]?.integer == 1)
        #expect(Set(keys(record)).isSubset(of: ["log.record.uid", "trace", "span", "dd"]), "\(keys(record))")
    }

    @Test(
        "an invalid trace id stays an attribute",
        arguments: [
            #""trace_id":"12345""#, #""dd.trace_id":"1234567890123456789""#,
            #""traceparent":"00-00000000000000000000000000000000-b7b4180a9a8ff321-01""#,
            #""traceparent":"ff-0af7651916cd43dd8448eb211c80319c-b7b4180a9a8ff321-01""#,
            #""traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7b4180a9a8ff321-01-x""#,
            #""span_id":"b7b4180a9a8ff321""#,
        ])
    func noTrace(members: String) throws {
        let record = try record(#"{"msg":"a",\#(members)}"#)
        #expect(record["traceId"] == nil && record["spanId"] == nil && record["flags"] == nil)
        #expect(keys(record).count == 2)
    }

    @Test("service.name is the app that owns the event; another app named in a record is an attribute")
    func serviceName() throws {
        let lines =
            #"{"msg":"a","app":"checkout","host_name":"h"}"# + "\n"
            + #"{"msg":"b","app":"shop","host_name":"h"}"#
            + "\n"
        var header = header(events: 2)
        header.apps = ["shop", "shop"]
        let bytes = try OTLPEncoder(.json, host: "h").encode(Array(lines.utf8), of: header)
        let groups = try #require(slice(String(decoding: bytes, as: UTF8.self))?["resourceLogs"]?.elements)
        try #require(groups.count == 1)
        let resource = groups[0]["resource"]?["attributes"]?.elements?.map(\.text)
        #expect(
            resource == [
                #"{"key":"service.name","value":{"stringValue":"shop"}}"#,
                #"{"key":"host.name","value":{"stringValue":"h"}}"#,
                #"{"key":"os.type","value":{"stringValue":"linux"}}"#,
            ])
        #expect(groups[0]["schemaUrl"]?.string == "https://opentelemetry.io/schemas/1.28.0")
        let records = groups[0]["scopeLogs"]?.elements?.first?["logRecords"]?.elements ?? []
        #expect(records.map { attribute($0, "app") } == ["checkout", nil])
        let output = try Bench().output(to: "https://127.0.0.1:1/v1/logs", format: OTLPEncoder())
        #expect(output.asksWhose)
    }

    @Test("nanoseconds of a text line arrive")
    func nanoseconds() throws {
        let record = try record(#"{"msg":"a","timestamp":"2026-11-20T10:00:00.123456789Z"}"#)
        #expect(record["timeUnixNano"]?.string == "1795168800123456789")
    }

    @Test("protobuf has the fields of logs.proto for severity, trace and span")
    func protobufFields() throws {
        let line =
            #"{"name":"a","trace_id":"0af7651916cd43dd8448eb211c80319c","span_id":"b7ad6b7169203331","level":"error"}"#
            + "\n"
        let bytes = try OTLPEncoder().encode(Array(line.utf8), of: header(events: 1))
        func message(_ number: Int, _ bytes: ArraySlice<UInt8>) throws -> ArraySlice<UInt8> {
            var reader = ProtobufReader(bytes)
            while let next = reader.next() {
                if next.number == number, case .bytes(let found) = next.value { return found }
            }
            throw OutputError(.badBatch, "no field \(number)")
        }
        let record = try message(2, message(2, message(1, bytes[...])))
        #expect(
            Array(try message(9, record)) == [
                0x0A, 0xF7, 0x65, 0x19, 0x16, 0xCD, 0x43, 0xDD, 0x84, 0x48, 0xEB, 0x21, 0x1C, 0x80, 0x31,
                0x9C,
            ])
        #expect(Array(try message(10, record)) == [0xB7, 0xAD, 0x6B, 0x71, 0x69, 0x20, 0x33, 0x31])
        #expect(Array(try message(3, record)) == Array("error".utf8))
    }

    @Test("hostile protobuf never traps")
    func hostileProtobuf() {
        var random = SplitMix64(seed: Seeds.one(99))
        for _ in 0..<20_000 {
            let bytes = (0..<Int.random(in: 0...24, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            _ = OTLPProtobuf.partialSuccess(bytes)
        }
    }

    @Test("events nested beyond a depth are sent as text")
    func depth() throws {
        let deep = String(repeating: "[", count: 60) + String(repeating: "]", count: 60)
        let text = try encoded(OTLPEncoder(.json), #"{"name":"a","deep":\#(deep)}"# + "\n")
        #expect(text.contains(#"{"stringValue":"[[["#))
    }
}
