import Model
import TestKit
import Testing

@testable import Outputs

@Suite("Format otlp")
struct OTLPTests {
    @Test("JSON: a resource for each source, a record for each event, values typed")
    func json() throws {
        let text = try encoded(OTLPEncoder(.json, version: "1.2"))
        let groups = try #require(slice(text)?["resourceLogs"]?.elements)
        #expect(groups.count == 2)
        let resource = try #require(groups[0]["resource"]?["attributes"]?.elements)
        #expect(resource.first?.text == #"{"key":"service.name","value":{"stringValue":"web"}}"#)
        #expect(resource.contains { $0.text == #"{"key":"device.time_zone_offset","value":{"intValue":"60"}}"# })
        let scope = try #require(groups[0]["scopeLogs"]?.elements?.first)
        #expect(scope["scope"]?.text == #"{"name":"spoolship","version":"1.2"}"#)
        let record = try #require(scope["logRecords"]?.elements?.first)
        #expect(record["timeUnixNano"]?.string == "1795168800123000000")
        #expect(record["observedTimeUnixNano"]?.string == "1795168801000000000")
        #expect(
            record["eventName"]?.string == "Video clicked" && record["body"]?["stringValue"]?.string == "Video clicked")
        var attributes: [String: String] = [:]
        for attribute in record["attributes"]?.elements ?? [] {
            attributes[attribute["key"]?.string ?? ""] = attribute["value"]?.text
        }
        #expect(
            attributes == [
                "Category": #"{"stringValue":"Music"}"#, "Count": #"{"intValue":"3"}"#,
                "Ratio": #"{"doubleValue":0.5}"#,
                "Paid": #"{"boolValue":true}"#, "At": #"{"stringValue":"2026-11-20T09:00:00Z"}"#, "None": "{}",
                "Tags": #"{"arrayValue":{"values":[{"intValue":"1"},{"stringValue":"two"}]}}"#,
                "session.id": #"{"stringValue":"0192f3a4-0000-7abc-8def-0123456789ab"}"#,
                "geo.country.iso_code": #"{"stringValue":"IT"}"#,
                "log.record.uid": #"{"stringValue":"0192f3a4-0000-7abc-8def-000000000001"}"#,
            ])
    }

    @Test("protobuf: the bytes that protoc would write")
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
        let uid: [UInt8] = [0x0A, 14] + Array("log.record.uid".utf8) + [0x12, 3, 0x0A, 1, UInt8(ascii: "x")]
        var record: [UInt8] = [0x09] + fixed + [0x10, 9, 0x2A, 3, 0x0A, 1, UInt8(ascii: "a")]
        record += [0x32, UInt8(attribute.count)] + attribute + [0x32, UInt8(uid.count)] + uid
        record += [0x59] + fixed + [0x62, 1, UInt8(ascii: "a")]
        let scope: [UInt8] = [0x0A, 11, 0x0A, 9] + Array("spoolship".utf8)
        let scopeLogs = scope + [0x12, UInt8(record.count)] + record
        let resourceLogs: [UInt8] = [0x0A, 0, 0x12, UInt8(scopeLogs.count)] + scopeLogs
        // Lengths of 128 and more take two bytes.
        func length(_ count: Int) -> [UInt8] {
            count < 128 ? [UInt8(count)] : [UInt8(count & 127) | 128, UInt8(count >> 7)]
        }
        #expect(record.count < 128 && scopeLogs.count < 128)
        #expect(bytes == [0x0A] + length(resourceLogs.count) + resourceLogs)
    }

    @Test("partial success is read in both encodings")
    func partialSuccess() {
        let json = OTLPEncoder(.json)
        #expect(outcome(json, events: 2, "{}") == .acknowledged)
        #expect(outcome(json, events: 2, #"{"partialSuccess":{"errorMessage":"slow down"}}"#) == .acknowledged)
        guard
            case .rejected(let failure) = outcome(
                json, events: 3, #"{"partialSuccess":{"rejectedLogRecords":"2","errorMessage":"too old"}}"#)
        else {
            Issue.record("not bisected")
            return
        }
        #expect(failure.message == "2 of 3 events were rejected" && failure.excerpt == "too old")
        guard
            case .partial(let rejected, let retry) = outcome(
                json, events: 2, #"{"partialSuccess":{"rejectedLogRecords":2}}"#)
        else {
            Issue.record("not all rejected")
            return
        }
        #expect(rejected.map(\.index) == [0, 1] && retry.isEmpty)
        let read = OTLPProtobuf.partialSuccess([0x0A, 7, 0x08, 2, 0x12, 3, 0x6F, 0x6C, 0x64])
        #expect(read?.rejected == 2 && read?.message == "old")
        #expect(OTLPProtobuf.partialSuccess([]) == nil && OTLPProtobuf.partialSuccess([0x0A, 99]) == nil)
    }

    @Test("hostile protobuf never traps")
    func hostileProtobuf() {
        var random = SplitMix64(seed: 99)
        for _ in 0..<20_000 {
            let bytes = (0..<Int.random(in: 0...24, using: &random)).map { _ in
                UInt8.random(in: 0...255, using: &random)
            }
            _ = OTLPProtobuf.partialSuccess(bytes)
        }
    }

    @Test("events nested without end become text below some depth")
    func depth() throws {
        let deep = String(repeating: "[", count: 60) + String(repeating: "]", count: 60)
        let text = try encoded(OTLPEncoder(.json), #"{"name":"a","deep":\#(deep)}"# + "\n")
        #expect(text.contains(#"{"stringValue":"[[["#))
    }
}
