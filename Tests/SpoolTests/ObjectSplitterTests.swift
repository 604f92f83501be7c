import Foundation
import Model
import TestKit
import Testing

@testable import Spool

@Suite("Splitting a JSON text into events")
struct ObjectSplitterTests {
    private struct Split: Equatable {
        var events: [String] = []
        var offsets: [Int64] = []
        var fault: String?
        var isWhole = false
        /// Where what did not become events begins.
        var rest: Int64 = 0
    }

    /// What comes out of a text that is given in blocks of `step` bytes.
    private func split(_ text: some Collection<UInt8>, longest: Int = 1000, step: Int = 1 << 20) -> Split {
        var splitter = ObjectSplitter(longest: longest)
        var result = Split()
        func note(_ find: ObjectSplitter.Find) {
            switch find {
            case .more: return
            case .event:
                #expect(splitter.event.last == 0x0A)
                result.events.append(String(decoding: splitter.event.dropLast(), as: UTF8.self))
            case .tooLong(let length): result.events.append("too long: \(length)")
            case .fault(let fault):
                result.fault = fault
                return
            }
            result.offsets.append(splitter.eventOffset)
        }
        let bytes = Array(text)
        for start in stride(from: 0, to: bytes.count, by: step) where result.fault == nil {
            let block = Array(bytes[start..<min(bytes.count, start + step)])
            block.withUnsafeBytes { block in
                var used = 0
                while true {
                    let find = splitter.next(block, used: &used)
                    note(find)
                    if find == .more || result.fault != nil { break }
                }
            }
        }
        result.isWhole = splitter.isComplete
        if result.isWhole { note(splitter.finish()) }
        result.rest = splitter.resumption.offset
        return result
    }

    private func split(_ text: String, longest: Int = 1000, step: Int = 1 << 20) -> Split {
        split(Array(text.utf8), longest: longest, step: step)
    }

