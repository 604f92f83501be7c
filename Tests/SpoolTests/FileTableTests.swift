import EventLoops
@testable import Spool
import TestKit
import Testing

@Suite("File table")
struct FileTableTests {
    private func file(_ name: String, in directory: SpoolDirectory) -> AppendFile {
        AppendFile(
            FileID(bytes: Array(name.utf8)), in: directory, name: FileName(name), owner: 0, size: 0,
            now: BootInstant(nanoseconds: 0))
    }

    @Test("it holds what a dictionary would, after any changes")
    func likeADictionary() {
        let seed = Seeds.one(5)
        var random = SplitMix64(seed: seed)
        let directory = SpoolDirectory(path: FileName(""), depth: 0, id: FileID(bytes: []), 0)
        var table = FileTable<FileName>()
        var model: [FileName: AppendFile] = [:]
        for step in 0..<20_000 {
            // Few enough names that they come back; more in the middle, so that it grows and empties.
            let name = FileName("\(random.next() % (step < 10_000 ? 500 : 40)).jsonl")
            if random.next() % 5 < 3 {
                let file = file(name.text, in: directory)
                table[name] = file
                model[name] = file
            } else {
                table[name] = nil
                model[name] = nil
            }
            if step % 500 == 0 {
                #expect(model.allSatisfy { table[$0.key] === $0.value }, "\(Seeds.again(seed))")
                #expect(Set(table.values.map(\.name)) == Set(model.keys), "\(Seeds.again(seed))")
            }
            guard table.count == model.count, table[name] === model[name] else {
                Issue.record("\(Seeds.again(seed)), step \(step)")
                return
            }
        }
        for name in model.keys { table[name] = nil }
        #expect(table.isEmpty && table.values.reduce(0) { count, _ in count + 1 } == 0)
    }

    @Test("identities of any length read back as stored, and differ if their bytes do")
    func identitiesOfAnyLength() {
        var seen: Set<FileID> = []
        for length in 0...40 {
            for last in [UInt8(0), 1, 0xFF] where length > 0 || last == 0 {
                let bytes = [UInt8](repeating: 0, count: max(0, length - 1)) + (length > 0 ? [last] : [])
                let id = FileID(bytes: bytes)
                #expect(id.bytes == bytes)
                #expect(id == FileID(bytes: bytes))
                #expect(seen.insert(id).inserted, "\(bytes)")
            }
        }
    }
}
