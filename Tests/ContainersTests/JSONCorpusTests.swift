import Events
import Model
import TestKit
import Testing

@testable import Containers

@Suite("JSON corner cases: the walk over accepted lines")
struct JSONCorpusTests {
    @Test(
        "each member is found, with its value exact to the byte",
        arguments: JSONCorpus.cases.filter(\.isValid))
    func walk(value: JSONCorpus.Case) throws {
        let line = value.object
        let whole = try JSONValue(parsing: line)
        line.withUnsafeBufferPointer { buffer in
            guard let base = buffer.baseAddress else { return }
            var names: [[UInt8]] = []
            var walk = RawWalk(base, from: 0, to: line.count)
            while let member = walk.next() { names.append(Array(line[member.name])) }
            #expect(names == ["before", "value", "after"].map { Array($0.utf8) })
            #expect(walk.objectEnd == line.count)
            for name in ["before", "value", "after"] {
                let found = RawWalk.find(Array(name.utf8), in: base, from: 0, to: line.count)
                #expect(found.map { RawJSON.value(base, $0.value) } == whole[name])
            }
            if let string = value.string,
                let found = RawWalk.find(Array("value".utf8), in: base, from: 0, to: line.count)
            {
                let text = found.value.lowerBound + 1..<found.value.upperBound - 1
                #expect(RawJSON.decoded(base, text) == Array(string.utf8))
            }
        }
    }
}
