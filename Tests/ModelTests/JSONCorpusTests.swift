import EventLoops
import Model
import TestKit
import Testing

@Suite("JSON corner cases: values and strings")
struct JSONCorpusTests {
    @Test("the reader accepts what RFC 8259 accepts, with the same meaning", arguments: JSONCorpus.cases)
    func reader(value: JSONCorpus.Case) throws {
        guard value.isValid else {
            #expect(throws: JSONError.self) { try JSONValue(parsing: value.object) }
            return
        }
        let object = try JSONValue(parsing: value.object)
        #expect(object["before"] == .integer(0) && object["after"] == .array([]))
        if let string = value.string { #expect(object["value"] == .string(string)) }
        // What is written means the same again.
        #expect(try JSONValue(parsing: object.description) == object)
        #expect(try JSONValue(parsing: object.pretty) == object)
    }

    @Test("strings: appended text keeps its meaning; unescaping without validation never fails")
    func strings() throws {
        for string in JSONCorpus.strings {
            var json: [UInt8] = []
            var text = string
            text.withUTF8 { JSONString.append($0, to: &json) }
            #expect(try JSONValue(parsing: json) == .string(string))
            #expect(
                json.dropFirst().dropLast().withUnsafeBufferPointer { JSONString.decoded($0) }
                    == Array(string.utf8))
        }
        for value in JSONCorpus.cases where value.bytes.first == UInt8(ascii: "\"") && value.bytes.count > 1 {
            let decoded = value.bytes.dropFirst().dropLast().withUnsafeBufferPointer {
                JSONString.decoded($0)
            }
            if let string = value.string { #expect(decoded == Array(string.utf8)) }
        }
    }

    @Test("strings: an escape is found anywhere, among ASCII and other text, and invalid UTF-8 is kept")
    func escapesAtEachPlace() {
        let escapes: [(byte: UInt8, text: String)] = [
            (0x22, #"\""#), (0x5C, #"\\"#), (0x00, #"\u0000"#), (0x1F, #"\u001f"#), (0x20, " "),
            (0x7F, "\u{7F}"),
        ]
        for filler in ["a", "é"].map({ Array($0.utf8) }) + [[0xFF]] {
            for place in 0..<40 {
                let (before, after) = (Array(repeatElement(filler, count: place).joined()), filler + filler)
                for (byte, text) in escapes {
                    var json: [UInt8] = []
                    (before + [byte] + after).withUnsafeBufferPointer { JSONString.append($0, to: &json) }
                    let expected: [UInt8] = before + Array(text.utf8) + after
                    #expect(json == [0x22] + expected + [0x22], "\(byte) at \(place)")
                }
            }
        }
    }

    @Test("strings: text escaped into memory is what text appended to an array is")
    func escapedIntoMemory() {
        var random = RepeatableRandom(seed: 57)
        let bytes: [UInt8] = [0x22, 0x5C, 0x61, 0x20, 0x7F, 0xC3, 0xA9, 0x22]
        for round in 0..<2000 {
            // Control characters are rare, because each ends a run.
            let text: [UInt8] = (0..<Int.random(in: 0...90, using: &random)).map { _ in
                Int.random(in: 0...40, using: &random) == 0 && round % 2 == 0
                    ? UInt8.random(in: 0...31, using: &random) : bytes[Int.random(in: 0...7, using: &random)]
            }
            var appended: [UInt8] = []
            text.withUnsafeBufferPointer { JSONString.append($0, to: &appended) }
            let escaped = [UInt8](unsafeUninitializedCapacity: text.count * JSONString.longestEscape + 16) {
                memory, count in
                guard let start = memory.baseAddress else { return }
                count = text.withUnsafeBufferPointer { JSONString.escape($0, to: start) }
            }
            #expect([0x22] + escaped + [0x22] == appended, "\(text)")
        }
    }

    @Test("unescaping: incomplete escapes become U+FFFD, and the text after them stays")
    func halves() {
        for (text, meaning) in [
            (#"\ud800"#, "\u{FFFD}"), (#"\ud800x"#, "\u{FFFD}x"), (#"\udc00\ud83d\ude00"#, "\u{FFFD}😀"),
            (#"\ud83d\ud83d\ude00"#, "\u{FFFD}😀"), (#"\u12"#, "\u{FFFD}"), (#"a\"#, #"a\"#), (#"\x"#, "x"),
        ] {
            #expect(
                Array(text.utf8).withUnsafeBufferPointer { JSONString.decoded($0) } == Array(meaning.utf8))
        }
    }
}
