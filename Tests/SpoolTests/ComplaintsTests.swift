import EventLoops
@testable import Spool
import TestKit
import Testing

/// What people are told about paths, without a path on a disk.
@Suite("Spool: complaints")
struct ComplaintsTests {
    private func complaint(_ path: String) -> SpoolComplaint {
        SpoolComplaint(path: path, owner: 7, ownerName: "anna", advice: "fix it")
    }

    @Test("a path is reported once until it is resolved, and again afterwards")
    func once() {
        var complaints = Complaints()
        #expect(complaints.isEmpty && complaints.isQuiet)
        let added = (0..<2).map { _ in complaints.add(complaint("a/x"), at: FileName("a/x"), of: 7) }
        #expect(added == [true, false])
        #expect(complaints[FileName("a/x")]?.owner == 7 && !complaints.isEmpty && !complaints.isQuiet)
        #expect(complaints.hasAny(below: FileName("a")) && !complaints.hasAny(below: FileName("b")))
        complaints.resolve(FileName("a/x"))
        #expect(complaints.isEmpty)
        let isNew = complaints.add(complaint("a/x"), at: FileName("a/x"), of: 7)
        #expect(isNew)
        let refused = (0..<2).map { _ in complaints.refuse(.hardLink, at: FileName("a/y"), of: 7) }
        #expect(refused == [true, false] && complaints.isRefused(FileName("a/y")))
        // What was opened has nothing to complain of.
        for path in ["a/x", "a/y"] { complaints.reached(FileName(path)) }
        #expect(complaints.isQuiet)
        let isRefusedAgain = complaints.refuse(.hardLink, at: FileName("a/y"), of: 7)
        #expect(isRefusedAgain)
    }

    @Test(
        "a removed name takes its refusal along, but not problems of the file; a directory takes all its names"
    )
    func gone() {
        var complaints = Complaints()
        _ = complaints.add(complaint("a/x"), at: FileName("a/x"), of: 7)
        _ = complaints.refuse(.notRegular, at: FileName("a/x"), of: 7)
        complaints.passOver(FileName("a/x.txt"))
        complaints.passOver(FileName("ab.txt"))
        complaints.nameGone(FileName("a/x"))
        #expect(!complaints.isRefused(FileName("a/x")) && complaints[FileName("a/x")] != nil)
        _ = complaints.refuse(.notRegular, at: FileName("a/z"), of: 7)
        complaints.directoryGone(FileName("a"))
        #expect(!complaints.isRefused(FileName("a/z")))
        #expect(complaints.takePassedOver(atMost: 8).map { $0.count } == 1)
    }

    @Test("each table is bounded, and an owner with many entries hides no other owner's")
    func bounded() {
        var complaints = Complaints()
        for number in 0..<(2 * Complaints.most) {
            let path = FileName("greedy/\(number)")
            _ = complaints.add(complaint(path.text), at: path, of: 1)
            _ = complaints.refuse(.hardLink, at: path, of: 1)
            complaints.passOver(path)
        }
        #expect(complaints.isFull)
        let isAdded = complaints.add(complaint("small/1"), at: FileName("small/1"), of: 2)
        let isRefused = complaints.refuse(.symbolicLink, at: FileName("small/1"), of: 2)
        #expect(isAdded && isRefused)
        let shown = complaints.takeUnresolved(atMost: 16)
        #expect(shown?.count == Complaints.most && shown?.shown.first?.path == "small/1")
        #expect(complaints.takeRefusals(atMost: 8)?.shown.first?.path == FileName("small/1"))
        #expect(complaints.takePassedOver(atMost: 8).map { $0.count } == Complaints.most)
    }

    @Test("the shown entries are computed once for each change")
    func shown() {
        var complaints = Complaints()
        #expect(complaints.takeUnresolved(atMost: 16) == nil)
        _ = complaints.add(complaint("a"), at: FileName("a"), of: 7)
        #expect(complaints.takeUnresolved(atMost: 16)?.shown == [complaint("a")])
        #expect(complaints.takeUnresolved(atMost: 16) == nil)
        complaints.ownerNamed()
        #expect(complaints.takeUnresolved(atMost: 16)?.count == 1)
    }

    @Test("a repeated file is reported once an hour")
    func repeats() {
        var complaints = Complaints()
        let hour: Int64 = 3_600_000_000_000
        #expect(complaints.mayReportRepeat(BootInstant(nanoseconds: 5)))
        complaints.repeatReported(BootInstant(nanoseconds: 5))
        #expect(!complaints.mayReportRepeat(BootInstant(nanoseconds: hour + 4)))
        #expect(complaints.mayReportRepeat(BootInstant(nanoseconds: hour + 5)))
    }

    @Test("zeros are reported once for each file, and their memory is bounded")
    func zeros() {
        var complaints = Complaints()
        let found = (0..<2).map { _ in complaints.foundZeros(in: FileName("a")) }
        #expect(found == [true, false])
        for number in 0..<Complaints.most { _ = complaints.foundZeros(in: FileName("\(number)")) }
        let isNewAgain = complaints.foundZeros(in: FileName("a"))
        #expect(isNewAgain)
    }
}
