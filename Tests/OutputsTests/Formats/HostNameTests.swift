import Model
import TestKit
import Testing

@testable import Outputs

/// What tags redacted in an event is not said by its format in its place.
@Suite("The machine's name in formats")
struct HostNameTests {
    private static let host = "web-17-secret"
    private static let formats: [any BatchEncoder] = [
        NDJSONEncoder(), JSONArrayEncoder(), ElasticsearchEncoder(index: "i"), LokiEncoder(host: host),
        SplunkEncoder(host: host), OTLPEncoder(.json, version: "1"), OTLPEncoder(.protobuf, version: "1"),
        GA4Encoder(measurementID: "G-1"), AppCenterEncoder(installID: "i"),
    ]

    @Test("a host_name that was redacted, replaced or hashed is named in no format")
    func nowhere() throws {
        let lines = [
            #"{"name":"n","device":{"os_name":"Linux"}}"#, #"{"name":"n","device":{"host_name":"-"}}"#,
            #"{"name":"n","device":{"host_name":"9f86d081"}}"#, #"{"name":"n","host_name":"-"}"#,
            #"{"name":"n"}"#,
        ].joined(separator: "\n")
        for format in HostNameTests.formats {
            let bytes = try format.encode(Array((lines + "\n").utf8), of: header(events: 5))
            let said = String(decoding: bytes, as: UTF8.self) + "\(format.traits)"
            #expect(!said.contains("web-17"), "\(format)")
        }
    }

    @Test("events with the machine's name have it as Loki's label and as Splunk's host")
    func said() throws {
        for (member, isHere) in [
            (#""device":{"host_name":"web-17-secret"}"#, true), (#""host_name":"web-17-secret""#, true),
            (#""host_name":"other""#, false),
        ] {
            let line = #"{"name":"n","app":"a",\#(member)}"# + "\n"
            let loki = try encoded(LokiEncoder(host: HostNameTests.host), line)
            #expect(
                loki.contains(#"{"stream":{"app":"a","host":"web-17-secret","job":"spoolship"}"#) == isHere)
            let splunk = try encoded(SplunkEncoder(host: HostNameTests.host), line)
            #expect(splunk.hasPrefix(#"{"host":"web-17-secret","event":{"#) == isHere)
        }
    }
}
