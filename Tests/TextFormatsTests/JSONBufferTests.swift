import TestKit
import Testing

@testable import TextFormats

@Suite("JSON text that is being written")
struct JSONBufferTests {
    /// The content of a text as it is written, in memory that ends with the text or goes on behind it.
    private func written(_ text: [UInt8], tail: Int) -> (text: String, isRepaired: Bool) {
        var json = JSONBuffer()
        let memory = text + [UInt8](repeating: UInt8(ascii: "\""), count: tail)
        return memory.withUnsafeBytes { raw in
            let all = Bytes(raw)
            json.begin(readableTo: all.end)
            json.string(Bytes(all.start, text.count))
            return (String(decoding: json.bytes.dropFirst(), as: UTF8.self), json.isRepaired)
        }
    }

    @Test("characters that JSON forbids in texts are escaped, and what is behind the text is not read")
    func escapes() {
        let text = "plain \"quoted\" back\\slash\nline\ttab\rreturn\u{1}\u{1F}\u{7F} ü 🙂"
        let wanted = #""plain \"quoted\" back\\slash\nline\ttab\rreturn\u0001\u001f"# + "\u{7F} ü 🙂\""
        for tail in [0, 1, 15, 16, 40] {
            let found = written(Array(text.utf8), tail: tail)
            #expect(found.text == wanted && !found.isRepaired)
        }
    }

    @Test("bytes that are not UTF-8 become U+FFFD, as in String(decoding:as:)", arguments: Seeds.list(1...20))
    func repair(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for _ in 0..<500 {
            let text = (0..<Int.random(in: 0...40, using: &random)).map { _ in
                // Bytes of characters of all lengths, and plain ones.
                [0x61, 0x80, 0xBF, 0xC2, 0xE0, 0xED, 0xEF, 0xF0, 0xF4, 0xA0, 0x90].randomElement(
                    using: &random) ?? UInt8(0x61)
            }
            let wanted = String(decoding: text, as: UTF8.self)
            for tail in [0, 16] {
                let found = written(text, tail: tail)
                #expect(found.text == "\"\(wanted)\"", "\(Seeds.again(seed)): \(text)")
                #expect(found.isRepaired == !(Array(wanted.utf8) == text))
            }
        }
    }

    @Test("it grows with the text, and the next object begins anew")
    func growth() {
        var json = JSONBuffer()
        let text = [UInt8](repeating: UInt8(ascii: "a"), count: 100_000)
        for _ in 0..<2 {
            text.withUnsafeBytes { raw in
                json.begin(readableTo: Bytes(raw).end)
                json.name("n")
                json.string(Bytes(raw))
                json.comma()
                json.end(padding: 32)
            }
            let bytes = Array(json.bytes)
            #expect(bytes == Array("{\"n\":\"".utf8) + text + Array("\"}\n".utf8))
        }
    }

    @Test("the last comma becomes the brace, and an empty object has one too")
    func objects() {
        var json = JSONBuffer()
        let nothing = Bytes.none
        json.begin(readableTo: nothing.end)
        json.end(padding: 1)
        #expect(Array(json.bytes) == Array("{}\n".utf8))
        json.begin(readableTo: nothing.end)
        json.name("a")
        json.append("1,")
        let mark = json.mark
        json.name("b")
        json.append("2,")
        json.goBack(to: mark)
        json.end(padding: 1)
        #expect(Array(json.bytes) == Array("{\"a\":1}\n".utf8))
    }

    @Test("backslashes before quotes and backslashes go, others stay")
    func unescape() {
        let text = Array(#"a\"b\\c\x16\"#.utf8)
        var json = JSONBuffer()
        text.withUnsafeBytes { raw in
            json.begin(readableTo: Bytes(raw).end)
            json.openString()
            json.unescape(Bytes(raw))
            json.closeString()
        }
        let wanted = #"{"a\"b\\c\\x16\\","#
        #expect(String(decoding: json.bytes, as: UTF8.self) == wanted)
    }
}
