import TestKit
import Testing

/// What the documents for the night quote, the program must say.
@Suite("Texts that docs quote")
struct DocumentedTextsTests {
    /// What begins a command, which is run and not printed.
    private static let commands: Set<Substring> = [
        "spoolship", "systemctl", "journalctl", "ls", "ss", "ps", "df", "curl", "sed", "coredumpctl", "chmod",
        "network", "ping",
        "ExecReload", "sqlite3",
    ]

    /// The texts of the sources, with what is put together of several literals in one piece.
    private static func sources() throws -> String {
        let (code, text) = try runShell("cat $(find '\(GoldenFile.root)/Sources' -name '*.swift')")
        try #require(code == 0)
        let words = text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        return words.replacing("\" + \"", with: "").replacing("\\\"", with: "\"")
    }

    /// What stands between backticks and is a sentence, not a name or a command.
    static func quoted(_ page: String) -> [String] {
        // Blocks are sessions at a terminal: their lines are looked at apart.
        let prose = page.split(separator: "\n").filter { !$0.hasPrefix("    ") && !$0.hasPrefix("```") }
            .joined(separator: " ")
        let pieces = prose.split(separator: "`", omittingEmptySubsequences: false)
        return stride(from: 1, to: pieces.count, by: 2).map { String(pieces[$0]) }.filter { text in
            let words = text.split(separator: " ")
            guard words.count > 2, let first = words.first, !commands.contains(first) else { return false }
            return !text.contains(" = ") && !text.contains("://") && !text.hasPrefix("-")
                && !text.hasPrefix("<")
        }
    }

    /// The parts of a quotation that stand as they are: `…`, numbers and names are what the program puts in.
    private static func fixed(_ quotation: String) -> [String] {
        quotation.split(separator: "…").map { part in
            part.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        }.filter { $0.count > 5 }
    }

    @Test(
        "troubleshooting.md and runbook.md quote only what the program prints",
        arguments: ["troubleshooting", "runbook"])
    func quotationsAreTrue(page: String) throws {
        let sources = try DocumentedTextsTests.sources()
        let quotations = DocumentedTextsTests.quoted(try readFile("\(GoldenFile.root)/docs/\(page).md"))
        #expect(quotations.count > 1, "\(quotations)")
        for quotation in quotations {
            for part in DocumentedTextsTests.fixed(quotation) {
                let isSaid = sources.contains(part)
                #expect(isSaid, "docs/\(page).md quotes \"\(part)\", which no source says")
            }
        }
    }

    @Test("the comparison finds a text that differs")
    func theCheckCanFail() throws {
        let page =
            "say `spoolship status now please` or `a b`; it says `no such words are ever printed … here or there`."
        #expect(DocumentedTextsTests.quoted(page) == ["no such words are ever printed … here or there"])
        #expect(
            try !DocumentedTextsTests.sources().contains("no such words are ever " + "printed by anything"))
    }

    @Test("the sessions in troubleshooting.md show texts that the program prints")
    func sessionsAreTrue() throws {
        let sources = try DocumentedTextsTests.sources()
        for phrase in [
            "the agent may not read it: chmod g+r (0640 or 0660), group spoolship",
            "the credentials are missing or wrong; check the token or user of the destination",
        ] {
            #expect(try readFile("\(GoldenFile.root)/docs/troubleshooting.md").contains(phrase))
            let isSaid = sources.contains(phrase)
            #expect(isSaid, "\(phrase)")
        }
    }
}
