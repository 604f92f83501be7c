import Testing

@testable import EventLoops

@Suite("Text from outside")
struct PrintableTextTests {
    @Test("of all of Unicode, terminal controls and invisible characters are escaped, and no others")
    func everyCharacter() {
        for value in UInt32(0)...0x10FFFF {
            guard let scalar = Unicode.Scalar(value) else { continue }
            let text = "a\(scalar)b"
            let escaped = PrintableText.escaped(text)
            let isControl = value < 0x20 || (0x7F...0x9F).contains(value)
            let turnsText =
                [0x061C, 0x200E, 0x200F].contains(value) || (0x202A...0x202E).contains(value)
                || (0x2066...0x2069).contains(value)
            let endsLine = value == 0x2028 || value == 0x2029
            if isControl || turnsText || endsLine {
                #expect(escaped != text, "U+\(String(value, radix: 16))")
            }
            if escaped != text {
                #expect(escaped.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7F })
            }
        }
        #expect(PrintableText.escaped("grün 日本 é 🙂") == "grün 日本 é 🙂")
    }

    @Test("escapes are those of JSON, and named characters stay on request")
    func escapes() {
        #expect(PrintableText.escaped("a\u{1B}[2J\u{E0001}\n") == "a\\u001b[2J\\udb40\\udc01\\u000a")
        #expect(PrintableText.escaped("a\tb\nc\u{7F}", keeping: ["\t", "\n"]) == "a\tb\nc\\u007f")
    }
}
