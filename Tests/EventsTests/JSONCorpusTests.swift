@testable import Events
import Model
import TestKit
import Testing

@Suite("JSON corner cases: the scanner")
struct JSONCorpusTests {
    @Test("a line is an event when RFC 8259 takes it, and only then", arguments: JSONCorpus.cases)
    func scanner(value: JSONCorpus.Case) { #expect((failure(value.object) == nil) == value.isValid) }

    @Test("texts that are added mean what they are")
    func quoted() throws {
        for string in JSONCorpus.strings {
            #expect(try JSONValue(parsing: JSONText.quoted(string)) == .string(string))
        }
    }
}
