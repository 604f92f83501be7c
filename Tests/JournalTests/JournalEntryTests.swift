import EventLoops
import Model
import TestKit
import Testing

@testable import Journal

@Suite("Journal entries")
struct JournalEntryTests {
    private let time = Timestamp(milliseconds: 1_795_168_800_123)

    /// The line of an entry, and whether it was cut.
    private func line(
        _ entry: [(String, [UInt8])], fields: [String] = [], limit: Int = 65_536
    ) -> (text: String, isCut: Bool) {
        var made = JournalEntry(
            JournalOptions(
                directory: nil, units: [], priority: 7, since: .beginning, fields: fields, maxEventSize: limit
            ))
        made.begin()
        for (name, value) in entry {
            (Array("\(name)=".utf8) + value).withUnsafeBufferPointer { made.addField($0) }
        }
        var lines: [UInt8] = []
        let isCut = made.write(into: &lines, time: time, limit: limit)
        #expect(lines.last == 0x0A && lines.dropLast().allSatisfy { $0 != 0x0A } && lines.count <= limit + 1)
        return (String(decoding: lines.dropLast(), as: UTF8.self), isCut)
    }

    private func line(_ entry: [(String, String)], fields: [String] = [], limit: Int = 65_536) -> String {
        line(entry.map { ($0.0, Array($0.1.utf8)) }, fields: fields, limit: limit).text
    }

