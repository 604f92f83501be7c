import EventLoops
import Model
import TestKit
import Testing

@testable import Spool

/// What is counted while reading waits, and when: no directory is listed here, and no file asked.
@Suite("Spool: backlog")
struct BacklogTests {
    private let start = BootInstant(nanoseconds: 1_000_000_000_000)
    private let day = Timestamp(milliseconds: 1_795_168_800_000)

    private func directory(_ name: String) -> SpoolDirectory {
        SpoolDirectory(path: FileName(name), depth: 1, id: FileID(bytes: []), 0)
    }

    private func file(_ number: Int) -> AppendFile {
        AppendFile(
            FileID(bytes: [UInt8(number >> 8), UInt8(number & 255)]), in: directory("a"),
            name: FileName("\(number)"),
            owner: 0, size: 1, now: start)
    }

    @Test("a census and a look are planned once, until reading continues")
    func plans() {
        var backlog = Backlog()
        #expect(backlog.planCensus() && backlog.planLook())
        #expect(!backlog.planCensus() && !backlog.planLook())
        backlog.endCensus()
        #expect(backlog.planCensus() && !backlog.planLook())
        backlog.endLook()
        #expect(backlog.planLook() == true)
    }

    @Test("a census uses its own figures until it is complete, and reading lowers the previous ones")
    func census() {
        var backlog = Backlog()
        backlog.beginCensus([directory("a"), directory("b")], start)
        #expect(backlog.isCounting && backlog.nextDirectory()?.path == FileName("b"))
        backlog.counted(size: 100, changed: day, day + .seconds(5))
        #expect(backlog.endSlice(isWhole: false, start) == .goOn)
        #expect(backlog.drops == Backlog.Drops())
        // The census that is under way goes on: directories that came since are counted by the next one.
        backlog.beginCensus([directory("c")], start + .seconds(9))
        #expect(backlog.nextDirectory()?.path == FileName("a") && backlog.nextDirectory() == nil)
        backlog.counted(size: 50, changed: day + .seconds(-7), day + .seconds(5))
        #expect(backlog.endSlice(isWhole: true, start + .milliseconds(10)) == .done(next: .seconds(2)))
        #expect(backlog.drops == Backlog.Drops(files: 2, bytes: 150, oldest: day + .seconds(-7)))
        #expect(!backlog.isCounting)
        backlog.read(size: 100)
        #expect(backlog.drops.files == 1 && backlog.drops.bytes == 50)
        // Files that came after the census are read too.
        for _ in 0..<3 { backlog.read(size: 50) }
        #expect(backlog.drops.files == 0)
        backlog.forget()
        #expect(backlog.drops == Backlog.Drops())
    }

    @Test("a census takes a fiftieth of the time, and a look at sizes a twentieth")
    func share() {
        var backlog = Backlog()
        backlog.beginCensus([], start)
        #expect(backlog.endSlice(isWhole: true, start + .seconds(3)) == .done(next: .seconds(150)))
        #expect(backlog.filesToAsk([file(0)], start).count == 1)
        #expect(backlog.endLookSlice(start + .seconds(3), interval: .seconds(2)) == .done(next: .seconds(60)))
        _ = backlog.filesToAsk([], start)
        #expect(backlog.endLookSlice(start, interval: .seconds(2)) == .done(next: .seconds(2)))
    }

    @Test("a look asks for each file that waited at its beginning once, in slices")
    func look() {
        var backlog = Backlog()
        let files = (0..<Backlog.slice * 2 + 10).map { file($0) }
        var asked: [AppendFile] = []
        for round in 0..<3 {
            let next = backlog.filesToAsk(files, start)
            #expect(next.count <= Backlog.slice)
            asked += next
            let slice = backlog.endLookSlice(start, interval: .seconds(2))
            #expect(slice == (round < 2 ? .goOn : .done(next: .seconds(2))))
        }
        #expect(asked.count == files.count && Set(asked) == Set(files))
        // The reader goes on in the midst of a look: the next one begins anew.
        _ = backlog.filesToAsk(files, start)
        backlog.endLook()
        #expect(backlog.filesToAsk([files[7]], start) == [files[7]])
    }

    @Test("memory is released after 16 MB of reading, at most every ten seconds")
    func memory() {
        var backlog = Backlog()
        let much = ByteCount(16 << 20)
        #expect(backlog.releasesMemory(start, read: 1000) == false)
        #expect(backlog.releasesMemory(start, read: much) == true)
        #expect(backlog.releasesMemory(start + .seconds(9), read: much + much) == false)
        #expect(backlog.releasesMemory(start + .seconds(10), read: much + much) == true)
        #expect(backlog.releasesMemory(start + .seconds(60), read: much + much) == false)
    }
}
