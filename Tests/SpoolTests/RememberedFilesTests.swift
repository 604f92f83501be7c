import EventLoops
import Model
@testable import Spool
import Testing

/// What is remembered of files that are gone.
@Suite("Remembered files")
struct RememberedFilesTests {
    private func gone(_ number: Int, at milliseconds: Int64?) -> (Checkpoint, FileTrace) {
        var trace = FileTrace()
        trace.fingerprint = Fingerprint(length: 10, hash: UInt64(number))
        let mark = Mark(offset: Int64(number) + 10, hash: UInt64(number))
        trace.add(mark)
        trace.missingSince = milliseconds
        let key = FileID(ofContent: trace.fingerprint, upTo: mark).bytes
        return (Checkpoint(key: key, path: "app/x.jsonl", offset: mark.offset, state: trace.encoded), trace)
    }

    @Test(
        "fault02: what went last is forgotten last, also if it went before all that was known was looked for",
        arguments: [100, 2040, 2044, 2047, 2048, 3000])
    func whatWentDuringTheFirstListingStays(older count: Int) {
        let now = Timestamp(nanoseconds: 1_000_000_000_000)
        let older = (0..<count).map { gone($0, at: 900_000 + Int64($0)).0 }
        var files = RememberedFiles(older)
        var pass = Pass()
        let last = (0..<5).map { gone(5000 + $0, at: nil) }
        for (checkpoint, trace) in last { files.miss(checkpoint, trace, isAway: false, at: now, in: &pass) }
        for (_, checkpoint, trace) in files.endFirstListing(at: now) {
            guard let trace else { continue }
            files.miss(checkpoint, trace, isAway: false, at: now, in: &pass)
        }
        for (checkpoint, _) in last {
            #expect(files.kept[FileID(bytes: checkpoint.key)] != nil)
            #expect(!pass.forgotten.contains(FileID(bytes: checkpoint.key)))
        }
        let most = 2048
        #expect(files.kept.count == min(count + last.count, most))
        #expect((files.kept[FileID(bytes: older[0].key)] == nil) == (count + last.count > most))
        #expect(files.kept[FileID(bytes: older[count - 1].key)] != nil)
    }
}
