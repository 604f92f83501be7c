@testable import Events
import Model
import TestKit
import Testing

@Suite("JSON corner cases: the scanner")
struct JSONCorpusTests {
    @Test("a line is an event exactly if RFC 8259 accepts it", arguments: JSONCorpus.cases)
    func scanner(value: JSONCorpus.Case) { #expect((failure(value.object) == nil) == value.isValid) }

    @Test("added texts keep their meaning")
    func quoted() throws {
        for string in JSONCorpus.strings {
            #expect(try JSONValue(parsing: JSONText.quoted(string)) == .string(string))
        }
    }
}