    @Test("MESSAGE is the member `message`; usual fields have OpenTelemetry names, others keep theirs")
    func message() {
        let text = line([
            ("_BOOT_ID", "83dc"), ("_PID", "17"), ("_UID", "0"), ("_HOSTNAME", "web-1"), ("PRIORITY", "3"),
            ("_SYSTEMD_UNIT", "nginx.service"), ("SYSLOG_IDENTIFIER", "nginx"), ("MESSAGE", "a \"b\"\nc"),
        ])
        #expect(
            text
                == #"{"timestamp":"2026-11-20T10:00:00.123Z","_BOOT_ID":"83dc","process.pid":17,"host.name":"web-1","#
                + #""PRIORITY":3,"_SYSTEMD_UNIT":"nginx.service","SYSLOG_IDENTIFIER":"nginx","message":"a \"b\"\u000ac"}"#
        )
    }

    @Test(
        "a field with several values becomes a list in order; of message and priority the first value counts"
    )
    func severalValues() {
        let entry = [
            ("MESSAGE", "m"), ("TAG", "a"), ("TAG", "b \"x\""), ("_PID", "1"), ("TAG", "c"), ("MESSAGE", "n"),
            ("PRIORITY", "3"), ("PRIORITY", "4"), ("SYSLOG_IDENTIFIER", "one"), ("SYSLOG_IDENTIFIER", "two"),
        ]
        let tail = #","process.pid":1,"PRIORITY":3,"SYSLOG_IDENTIFIER":["one","two"]}"#
        let start = #"{"timestamp":"2026-11-20T10:00:00.123Z","message":"m","TAG":"#
        #expect(line(entry, fields: ["*"]) == start + #"["a","b \"x\"","c"]"# + tail)
        #expect(line(entry, fields: ["TAG"]) == start + #"["a","b \"x\"","c"]"# + tail)
        let object = line([("MESSAGE", "{}"), ("TAG", "a"), ("TAG", "b")], fields: ["TAG"])
        #expect(object == #"{"TAG":["a","b"],"__REALTIME_TIMESTAMP":1795168800123000}"#)
        // More than there is room for: the first values stay, and the line says what was cut.
        let many = (0..<1000).map { ("TAG", "value \($0)") }
        let cut = line(
            ([("MESSAGE", "m")] + many).map { ($0.0, Array($0.1.utf8)) }, fields: ["*"], limit: 200)
        #expect(
            cut.isCut && cut.text.contains(#""TAG":"value 0""#)
                && cut.text.contains(#""truncated_member":"TAG""#))
        #expect(line([("MESSAGE", "m")] + many, fields: ["*"]).contains(#""value 1","value 2""#))
    }

    @Test(
        "a message that is a JSON object becomes the record: its members stay first, and no name is repeated")
    func object() {
        #expect(
            line([
                ("MESSAGE", #"{"PRIORITY":4,"host.name":"web-1"} "#), ("_HOSTNAME", "web-1"),
                ("PRIORITY", "6"),
            ])
                == #"{"PRIORITY":4,"host.name":"web-1","__REALTIME_TIMESTAMP":1795168800123000}"#)
        #expect(
            line([("MESSAGE", "{\n \"a\": 1,\n \"b\": 2 }"), ("_PID", "1")])
                == #"{  "a": 1,  "b": 2 ,"process.pid":1,"__REALTIME_TIMESTAMP":1795168800123000}"#)
        // Only its own members are compared, however their names are spelled: no text, and nothing deeper.
        let known = #"{"a":"PRIORITY","b":{"host.name":1},"c":["N"],"process\u002epid":1,"\u004e2":3"#
        let entry = [("_HOSTNAME", "h"), ("PRIORITY", "6"), ("_PID", "1"), ("N", "4"), ("N2", "5")]
        #expect(
            line([("MESSAGE", known + "}")] + entry, fields: ["*"])
                == known + #","host.name":"h","PRIORITY":6,"N":"4","__REALTIME_TIMESTAMP":1795168800123000}"#)
        let many = (0..<100).map { "F\($0)" }
        #expect(
            line([("MESSAGE", #"{"F98":1}"#)] + many.map { ($0, "x") }, fields: many)
                == #"{"F98":1,"# + many.filter { $0 != "F98" }.map { #""\#($0)":"x","# }.joined()
                + #""__REALTIME_TIMESTAMP":1795168800123000}"#)
        #expect(line([("MESSAGE", "{}")]) == #"{"__REALTIME_TIMESTAMP":1795168800123000}"#)
        #expect(
            line([("MESSAGE", "{ \n }"), ("_PID", "1")])
                == #"{   "process.pid":1,"__REALTIME_TIMESTAMP":1795168800123000}"#)
    }

    @Test(
        "a message that contradicts a field which only journald sets is text",
        arguments: [
            (#""host.name":"db""#, []), (#""process.pid":"1""#, []), (#""_BOOT_ID":"0""#, []),
            (#""_LINE_BREAK":"rest""#, []),
            (#""process\u002epid":2"#, []), (#""process.pid":2,"process.pid":1"#, []),
            (#""__REALTIME_TIMESTAMP":1"#, []),
            (#""process.user.id":0"#, ["_UID"]), (#""_AUDIT_SESSION":"9""#, ["*"]),
            (#""process.user.id":0"#, ["*"]),
        ] as [(String, [String])])
    func forged(member: String, fields: [String]) throws {
        let entry = [("_HOSTNAME", "web-1"), ("_PID", "1"), ("_AUDIT_SESSION", "3"), ("PRIORITY", "6")]
        let message = #"{"a":1,"# + member + "}"
        let members = try JSONValue(parsing: line([("MESSAGE", message)] + entry, fields: fields))
        #expect(
            members["message"]?.string == message && members["process.pid"] == 1 && members["PRIORITY"] == 6)
    }

    @Test(
        "a message that only looks like an object is text",
        arguments: [#"{"a":1"#, #"{"a":1} b"#, #"{"a":1}{"b":2}"#, "{a}", "[1]", "", "{\"a\":\"\n\"}"])
    func noObject(message: String) throws {
        let text = line([("MESSAGE", message)])
        let members = try JSONValue(parsing: text)
        #expect(members["message"]?.string == message)
    }

    @Test("the named fields are added, or all with *; known numeric fields are numbers")
    func fields() {
        let entry = [("MESSAGE", "m"), ("CODE_LINE", "12"), ("_UID", "007"), ("N", "3"), ("N", "4")]
        #expect(line(entry) == #"{"timestamp":"2026-11-20T10:00:00.123Z","message":"m"}"#)
        #expect(
            line(entry, fields: ["CODE_LINE", "_UID"])
                == #"{"timestamp":"2026-11-20T10:00:00.123Z","message":"m","code.line.number":12,"process.user.id":"007"}"#
        )
        #expect(
            line(entry, fields: ["*"]).hasSuffix(
                #""message":"m","code.line.number":12,"process.user.id":"007","N":["3","4"]}"#))
        #expect(line([("MESSAGE", "m"), ("a\"b", "x")], fields: ["*"]).hasSuffix(#""message":"m"}"#))
    }

    @Test("bytes are unchanged: invalid UTF-8 is replaced and counted by the reader of the line")
    func binary() {
        var entry = JournalEntry(
            JournalOptions(
                directory: nil, units: [], priority: 7, since: .now, fields: [], maxEventSize: 1000))
        entry.begin()
        (Array("MESSAGE=".utf8) + [0xFF, 0x00, 0x41]).withUnsafeBufferPointer { entry.addField($0) }
        var lines: [UInt8] = []
        #expect(!entry.write(into: &lines, time: time, limit: 1000))
        #expect(lines.contains(0xFF) && lines.suffix(10).elementsEqual("\\u0000A\"}\n".utf8))
    }

    @Test("memory of earlier entries, at equal or other addresses, changes no line")
    func known() {
        let seed = Seeds.one(7)
        var random = SplitMix64(seed: seed)
        let options = JournalOptions(
            directory: nil, units: [], priority: 5, since: .now, fields: ["*"], maxEventSize: 400)
        var used = JournalEntry(options)
        // As the library's memory: the same texts at the same places, or others there.
        let memory = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: 1 << 14)
        defer { memory.deallocate() }
        for round in 0..<3000 {
            let texts = (0..<8).map { _ -> [UInt8] in
                let name =
                    ["MESSAGE", "PRIORITY", "_PID", "UNIT", "A", "AB", "é"].randomElement(using: &random)
                    ?? ""
                let value =
                    ["{}", "{", "4", "7", "a\"b", "=", "", "x\(round)"].randomElement(using: &random) ?? ""
                let isLong = Int.random(in: 0..<20, using: &random) == 0
                return Array("\(name)=\(value)\(isLong ? String(repeating: "é", count: 150) : "")".utf8)
            }
            var fresh = JournalEntry(options)
            used.begin()
            fresh.begin()
            for text in texts {
                let start = 256 * Int.random(in: 0..<32, using: &random)
                let place = UnsafeMutableBufferPointer(rebasing: memory[start..<start + text.count])
                _ = place.update(fromContentsOf: text)
                used.addField(UnsafeBufferPointer(place))
                fresh.addField(UnsafeBufferPointer(place))
            }
            let time = Timestamp(
                nanoseconds: Int64.random(in: 0...3_000_000_000, using: &random) / 1000 * 1000)
            var (line, expected): ([UInt8], [UInt8]) = ([], [])
            let areCut = (
                used.write(into: &line, time: time, limit: 400),
                fresh.write(into: &expected, time: time, limit: 400)
            )
            guard line == expected, areCut.0 == areCut.1, used.passes == fresh.passes else {
                Issue.record("\(String(decoding: line, as: UTF8.self)), \(Seeds.again(seed))")
                return
            }
        }
    }

    @Test("an entry that is too long is truncated in its longest field and marked; every entry fits")
    func cut() throws {
        let (text, isCut) = line(
            [("MESSAGE", Array(repeating: 0x61, count: 5000)), ("_PID", Array("7".utf8))], limit: 1000)
        #expect(
            isCut && text.contains(#""process.pid":7"#) && text.contains(#""truncated_member":"message""#))
        let members = try JSONValue(parsing: text)
        let kept = try #require(members["message"]?.string).utf8.count
        #expect(members["truncated_bytes"] == .integer(5000 - kept) && kept > 800)
        #expect(
            line([("MESSAGE", "{\"a\":\"\(String(repeating: "b", count: 3000))\"}")], limit: 500).contains(
                "truncated"))

        var random = SplitMix64(seed: Seeds.one(7))
        for _ in 0..<2000 {
            let entry = (0..<Int.random(in: 1...6, using: &random)).map { number -> (String, [UInt8]) in
                let name = number == 0 ? "MESSAGE" : "F\(number)"
                let text = (0..<Int.random(in: 0...900, using: &random)).map { _ in
                    ["a", "\"", "\n", "é", "€", "😀"].randomElement(using: &random) ?? ""
                }
                return (name, Array(text.joined().utf8))
            }
            let limit = Int.random(in: 300...2000, using: &random)
            let (text, isCut) = line(entry, fields: ["*"], limit: limit)
            let members = try JSONValue(parsing: text)
            #expect((members["truncated_bytes"] != nil) == isCut)
        }
    }
}
