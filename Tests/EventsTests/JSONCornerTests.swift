@testable import Events
import Testing

@Suite("JSON by RFC 8259: corner cases and results")
struct JSONCornerTests {
    @Test(
        "valid JSON is accepted",
        arguments: [
            #"{}"#, #" {} "#, "\t{\"a\"\t:\t1\t}\t", "\r{\"a\":1\r}\r", #"{"a":1,"b":2}"#, #"{"":0}"#,
            #"{"a":{}}"#,
            #"{"a":[]}"#,
            #"{"a":[ ]}"#, #"{"a":[[],[[]],{}]}"#, #"{"a":[1,2 , 3]}"#, #"{"a":[null,true,false]}"#,
            #"{"a":"a","a":"b"}"#,
            // Numbers.
            #"{"a":0}"#, #"{"a":-0}"#, #"{"a":0.1}"#, #"{"a":-0.0}"#, #"{"a":1e1}"#, #"{"a":1E+2}"#,
            #"{"a":1e-2}"#,
            #"{"a":123.456e78}"#, #"{"a":0e1}"#, #"{"a":0e+1}"#, #"{"a":-1}"#, #"{"a":20e1}"#,
            #"{"a":1.5E999}"#,
            #"{"a":-123123e100000}"#, #"{"a":100000000000000000000000000000000000000000}"#,
            #"{"a":1e-99999}"#,
            // Strings.
            #"{"a":"\"\\\/\b\f\n\r\t"}"#, #"{"a":"\u0000"}"#, #"{"a":"\u0061\u30af\u30EA"}"#,
            #"{"a":"\uD801\udc37"}"#,
            #"{"a":"\ud83d\ude39\ud83d\udc8d"}"#, #"{"a":"\u2028\u2029"}"#,
            #"{"a":"\uFFFE\uFDD0\uDBFF\uDFFE"}"#,
            "{\"a\":\"\u{7F}\"}", "{\"a\":\"\u{2028}\u{2029}\"}", "{\"a\":\"€𝄞é\u{FFFF}\u{10FFFF}\u{FEFF}\"}",
            #"{"a":"/* */ // #"}"#, "{\"⍂㈴⍂\":1}", #"{"a\u0000b":1}"#, #"{"a":"\\u0041"}"#, #"{"a":"\\"}"#,
            "{\"a\":\"12345678\"}", "{\"a\":\"1234567\"}", "{\"a\":\"123456789\"}", "{\"a\":\"é1234567é\"}",
        ])
    func y_accepted(line: String) {
        #expect(failure(line) == nil)
    }

