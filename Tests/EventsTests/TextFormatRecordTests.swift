import EventLoops
import Model
import Testing
import TextFormats

@testable import Events

@Suite("Records of text formats")
struct TextFormatRecordTests {
    private func options(_ change: (inout TextFormatSettings, inout AppOptions) -> Void) throws
        -> EventOptions
    {
        var settings = AppOptions()
        settings.kind = .log
        settings.text = .lines
        var format = TextFormatSettings()
        change(&format, &settings)
        if !format.isEmpty { settings.textFormat = try TextFormat(format) }
        var options = EventOptions()
        options.apps["shop"] = settings
        return options
    }

    private func object(_ line: String?) throws -> [String: JSONValue] {
        guard case .object(let members)? = try line.map({ try JSONValue(parsing: Array($0.dropLast().utf8)) })
        else {
            return [:]
        }
        return Dictionary(members.map { ($0.key, $0.value) }) { _, last in last }
    }

    private static let access =
        #"192.0.2.7 - - [20/Nov/2026:09:59:00 +0000] "GET / HTTP/1.1" 200 5 "-" "curl""#

    @Test("a line of a format is a record with its own time, severity and members")
    func parsed() throws {
        var reading = Reading(try options { format, _ in format.parse = "nginx_error" })
        let (verdict, output) = reading.read("2026/11/20 09:59:00 [emerg] 7#8: no port")
        #expect(verdict.kind == .accepted)
        #expect(verdict.eventTime.description == "2026-11-20T09:59:00.000Z")
        let record = try object(output)
        #expect(record["timestamp"] == "2026-11-20T09:59:00.000Z")
        #expect(record["severity"] == "fatal")
        #expect(record["pid"] == 7)
        #expect(record["app"] == "shop")
    }

    @Test("a line that does not match is the message of a record, counted with the position of the mismatch")
    func unmatched() throws {
        var reading = Reading(try options { format, _ in format.parse = "nginx" })
        let (verdict, output) = reading.read("hello")
        #expect(verdict.kind == .accepted)
        #expect(try object(output)["message"] == "hello")
        _ = reading.read(Self.access)
        let counts = reading.pass.counts
        #expect(counts.parsed == 1)
        #expect(counts.texts["shop"]?.notParsed == 1)
        #expect(counts.texts["shop"]?.last == TextFailure(column: 1, expected: " - "))
    }

    @Test("a header of csv is no record, and is not counted")
    func header() throws {
        var reading = Reading(
            try options { format, _ in
                format.parse = "csv"
                format.columns = ["when", "what"]
            })
        #expect(reading.read("when,what").verdict.kind == .blank)
        #expect(reading.read("when,what\r").verdict.kind == .blank)
        let (verdict, output) = reading.read("when,then")
        #expect(verdict.kind == .accepted)
        #expect(try object(output)["what"] == "then")
        #expect(reading.pass.counts.parsed == 1)
    }

    @Test("with unmatched = quarantine such a line is quarantined, with the position of the mismatch")
    func quarantined() throws {
        var reading = Reading(
            try options { format, settings in
                format.parse = "nginx"
                settings.quarantinesUnmatched = true
            })
        #expect(reading.read("hello").verdict.kind == .quarantined)
        #expect(reading.pass.problem?.detail.contains("column 1") == true)
        #expect(reading.read(Self.access).verdict.kind == .accepted)
    }

    @Test("while paths hide members, a line that does not match is withheld, and not stored as a whole")
    func hidden() throws {
        var reading = Reading(
            try options { format, _ in
                format.parse = "nginx"
                format.keepLine = "raw"
            })
        #expect(try object(reading.read(Self.access).output)["raw"] == .string(Self.access))
        reading.pass.withheld = .members
        #expect(try object(reading.read(Self.access).output)["raw"] == nil)
        #expect(reading.read("hello").verdict.kind == .quarantined)
        #expect(reading.pass.problem?.reason == .unredactable)
    }

