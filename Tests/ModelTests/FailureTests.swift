import Model
import Testing

@Suite("Quoting a receiver")
struct FailureTests {
    private func words(_ excerpt: String) -> String? {
        Failure(kind: .status, status: 400, message: "m", excerpt: excerpt).words
    }

    @Test("the first 200 printable characters are shown on one line, without terminal controls")
    func words() {
        #expect(words("") == nil && words(" \n\t") == nil)
        #expect(words("Table events\n  doesn't  exist ") == "Table events doesn't exist")
        #expect(words("a\u{1B}[31mb\u{202E}c\u{0}") == "a [31mb c")
        #expect(words(String(repeating: "é", count: 300))?.unicodeScalars.count == 200)
    }
}
