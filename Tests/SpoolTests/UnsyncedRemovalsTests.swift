import Model
import Testing

@testable import Spool

/// Records of removed files, until their directories are synced.
@Suite("Spool: removals that are not durable yet")
struct UnsyncedRemovalsTests {
    private let directory = SpoolDirectory(path: FileName("app"), depth: 1, id: FileID(bytes: []), 0)
    private let other = SpoolDirectory(path: FileName("other"), depth: 1, id: FileID(bytes: [1]), 0)

    private func record(_ number: UInt8) -> DoneRecord { DoneRecord(claim: [number], handle: [number]) }

    @Test("one sync is planned for all, a directory's records leave together, and a failed sync loses none")
    func life() {
        var removals = UnsyncedRemovals()
        let isPlannedForNothing = removals.planSync()
        #expect(!isPlannedForNothing)
        removals.add(record(1), in: directory)
        removals.add(record(2), in: directory)
        removals.add(record(3), in: other)
        let (first, second) = (removals.planSync(), removals.planSync())
        #expect(first && !second)
        var synced: [UInt8] = []
        guard let failed = removals.takeNext() else {
            Issue.record("there are records")
            return
        }
        // The other directory does not wait for the one that failed.
        removals.add(record(4), in: failed.directory)
        removals.putBack(failed.records, of: failed.directory)
        while removals.planSync(), let next = removals.takeNext() {
            synced += next.records.map { $0.claim[0] }
        }
        #expect(synced.sorted() == [1, 2, 3, 4])
        let rest = removals.takeNext()
        #expect(rest == nil)
    }
}