    @Test(
        "after a line that ends before a hidden value no object is sent, also in an app with a format",
        arguments: [true, false])
    func hiddenValue(isParsed: Bool) throws {
        var reading = Reading(
            try options { format, _ in
                if isParsed { format.parse = "nginx" } else { format.firstLine = "^[0-9]" }
            })
        reading.pass.withheld = .members
        #expect(reading.read(#"{"a":1}"#).verdict.kind == .accepted)
        _ = reading.read(#""secret":"#)
        #expect(reading.read(#"{"a":1}"#).verdict.kind == .quarantined)
        #expect(reading.pass.problem?.reason == .unredactable)
        #expect(reading.read(#"{"a":1}"#).verdict.kind == .accepted)
    }

    @Test(
        "after a line that ends before a hidden value no object is sent, whatever became of that line",
        arguments: [
            (nil, #""password":"#, #"{"k":"s3cret"}"#),
            (nil, #""password"%3a"#, #"{"k":"s3cret"}"#),
            (nil, #"\x22password\x22 &#58;"#, #"{"k":"s3cret"}"#),
            (nil, "\"password\":\u{1B}[0m", #"{"k":"s3cret"}"#),
            (nil, "\"password\":\u{1B}[A", #"{"k":"s3cret"}"#),
            (nil, "\0\0\"password\":", #"{"k":"s3cret"}"#),
            ("java", #"2026-11-20 09:59:00,413 ERROR [main] a - "password":"#, #"{"k":"s3cret"}"#),
            ("json_in:log", #""password":"#, #"{"log":"{\"k\":\"s3cret\"}"}"#),
            ("json_in:log", #"{"log":"\"password\":"}"#, #"{"log":"{\"k\":\"s3cret\"}"}"#),
        ])
    func hiddenValueWithoutText(parse: String?, name: String, value: String) throws {
        var reading = Reading(
            try options { format, settings in
                format.parse = parse
                settings.text = .quarantine
            })
        reading.pass.withheld = .members
        #expect(reading.read(name).verdict.kind == (parse == "java" ? .accepted : .quarantined))
        // An empty line may stand between them.
        #expect(reading.read("").verdict.kind == .blank)
        #expect(reading.read(value).verdict.kind == .quarantined)
        #expect(reading.pass.problem?.reason == .unredactable)
        #expect(reading.read(value).verdict.kind == .accepted)
    }

    @Test("a hidden value alone on a line is not sent as a record of a pattern; a record with a time is sent")
    func hiddenValueOfLoosePattern() throws {
        var loose = Reading(try options { format, _ in format.pattern = "(?P<message>.*)" })
        loose.pass.withheld = .members
        #expect(loose.read(#"a: "password":"#).verdict.kind == .accepted)
        #expect(loose.read(#""s3cret""#).verdict.kind == .quarantined)
        #expect(loose.pass.problem?.reason == .unredactable)
        #expect(loose.read(#""s3cret""#).verdict.kind == .accepted)
        var timed = Reading(try options { format, _ in format.parse = "java" })
        timed.pass.withheld = .members
        let name = #"2026-11-20 09:59:00,413 ERROR [main] a - "password":"#
        #expect(timed.read(name).verdict.kind == .accepted)
        #expect(timed.read(name).verdict.kind == .accepted)
    }

    @Test("a push behind such a line is applied: a refusal of consent in it must not be lost")
    func pushBehindName() {
        var reading = Reading()
        reading.pass.withheld = .members
        #expect(reading.read(#""x":"#).verdict.kind == .quarantined)
        #expect(reading.read(#"{"type":"data_layer","consent":false}"#).verdict.kind == .dataLayer)
        #expect(reading.read(#"{"name":"e"}"#).verdict.kind == .accepted)
    }

    @Test("a line of one file says nothing about the lines of another, and another's clear no note")
    func nameInOtherFile() {
        var reading = Reading()
        reading.pass.withheld = .members
        reading.path = "a.jsonl"
        #expect(reading.read(#""x":"#).verdict.kind == .quarantined)
        reading.path = "b.jsonl"
        #expect(reading.read(#"{"name":"e"}"#).verdict.kind == .accepted)
        reading.path = "a.jsonl"
        #expect(reading.read(#"{"name":"e"}"#).verdict.kind == .quarantined)
    }

    // With a search to the end of the line for each quote it takes more than a minute.
    @Test("a line of half a million quotes is judged by a single walk", .timeLimit(.minutes(1)))
    func manyQuotes() {
        var reading = Reading()
        reading.pass.withheld = .members
        #expect(reading.read(String(repeating: "\"a", count: 500_000) + ":").verdict.kind == .quarantined)
        #expect(reading.read(#"{"name":"e"}"#).verdict.kind == .accepted)
    }

    @Test("white space between the name and the value counts for nothing, also inside a string")
    func hiddenValueBehindWhiteSpace() throws {
        for (parse, blank) in [(nil, "  "), ("json_in:log", #"{"log":" \n"}"#), ("java", "  ")] {
            var reading = Reading(try options { format, _ in format.parse = parse })
            reading.pass.withheld = .members
            let isInner = parse == "json_in:log"
            let name = isInner ? #"{"log":"\"password\":\n"}"# : #""password":"#
            let value = isInner ? #"{"log":"{\"k\":\"s3cret\"}\n"}"# : #"{"k":"s3cret"}"#
            #expect(reading.read(name).verdict.kind == .quarantined)
            #expect(reading.read(blank).verdict.kind != .accepted)
            #expect(reading.read(value).verdict.kind == .quarantined, "\(parse ?? "")")
            #expect(reading.read(value).verdict.kind == .accepted)
            // An object without the member stays, and ends the wait for the value.
            guard isInner else { continue }
            #expect(reading.read(name).verdict.kind == .quarantined)
            #expect(reading.read(#"{"k":"s3cret"}"#).verdict.kind == .quarantined)
            #expect(reading.read(value).verdict.kind == .accepted)
        }
    }

    @Test("texts that end otherwise note nothing: links, escapes, and names without a colon")
    func ordinaryEnds() throws {
        let ends = [
            #"GET /a?b=%3a&c="x";"#, #""a": 1, "b"A"#, "\u{1B}[31mred\u{1B}[0m", #""a" &#59;"#, "done:", "",
        ]
        var reading = Reading(try options { _, _ in })
        reading.pass.withheld = .members
        for end in ends {
            _ = reading.read(end)
            #expect(reading.read(#"{"k":1}"#).verdict.kind == .accepted, "\(end)")
        }
    }

    @Test("an object with a repaired byte is not sent behind such a line either, wherever it begins")
    func hiddenValueRepaired() throws {
        var reading = Reading(try options { _, _ in })
        reading.pass.withheld = .members
        let value = Array(#"  {"k":"s3cret"#.utf8) + [0xFF] + Array("\"}\n".utf8)
        #expect(reading.read(bytes: value).verdict.kind == .accepted)
        #expect(reading.read(#""password":"#).verdict.kind == .quarantined)
        #expect(reading.read(bytes: value).verdict.kind == .quarantined)
        #expect(reading.pass.problem?.reason == .unredactable)
        #expect(reading.read(bytes: value).verdict.kind == .accepted)
    }

    @Test("the lines of a record are one record, up to the next that begins one")
    func several() throws {
        var reading = Reading(try options { format, _ in format.parse = "java" })
        let first =
            "2026-11-20 09:59:00,413 ERROR [main] shop.Cart - no\njava.io.IOException: x\n\tat a.b(C.java:1)"
        let block = "\(first)\n2026-11-20 09:59:01,000 INFO  [main] shop.Cart - yes\n"
        let (verdict, output) = reading.read(bytes: Array(block.utf8))
        #expect(verdict.next == first.utf8.count + 1)
        let record = try object(output.map { String(decoding: $0, as: UTF8.self) })
        #expect(record["message"] == "no\njava.io.IOException: x\n\tat a.b(C.java:1)")
        #expect(record["severity"] == "error")
    }

    @Test("first_line joins lines of text that are not parsed, and leaves JSON lines alone")
    func firstLine() throws {
        var reading = Reading(try options { format, _ in format.firstLine = #"^(\d{4}-|\{)"# })
        let (verdict, output) = reading.read(bytes: Array("2026-11 a\n b\n{\"x\":1}\n".utf8))
        #expect(verdict.next == 13)
        #expect(try object(output.map { String(decoding: $0, as: UTF8.self) })["message"] == "2026-11 a\n b")
        #expect(try object(reading.read("{\"x\":1}").output)["x"] == 1)
    }

    @Test("the object in the member that json_in names is the record; other lines are unchanged")
    func inner() throws {
        var reading = Reading(try options { format, _ in format.parse = "json_in:log" })
        let line = #"{"log":"{\"level\":\"warn\",\"a\":1}\n","time":"2026-11-20T09:59:00Z"}"#
        let (verdict, output) = reading.read(line)
        let record = try object(output)
        #expect(record["a"] == 1)
        #expect(record["log"] == nil)
        #expect(record["severity"] == "warn")
        #expect(verdict.eventTime.description == "2026-11-20T09:59:00.000Z")
        #expect(try object(reading.read(#"{"log":"text"}"#).output)["log"] == "text")
        #expect(reading.pass.counts.texts["shop"]?.notParsed == 1)
    }

    @Test("a line that begins like JSON and is invalid is counted, in an app with JSON lines")
    func brokenJSON() throws {
        var reading = Reading(try options { _, _ in })
        _ = reading.read(#"{"level":30,"msg":"cut"#)
        _ = reading.read("text")
        _ = reading.read(#"{"level":30}"#)
        #expect(reading.pass.counts.texts["shop"]?.brokenJSON == 1)
    }

    @Test(
        "times of text logs are valid in JSON",
        arguments: [
            #""20/Nov/2026:09:59:00 +0000""#, #""Fri Nov 20 09:59:00 2026""#, #""Nov 20 09:59:00""#,
            #""20261120T095900Z""#, #""Fri, 20 Nov 2026 09:59:00 GMT""#, #""2026-11-20 09:59:00.000 Z""#,
            #"{"epochSecond":1795168740,"nanoOfSecond":0}"#, #"{"seconds":"1795168740","nanos":0}"#,
        ])
    func jsonTimes(time: String) throws {
        var reading = Reading(try options { _, _ in })
        let (verdict, _) = reading.read("{\"time\":\(time)}")
        #expect(verdict.eventTime.description == "2026-11-20T09:59:00.000Z")
    }
}
