/// Corner cases of JSON: each reader and each writer of the agent is held against all of them.
public enum JSONCorpus {
    /// A value in an object, as it is written.
    public struct Case: Sendable, CustomStringConvertible {
        /// The value's bytes.
        public let bytes: [UInt8]
        /// Whether RFC 8259 takes it, in UTF-8.
        public let isValid: Bool
        /// What it means, if it is a valid string.
        public let string: String?

        /// The value between two other members: `{"before":0,"value":…,"after":[]}`.
        public var object: [UInt8] {
            Array(#"{"before":0,"value":"#.utf8) + bytes + Array(#","after":[]}"#.utf8)
        }

        /// For messages.
        public var description: String { String(decoding: bytes, as: UTF8.self).debugDescription }
    }

    /// All of them.
    public static let cases: [Case] = valid + invalid

    /// Strings that writers have to get through: the meanings of all valid strings, and each control character.
    public static let strings: [String] =
        valid.compactMap(\.string)
        + (0..<0x20).map { "a" + String(Character(Unicode.Scalar(UInt8($0)))) + "b" }

    private static let valid: [Case] = {
        var cases = [
            ("\"\"", ""), ("\"a\"", "a"), (#""\"""#, "\""), (#""\\""#, "\\"), (#""\/""#, "/"),
            (#""\b\f\n\r\t""#, "\u{8}\u{C}\n\r\t"), (#""\u0041""#, "A"), (#""\u00e9\u00E9""#, "éé"),
            (#""\ud83d\ude00""#, "😀"), (#""\uD83D\uDE00x""#, "😀x"), ("\"é😀\"", "é😀"), (#""\u0000""#, "\0"),
            (#""\u001f\u007f""#, "\u{1F}\u{7F}"), ("\"\u{7F}\"", "\u{7F}"), (#""\u2028""#, "\u{2028}"),
            (#""\ufffd\uffff""#, "\u{FFFD}\u{FFFF}"), (#""]},\":{[""#, "]},\":{["), (#""\\\\\"""#, "\\\\\""),
            (#""\\u0041""#, "\\u0041"),
        ].map { Case(bytes: Array($0.0.utf8), isValid: true, string: $0.1) }
        // Around the steps of readers that look at 16 or 32 bytes at once.
        for length in [14, 15, 16, 17, 30, 31, 32, 33, 63, 64] {
            let plain = String(repeating: "x", count: length)
            cases.append(Case(bytes: Array("\"\(plain)\"".utf8), isValid: true, string: plain))
            cases.append(Case(bytes: Array("\"\(plain)\\\"y\"".utf8), isValid: true, string: plain + "\"y"))
            cases.append(
                Case(bytes: Array("\"\(plain)\\ud83d\\ude00\"".utf8), isValid: true, string: plain + "😀"))
            cases.append(Case(bytes: Array("\"\(plain)é\"".utf8), isValid: true, string: plain + "é"))
        }
        let others = [
            "0", "-0", "7", "-12", "1e5", "1E+5", "0.5", "-1.25e-3", "12345678901234567890", "true", "false",
            "null",
            "[]", "[ ]", "{}", "{ }", "[1,[2,{\"b\":\"}]\"}],3]", "{\"a\":{\"a\":{}}}", " 1 ",
            "\t[ 1 , 2 ]\t",
            "{\"\":0}", "{\"a\":1,\"a\":2}", #"{"\u0061":[{}]}"#,
        ]
        return cases + others.map { Case(bytes: Array($0.utf8), isValid: true, string: nil) }
    }()

    private static let invalid: [Case] = {
        let texts = [
            "", "\"", "\"a", #""\""#, #""\x""#, #""\u12""#, #""\u12g4""#, #""\ud800""#, #""\udc00""#,
            #""\ud800\u0041""#,
            #""\ud83d\ud83d""#, "\"\u{1}\"", "\"\t\"", "01", "-", "1.", ".5", "+1", "1e", "1e+", "0x1", "tru",
            "True",
            "nul", "truee", "NaN", "Infinity", "'a'", "[1,]", "[,1]", "[1", "]", "[1}", "{\"a\"}", "{\"a\":}",
            "{\"a\":1,}",
            "{a:1}", "{\"a\":1", "{1:1}", "1 2", "\"a\"\"b\"", "/* */1",
        ].map { Array($0.utf8) }
        let notUTF8: [[UInt8]] = [
            [0x80], [0xC0, 0x80], [0xC3], [0xE0, 0x80, 0x80], [0xED, 0xA0, 0x80], [0xF0, 0x80, 0x80, 0x80],
            [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80], [0xFF], [0xE2, 0x82],
        ].map { [0x22] + $0 + [0x22] }
        return (texts + notUTF8).map { Case(bytes: $0, isValid: false, string: nil) }
    }()
}
