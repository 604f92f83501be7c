import Model
import TestKit
import Testing

@testable import Outputs

@Suite("JSON corner cases: answers and bodies")
struct JSONCorpusTests {
    @Test(
        "a slice finds each member with its meaning, and invalid JSON never traps",
        arguments: JSONCorpus.cases)
    func slice(value: JSONCorpus.Case) throws {
        let slice = JSONSlice(value.object[...])
        guard value.isValid else {
            // It does not validate: any answer will do.
            _ = slice?.members?.map { ($0.key, $0.value.string, $0.value.integer, $0.value.elements?.count) }
            return
        }
        #expect(slice?.members?.map(\.key) == ["before", "value", "after"])
        #expect(slice?["before"]?.integer == 0 && slice?["after"]?.elements?.isEmpty == true)
        #expect(slice?["value"]?.string == value.string)
        let found = try #require(slice?["value"])
        #expect(try JSONValue(parsing: Array(found.bytes)) == JSONValue(parsing: value.object)["value"])
    }

    @Test("strings in bodies keep their meaning")
    func strings() throws {
        for string in JSONCorpus.strings {
            var text = JSONText()
            text.string(string)
            #expect(try JSONValue(parsing: text.bytes) == .string(string))
            var other = JSONText()
            other.string(Array(string.utf8).lazy.map { $0 })
            #expect(other.bytes == text.bytes)
        }
    }
}