    @Test("of an oversized event a fixed part of the beginning is kept, whatever the blocks")
    func excerpts() {
        let excerpt = ObjectSplitter.excerpt
        for length in [101, excerpt - 1, excerpt, excerpt + 1, 2 * excerpt] {
            for longest in [100, excerpt - 10, excerpt + 100] where length > longest {
                for step in [1, 3, 1000, excerpt, 1 << 20] {
                    let text = Array(("\"" + String(repeating: "x", count: length - 2) + "\"").utf8)
                    var splitter = ObjectSplitter(longest: longest)
                    var found: [ObjectSplitter.Find] = []
                    for start in stride(from: 0, to: text.count, by: step) {
                        let block = Array(text[start..<min(text.count, start + step)])
                        block.withUnsafeBytes { block in
                            var used = 0
                            found.append(splitter.next(block, used: &used))
                        }
                    }
                    #expect(found.filter { $0 != .more } == [.tooLong(Int64(length))])
                    #expect(
                        Array(splitter.event.prefix(excerpt)) == Array(text.prefix(excerpt)),
                        "\(length), \(step)")
                    #expect(splitter.event.count <= max(excerpt, longest))
                }
            }
        }
    }

    @Test("a part of a byte order mark is no beginning")
    func partOfAMark() {
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        for count in 1...3 {
            for step in [1, 100] {
                let result = split(mark.prefix(count) + Array("{\"a\":1}".utf8), step: step)
                #expect(result.events == (count == 3 ? [#"{"a":1}"#] : []))
                #expect((result.fault == nil) == (count == 3))
            }
        }
        #expect(!split(mark).isWhole)
    }

    @Test(
        "an event equals the bytes of the file, except for line breaks, whatever the blocks",
        arguments: [
            (#"{"name":"a"}"#, [#"{"name":"a"}"#]),
            ("{\n  \"name\" : \"a b\",\r\n\t\"x\": [1, 2]\n}\n", ["{  \"name\" : \"a b\",\t\"x\": [1, 2]}"]),
            ("[]", []), (" [ ] ", []),
            (#"[{"a":"]},{"},{"b":"\"["}]"#, [#"{"a":"]},{"}"#, #"{"b":"\"["}"#]),
            ("[\n {\"a\": {\"b\": []}}\n,\n {}\n]", [#"{"a": {"b": []}}"#, "{}"]),
            ("[1, {\"a\":1}, \"x y\"]", ["1", #"{"a":1}"#, #""x y""#]),
            ("12", ["12"]), ("\u{FEFF}{\"a\":1}", [#"{"a":1}"#]), ("\u{FEFF} [true]", ["true"]),
            ("{\"a\":1}\n{\"b\":2}\r\n \n{\"c\":3}\n", [#"{"a":1}"#, #"{"b":2}"#, #"{"c":3}"#]),
        ] as [(String, [String])])
    func eventsAreByteForByte(text: String, events: [String]) {
        for step in [1, 2, 3, 7, 1 << 20] {
            let result = split(text, step: step)
            #expect(result.events == events, "blocks of \(step)")
            #expect(result.isWhole && result.fault == nil)
        }
    }

    @Test(
        "events before the first error stand, none after it, and its position is reported",
        arguments: [
            (#"[{"a":1},,{"b":2}]"#, [#"{"a":1}"#], "expected a value at byte 9 of the file", 9),
            (#"[,{"a":1}]"#, [], "expected a value or ] at byte 1 of the file", 1),
            (#"[{"a":1},]"#, [#"{"a":1}"#], "expected a value at byte 9 of the file", 9),
            (#"{"a":1}{"b":2}"#, [#"{"a":1}"#], "expected the end of the text at byte 7 of the file", 7),
            (#"[{"a":1} {"b":2}]"#, [#"{"a":1}"#], "expected a comma or ] at byte 9 of the file", 9),
            ("[,]", [], "expected a value or ] at byte 1 of the file", 1),
            ("[][]", [], "expected the end of the text at byte 2 of the file", 2),
            ("[{}]\n{}", ["{}"], "expected the end of the text at byte 5 of the file", 5),
            ("{}\n[{}]", ["{}"], "expected an object, or the end of the text at byte 3 of the file", 3),
            (#"[{"a":[1}, {"b":1}]"#, [], "expected a comma or ] at byte 8 of the file", 1),
            (
                #"[{},{"a":1} junk, {"b":1}]"#, ["{}", #"{"a":1}"#],
                "expected a comma or ] at byte 12 of the file", 12
            ),
            ("[{\"a\":\"x\ny\"}, {}]", [], "a string has a raw line break at byte 8 of the file", 1),
            (#"[{}, {"a": 1 2}, {}]"#, ["{}"], "expected a comma or } at byte 13 of the file", 5),
            ("[{},01]", ["{}"], "a number is not a JSON number at byte 5 of the file", 4),
            ("junk", [], "expected a value at byte 0 of the file", 0),
            ("]", [], "expected a value at byte 0 of the file", 0),
            ("\u{FEFF}\u{FEFF}{}", [], "expected a value at byte 3 of the file", 0),
        ] as [(String, [String], String, Int64)])
    func nothingAfterTheFirstFault(text: String, events: [String], fault: String, rest: Int64) {
        for step in [1, 2, 3, 7, 1 << 20] {
            let result = split(text, step: step)
            #expect(
                result.events == events && result.fault == fault && result.rest == rest, "blocks of \(step)")
            #expect(!result.isWhole)
        }
    }

    @Test("values of a valid array are judged one by one: an oversized one affects no neighbour")
    func longValuesHurtNobody() {
        for step in [1, 5, 1 << 20] {
            #expect(
                split(#"[{"a":"0123456789"},{}]"#, longest: 12, step: step).events == ["too long: 18", "{}"])
            let long = String(repeating: "x\\n", count: 9000)
            #expect(
                split("[1,\"\(long)\",{}]", longest: 5000, step: step).events == [
                    "1", "too long: 27002", "{}",
                ])
        }
    }

    @Test(
        "an incomplete text is not whole",
        arguments: ["", "  \n", "{", "[", "[{}", "{\"a", "[{},"])
    func fault18_cutTextsAreNotComplete(text: String) {
        for step in [1, 1 << 20] {
            #expect(!split(text, step: step).isWhole)
            #expect(split(text, step: step).fault == nil)
        }
    }

    @Test("random texts, whole and damaged, give the events that Python's json finds, at every boundary")
    func asPythonReadsThem() throws {
        let environment = ProcessInfo.processInfo.environment
        let seed = environment["SPOOLSHIP_SEED"].flatMap(UInt64.init) ?? .random(in: 0...UInt64(UInt32.max))
        let count = environment["SPOOLSHIP_TEXTS"].flatMap(Int.init) ?? 4000
        print("texts against Python's json: seed \(seed)")
        var random = SplitMix64(seed: seed)
        for line in try texts(seed, count).split(separator: "\n") {
            let fields = line.split(separator: " ")
            try #require(fields.count == 4)
            let text = fields[0] == "-" ? [] : Self.bytes(fields[0])
            var expected = Split()
            for found in fields[1] == "-" ? [] : fields[1].split(separator: ",") {
                let parts = found.split(separator: "@")
                expected.events.append(String(decoding: Self.bytes(parts[0]), as: UTF8.self))
                expected.offsets.append(try #require(Int64(parts[1], radix: 16)))
            }
            expected.rest = try #require(Int64(fields[2], radix: 16))
            expected.isWhole = fields[3] == "1"
            // A prefix of a whole text lacks something, and has no fault.
            if expected.isWhole {
                let cut = Int.random(in: 0...text.count, using: &random)
                #expect(split(text[..<cut]).fault == nil, "seed \(seed), cut at \(cut): \(Self.shown(text))")
            }
            let few = [1, 2, Int.random(in: 3...40, using: &random)]
            let steps = text.count < 40 ? Array(1...max(1, text.count)) : few
            for step in steps {
                var result = split(text, step: step)
                #expect(!result.isWhole || result.fault == nil)
                result.fault = nil
                guard result != expected else { continue }
                Issue.record(
                    "seed \(seed), blocks of \(step): \(Self.shown(text)): \(result), not \(expected)")
                return
            }
        }
    }

    private static func shown(_ text: [UInt8]) -> String {
        String(decoding: text, as: UTF8.self).debugDescription
    }

    private static func bytes(_ hexadecimal: Substring) -> [UInt8] {
        let digits = Array(hexadecimal.utf8)
        return stride(from: 0, to: digits.count, by: 2).map {
            UInt8(String(decoding: digits[$0...($0 + 1)], as: UTF8.self), radix: 16) ?? 0
        }
    }

    private func texts(_ seed: UInt64, _ count: Int) throws -> String {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/python3")
        process.arguments = [
            URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Fixtures/texts.py").path,
            "\(seed)",
            "\(count)",
        ]
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        #expect(process.terminationStatus == 0)
        return String(decoding: data, as: UTF8.self)
    }

    @Test("reading continues at the last position as if it had never stopped")
    func placesResume() {
        var random = SplitMix64(seed: 11)
        for round in 0..<400 {
            let events = (0..<Int.random(in: 1...6, using: &random)).map {
                "{ \"n\": \($0), \"s\": \"],[\\\"\" }"
            }
            let text =
                round.isMultiple(of: 2)
                ? Array(("[" + events.joined(separator: " ,\n") + " ]\n").utf8)
                : Array(events.joined(separator: "\n ").utf8)
            let cut = Int.random(in: 0...text.count, using: &random)
            var found = 0
            var first = ObjectSplitter(longest: 1000)
            text[..<cut].withUnsafeBytes { block in
                var used = 0
                while first.next(block, used: &used) != .more { found += 1 }
            }
            var second = ObjectSplitter(longest: 1000, from: first.resumption)
            text[Int(first.resumption.offset)...].withUnsafeBytes { block in
                var used = 0
                while second.next(block, used: &used) != .more { found += 1 }
            }
            #expect(found == events.count)
            #expect(second.isComplete)
        }
    }

    @Test("positions stored by earlier versions are continued", arguments: [#",{"b":2}]"#, #"{"b":2}]"#])
    func earlierPlaces(rest: String) {
        let kept = Checkpoint(key: [], path: "", offset: 9, state: [2, 3])
        var splitter = ObjectSplitter(longest: 100, from: ObjectSplitter.Resumption(kept) ?? .start)
        var used = 0
        let find = Array(rest.utf8).withUnsafeBytes { splitter.next($0, used: &used) }
        #expect(find == .event && splitter.event == Array("{\"b\":2}\n".utf8))
    }
}
