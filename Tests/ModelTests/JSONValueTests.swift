import Model
import TestKit
import Testing

@Suite("JSON values")
struct JSONValueTests {
    @Test("written values read back equal, pretty or not")
    func roundTrip() throws {
        for seed in UInt64(1)...200 {
            var random = SplitMix64(seed: seed)
            let value = JSONValueTests.random(depth: 0, &random)
            #expect(try JSONValue(parsing: value.description) == value, "seed \(seed)")
            #expect(try JSONValue(parsing: value.pretty) == value, "seed \(seed)")
            #expect(!value.description.contains("\n"), "seed \(seed)")
        }
    }

    @Test("a byte that is not UTF-8 is named by its position, a byte order mark by its encoding")
    func encodings() throws {
        let valid = Array("{\"ä\": \"".utf8)
        for (bytes, text) in [
            (valid + [0xFF] + Array("\"}".utf8), "not JSON at byte 8: the text is not UTF-8"),
            (valid + [0xC3], "not JSON at byte 8: the text is not UTF-8"),
            (valid + [0xE2, 0x82] + Array("\"}".utf8), "not JSON at byte 8: the text is not UTF-8"),
            (
                [0xEF, 0xBB, 0xBF] + Array("{}".utf8),
                "not JSON at byte 0: the text begins with a byte order mark of UTF-8; save it as UTF-8 without the mark"
            ),
            (
                [0xFF, 0xFE, 0x7B, 0, 0x7D, 0],
                "not JSON at byte 0: the text begins with a byte order mark of UTF-16; save it as UTF-8 without the mark"
            ),
        ] {
            let error = #expect(throws: JSONError.self) { try JSONValue(parsing: bytes) }
            #expect(error?.description == text)
        }
    }

    private static func random(depth: Int, _ random: inout SplitMix64) -> JSONValue {
        func text(_ random: inout SplitMix64) -> String {
            let characters: [Unicode.Scalar] = [
                "a", "\"", "\\", "\n", "\0", "é", "😀", "\u{7F}", "/", "\u{FFFF}",
            ]
            var text = String.UnicodeScalarView()
            for _ in 0..<Int.random(in: 0...40, using: &random) {
                text.append(characters[Int.random(in: 0..<characters.count, using: &random)])
            }
            return String(text)
        }
        switch Int.random(in: 0..<(depth > 4 ? 5 : 7), using: &random) {
        case 0: return .null
        case 1: return .bool(Bool.random(using: &random))
        case 2: return .integer(Int.random(in: .min ... .max, using: &random))
        case 3: return .double(Double.random(in: -1e30...1e30, using: &random))
        case 4: return .string(text(&random))
        case 5:
            let count = Int.random(in: 0...4, using: &random)
            return .array((0..<count).map { _ in self.random(depth: depth + 1, &random) })
        default:
            let count = Int.random(in: 0...4, using: &random)
            return .object(
                (0..<count).map { _ in .init(text(&random), self.random(depth: depth + 1, &random)) })
        }
    }

    @Test(
        "the usual forms are read and written",
        arguments: [
            (#" { "a" : [ 1 , -2.5e3, true , null ] } "#, #"{"a":[1,-2500.0,true,null]}"#),
            (#""\u00e9\ud83d\ude00\/\b""#, "\"é😀/\\u0008\""),
            ("9223372036854775808", "9.223372036854776e+18"),
            ("-0", "0"), ("[]", "[]"), ("{}", "{}"), ("1E2", "100.0"),
        ])
    func forms(text: String, written: String) throws {
        #expect(try JSONValue(parsing: text).description == written)
    }

    @Test(
        "anything else is refused with its position",
        arguments: [
            "", " ", "{", "[1,]", "{\"a\":1,}", "{a:1}", "01", "1.", ".5", "+1", "1e", "--1", "tru", "nulls",
            "[1 2]",
            "\"a", "\"\\x\"", "\"\\u12g4\"", #""\ud800""#, #""\ud800\u0041""#, #""\udc00""#, "\"\n\"",
            "1e999", "[1]]",
            "{\"a\" 1}", "\u{FEFF}{}", "NaN",
        ])
    func refused(text: String) {
        #expect(throws: JSONError.self) { try JSONValue(parsing: text) }
    }

    @Test("hostile texts neither crash nor take long: depth, invalid UTF-8, random bytes")
    func hostile() throws {
        #expect(throws: JSONError.self) {
            try JSONValue(parsing: Array(repeating: UInt8(ascii: "["), count: 1_000_000))
        }
        #expect(throws: JSONError.self) { try JSONValue(parsing: [0x22, 0xC3, 0x22]) }
        var random = SplitMix64(seed: Seeds.one(7))
        let alphabet = Array(#"{}[]",:\u0e-+.tfn 19"#.utf8)
        for _ in 0..<20_000 {
            let count = Int.random(in: 0...30, using: &random)
            let bytes = (0..<count).map { _ in alphabet[Int.random(in: 0..<alphabet.count, using: &random)] }
            if let value = try? JSONValue(parsing: bytes) {
                #expect(try JSONValue(parsing: value.description) == value)
            }
        }
    }

    @Test("members are found by key, the last of equal ones")
    func members() throws {
        let value = try JSONValue(parsing: #"{"a":1,"b":"x","a":2}"#)
        #expect(value["a"]?.integer == 2)
        #expect(value["b"]?.string == "x")
        #expect(value["c"] == nil)
        #expect(JSONValue.array([])["a"] == nil)
    }
}