    @Test(
        "invalid JSON is refused, with the position",
        arguments: [
            // Structure.
            ("", .blank, 0), ("   ", .blank, 3), ("\r", .blank, 1), ("{", .cutShort, 1),
            (#"{"a"#, .cutShort, 3),
            (#"{"a""#, .cutShort, 4), (#"{"a":"#, .cutShort, 5), (#"{"a":1"#, .cutShort, 6),
            (#"{"a":1,"#, .cutShort, 7),
            (#"{"a":"b"#, .cutShort, 7), (#"{"a":["#, .cutShort, 6), (#"{"a":[1"#, .cutShort, 7),
            (#"{"a":tru"#, .cutShort, 8),
            (#"{"a":-"#, .cutShort, 6), (#"{"a":1."#, .cutShort, 7), (#"{"a":1e"#, .cutShort, 7),
            (#"{"a":"\"#, .cutShort, 7),
            (#"{"a":"\u00"#, .cutShort, 10), (#"{"a":1,}"#, .expectedName, 7),
            (#"{,"a":1}"#, .expectedName, 1),
            (#"{a:1}"#, .expectedName, 1), (#"{'a':1}"#, .expectedName, 1), (#"{1:1}"#, .expectedName, 1),
            (#"{"a" 1}"#, .expectedColon, 5), (#"{"a"::1}"#, .expectedValue, 5),
            (#"{"a":}"#, .expectedValue, 5),
            (#"{"a":1 "b":2}"#, .expectedCommaOrEnd, 7), (#"{"a":1;"b":2}"#, .expectedCommaOrEnd, 6),
            (#"{"a":1}}"#, .trailingText, 7), (#"{"a":1}#"#, .trailingText, 7),
            (#"{"a":1} {}"#, .trailingText, 8),
            (#"{"a":1}/**/"#, .trailingText, 7), (#"{"a":/**/1}"#, .expectedValue, 5),
            (#"{"a":[1,]}"#, .expectedValue, 8),
            (#"{"a":[,1]}"#, .expectedValue, 6), (#"{"a":[1 2]}"#, .expectedCommaOrEnd, 8),
            (#"{"a":[1}"#, .expectedCommaOrEnd, 7), (#"{"a":{"b":1]}"#, .expectedCommaOrEnd, 11),
            (#"{"a":{"b"}}"#, .expectedColon, 9), (#"{"a":{1}}"#, .expectedName, 6),
            (#"{"a":[{]}"#, .expectedName, 7),
            ("{\"a\":\u{C}1}", .expectedValue, 5), ("{\u{A0}\"a\":1}", .expectedName, 1),
            ("\u{FEFF}{}", .byteOrderMark, 0),
            ("\0", .expectedValue, 0), ("{}\0", .trailingText, 2), ("{\"a\":\0}", .expectedValue, 5),
            // Not an object.
            ("1", .notAnObject, 0), (#""a""#, .notAnObject, 0), ("null", .notAnObject, 0),
            (" [1]", .notAnObject, 1),
            ("[", .cutShort, 1), ("[1]x", .trailingText, 3), ("nul", .cutShort, 3),
            ("hello", .expectedValue, 0),
            // Numbers.
            (#"{"a":01}"#, .badNumber, 6), (#"{"a":-01}"#, .badNumber, 7), (#"{"a":+1}"#, .badNumber, 5),
            (#"{"a":.5}"#, .badNumber, 5), (#"{"a":1.}"#, .badNumber, 7), (#"{"a":1.e1}"#, .badNumber, 7),
            (#"{"a":1e}"#, .badNumber, 7), (#"{"a":1e+}"#, .badNumber, 8), (#"{"a":-}"#, .badNumber, 6),
            (#"{"a":--1}"#, .badNumber, 6), (#"{"a":NaN}"#, .badNumber, 5),
            (#"{"a":-Infinity}"#, .badNumber, 6),
            (#"{"a":Infinity}"#, .badNumber, 5), (#"{"a":0x1}"#, .expectedCommaOrEnd, 6),
            (#"{"a":1a}"#, .expectedCommaOrEnd, 6),
            (#"{"a":1.2.3}"#, .expectedCommaOrEnd, 8), (#"{"a":1e1.5}"#, .expectedCommaOrEnd, 8),
            ("{\"a\":１}", .expectedValue, 5), (#"{"a":- 1}"#, .badNumber, 6),
            // Literals.
            (#"{"a":True}"#, .expectedValue, 5), (#"{"a":nul}"#, .expectedValue, 5),
            (#"{"a":truth}"#, .expectedValue, 5),
            (#"{"a":truee}"#, .expectedCommaOrEnd, 9), (#"{"a":undefined}"#, .expectedValue, 5),
            // Strings.
            ("{\"a\":\"\t\"}", .controlCharacter, 6), ("{\"a\":\"\u{1F}\"}", .controlCharacter, 6),
            ("{\"a\":\"\0\"}", .controlCharacter, 6), ("{\"a\":\"\r\"}", .controlCharacter, 6),
            (#"{"a":"\x00"}"#, .badEscape, 7), (#"{"a":"\a"}"#, .badEscape, 7),
            (#"{"a":"\u00G0"}"#, .badEscape, 10),
            (#"{"a":"\u00"}"#, .badEscape, 10), (#"{"a":"\U0041"}"#, .badEscape, 7),
            (#"{"a":"\é"}"#, .badEscape, 7),
            (#"{"a":"\'"}"#, .badEscape, 7), (#"{"a":"\uD800"}"#, .loneSurrogate, 6),
            (#"{"a":"\uDC00"}"#, .loneSurrogate, 6),
            (#"{"a":"\uD800x"}"#, .loneSurrogate, 6), (#"{"a":"\uD800\n"}"#, .loneSurrogate, 6),
            (#"{"a":"\uD800\uD800"}"#, .loneSurrogate, 6), (#"{"a":"\uD800\u0041"}"#, .loneSurrogate, 6),
            (#"{"a":"\uDC00\uD800"}"#, .loneSurrogate, 6), (#"{"a":"\uDC00\uDC00"}"#, .loneSurrogate, 6),
            (#"{"a":'b'}"#, .expectedValue, 5),
            // Properties.
            (#"{"properties":{x":1}}"#, .expectedName, 15),
            (#"{"properties":{"x":1,y":1}}"#, .expectedName, 21),
        ] as [(String, ScanFailure.Code, Int)])
    func n_refused(line: String, code: ScanFailure.Code, byte: Int) {
        #expect(failure(line) == ScanFailure(code: code, byte: byte), "\(line.debugDescription)")
    }

    @Test(
        "invalid UTF-8 is refused, with the position",
        arguments: [
            [0x80], [0xBF], [0xFF], [0xFE], [0xC0, 0x80], [0xC1, 0xBF], [0xE0, 0x80, 0x80],
            [0xE0, 0x9F, 0xBF],
            [0xED, 0xA0, 0x80], [0xED, 0xBF, 0xBF], [0xF0, 0x80, 0x80, 0x80], [0xF0, 0x8F, 0xBF, 0xBF],
            [0xF4, 0x90, 0x80, 0x80],
            [0xF5, 0x80, 0x80, 0x80], [0xF8, 0x88, 0x80, 0x80, 0x80], [0xC3], [0xE2, 0x82],
            [0xF0, 0x9D, 0x84],
            [0xC3, 0x28],
            [0xE2, 0x28, 0xA1], [0xE2, 0x82, 0x28], [0xF0, 0x28, 0x8C, 0xBC], [0xF0, 0x9D, 0x28, 0xBC],
            [0xF0, 0x9D, 0x84, 0x28],
        ] as [[UInt8]])
    func n_notUTF8(bytes: [UInt8]) {
        for filler in 0..<40 {
            let before = Array("{\"a\":\"".utf8) + [UInt8](repeating: 0x78, count: filler)
            #expect(
                failure(before + bytes + Array("\"}".utf8)) == ScanFailure(code: .notUTF8, byte: before.count)
            )
            #expect(failure(before + bytes) == ScanFailure(code: .notUTF8, byte: before.count))
        }
    }

    @Test("every Unicode scalar is accepted, plain and escaped")
    func y_everyScalar() {
        for value in UInt32(0x80)...0x10FFFF {
            guard let scalar = Unicode.Scalar(value), value < 0x3000 || value % 17 == 0 || value & 0xFF > 0xF0
            else {
                continue
            }
            var line = Array("{\"a\":\"".utf8)
            line.append(contentsOf: Array(String(Character(scalar)).utf8))
            line.append(contentsOf: Array("\"}".utf8))
            if let failure = failure(line) {
                Issue.record("U+\(String(value, radix: 16)): \(failure.message)")
                return
            }
        }
    }

    @Test("depth 64 is read, 65 and 100,000 are too deep", arguments: [("[", "]"), ("{\"a\":", "}")])
    func depth(open: String, close: String) {
        func nested(_ levels: Int) -> String {
            "{\"a\":" + String(repeating: open, count: levels - 1) + "1"
                + String(repeating: close, count: levels - 1)
                + "}"
        }
        #expect(failure(nested(64)) == nil)
        #expect(failure(nested(65)) == ScanFailure(code: .tooDeep, byte: 5 + 63 * open.utf8.count))
        #expect(failure(nested(100_000)) == ScanFailure(code: .tooDeep, byte: 5 + 63 * open.utf8.count))
        #expect(failure(String(repeating: open, count: 100_000))?.code == .tooDeep)
        #expect(failure("{\"properties\":\(nested(63))}") == nil)
        #expect(failure("{\"properties\":\(nested(64))}")?.code == .tooDeep)
    }

    @Test("each failure has a sentence with the position")
    func messages() {
        for code in ScanFailure.Code.allCases where code != .blank {
            #expect(ScanFailure(code: code, byte: 4711).message.contains("4711"))
        }
    }
}
