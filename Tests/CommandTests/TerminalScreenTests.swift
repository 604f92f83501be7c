import Control
import Testing

@testable import spoolship

@Suite("Screens on terminals")
struct TerminalScreenTests {
    /// What `draw` writes, line by line, without the movements of the cursor.
    private func drawn(_ text: String, rows: Int, columns: Int) throws -> [String] {
        let kept = KeptConsole()
        let size = try #require(TerminalScreen(rows: rows, columns: columns))
        try kept.console(colour: true).draw(screen: text, in: size)
        #expect(kept.output.hasPrefix("\u{1B}[H") && kept.output.hasSuffix("\u{1B}[J"))
        return kept.output.dropFirst(3).dropLast(3).split(
            separator: "\u{1B}[K\n", omittingEmptySubsequences: false
        ).map(String.init)
    }

    @Test("a screen that fits is drawn whole, without a line feed that would scroll the terminal")
    func whole() throws {
        #expect(try drawn("one\ntwo\n\nfour\n", rows: 4, columns: 80) == ["one", "two", "", "four"])
    }

    @Test("of a screen with more lines than the terminal the last line says how many there are")
    func rows() throws {
        let text = (1...30).map { "line \($0)\n" }.joined()
        let lines = try drawn(text, rows: 24, columns: 80)
        #expect(lines.count == 24)
        #expect(lines[22] == "line 23" && lines[23] == "… and 7 more lines: spoolship status")
    }

    @Test("a line is cut where the terminal ends; styles take no room, and end with the line")
    func columns() throws {
        let styled = Console.marks.styled("12345", "31")
        let long = String(repeating: "x", count: 100)
        let lines = try drawn("ab\(styled)cd\n\(styled)\(long)\n\(long)é\n", rows: 24, columns: 10)
        let red = "\u{1B}[31m12345\u{1B}[0m"
        #expect(lines == ["ab\(red)cd", "\(red)xxxxx\u{1B}[0m", "xxxxxxxxxx"])
        // A mark takes no room, a character of East Asia two columns.
        #expect(try drawn("e\u{301}日本x", rows: 2, columns: 5) == ["e\u{301}日本"])
        #expect(try drawn(Console.marks.styled(long, "1"), rows: 2, columns: 3) == ["\u{1B}[1mxxx\u{1B}[0m"])
    }

    @Test("a descriptor that is no terminal, and one without a size, have none")
    func sizes() {
        #expect(TerminalScreen(of: -1) == nil)
        #expect(TerminalScreen(rows: 0, columns: 0) == nil)
    }
}
