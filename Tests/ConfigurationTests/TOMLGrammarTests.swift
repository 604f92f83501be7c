import TestKit
import Testing

@testable import Configuration

@Suite("TOML 1.0, rule by rule")
struct TOMLGrammarTests {
    static func read(_ text: String) -> (root: TOMLNode, problems: [Problem]) {
        var sources = SourceLines()
        sources.add(text, file: "t.toml")
        return TOMLText.read(text, file: "t.toml", sources: sources)
    }

    @Test("every construct of the grammar reads with its meaning", arguments: TOMLCorpus.valid)
    func validTexts(sample: TOMLCorpus.Valid) {
        let (root, problems) = TOMLGrammarTests.read(sample.text)
        #expect(problems.map(\.text) == [])
        #expect(root.shown == sample.value)
    }

    @Test("every violation of the grammar is a mistake with its line", arguments: TOMLCorpus.invalid)
    func invalidTexts(sample: TOMLCorpus.Invalid) {
        let (root, problems) = TOMLGrammarTests.read(sample.text)
        #expect(problems.first?.code == .syntax, "read as \(root.shown)")
        #expect(problems.first?.position?.line == sample.line, "\(problems.first?.text ?? "")")
    }

    @Test("a printed text reads back, whatever characters it has")
    func quotedTexts() {
        for scalar in (0...UInt32(0x2FF)).compactMap({ Unicode.Scalar($0) }) {
            let text = "a\(scalar)b"
            let (root, problems) = TOMLGrammarTests.read("x = \(SettingValue.quote(text))\n")
            #expect(
                problems.isEmpty && root.shown == "{x: \"\(text)\"}", "U+\(String(scalar.value, radix: 16))")
        }
        // Our reader takes it as it is, others need not.
        #expect(SettingValue.quote("a\u{7F}") == #""a\u007f""#)
    }

    @Test(
        "invalid UTF-8 is refused with its position, not replaced",
        arguments: TOMLCorpus.notUTF8.indices)
    func bytesThatAreNotUTF8(index: Int) throws {
        let sample = TOMLCorpus.notUTF8[index]
        let mistake = #expect(throws: Problem.self, "\(sample.place)") {
            try ConfigurationText(file: "t.toml", bytes: sample.bytes)
        }
        #expect(mistake?.code == .syntax)
        #expect(
            mistake?.position == Position(file: "t.toml", line: sample.line, column: sample.column),
            "\(sample.place)")
        #expect(mistake?.message.hasPrefix("not UTF-8: byte 0x") == true)
    }
}

extension TOMLNode {
    /// The value, in one line, keys in order; strings as they are.
    var shown: String {
        switch value {
        case .table(let members):
            "{"
                + members.sorted { Array($0.key.utf8).lexicographicallyPrecedes(Array($1.key.utf8)) }
                .map { "\($0.key): \($0.node.shown)" }.joined(separator: ", ") + "}"
        case .array(let nodes): "[" + nodes.map(\.shown).joined(separator: ", ") + "]"
        case .string(let text): "\"\(text)\""
        case .integer(let number): "\(number)"
        case .double(let number): number.isNaN ? "nan" : "\(number)"
        case .boolean(let flag): "\(flag)"
        case .date: "date"
        }
    }
}
