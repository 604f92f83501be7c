import EventLoops
import Glibc
import Model
import TestKit
import Testing

@testable import Spool

/// Where a drop file is on its way, on files that nobody opens.
@Suite("Spool: drop table")
struct DropTableTests {
    private static var directory: SpoolDirectory {
        SpoolDirectory(path: FileName("shop"), depth: 1, id: FileID(bytes: []), 0)
    }

    private static func id(_ number: Int) -> FileID {
        FileID(bytes: [UInt8(number >> 8), UInt8(number & 255)])
    }

    private static func pending(_ number: Int) -> PendingDrop {
        PendingDrop(directory: directory, name: FileName("\(number).json"), isComplete: true, owner: nil)
    }

    private static func reading(_ number: Int, _ share: String) -> DropReading {
        let file = ClaimedFile(
            id: id(number), directory: directory, claim: FileName("\(number).json"), app: share, share: share)
        return DropReading(
            file, source: SpoolSource(app: share, path: "\(number).json", producer: nil), share: share,
            format: .json, isKept: false, status: FileStatus(stat()), descriptor: nil, longest: 100, from: nil
        )
    }

    private static func stuck(_ number: Int, _ share: String) -> StuckFile {
        StuckFile(
            records: [DoneRecord(claim: Array("shop/\(number).json".utf8), handle: id(number).bytes)],
            directory: directory, name: FileName("\(number).json"), share: share)
    }

    private static let limits = DropTable.Limits(waiting: 100, waitingInAll: 1000, stuck: 40)

    /// Reads the next file of a table until it is in the stage `reading`.
    private func next(_ table: DropTable) -> DropReading? {
        switch table.next(Shares(), mostOpen: 16, mayBegin: { _ in true }) {
        case .nothing: return nil
        case .read(let drop): return drop
        case .begin(let drop, let share):
            let number = Int(drop.name.text.dropLast(5)) ?? -1
            let reading = Self.reading(number, share)
            table.begin(reading)
            return reading
        }
    }

    @Test("a file is read, committed and removed; until then it is not begun under another name")
    func life() {
        let table = DropTable(Self.limits)
        table.wait(Self.pending(1), in: "shop")
        #expect(!table.areAllRead && table.countUnread == 1)
        let drop = next(table)
        #expect(table.isInHand(Self.id(1)) && table.stageName(of: Self.id(1)) == "reading")
        if let drop { table.wasTaken(drop.file) }
        #expect(table.areAllRead && table.isInHand(Self.id(1)) && table.countUnread == 0)
        let wasStuck = table.wasRemoved(Self.id(1))
        #expect(wasStuck == nil)
        #expect(!table.isInHand(Self.id(1)) && table.countInHand == 0)
    }

    @Test("a file of the last run is not read again: it is stuck, removed, or missing once all is listed")
    func doneBefore() {
        let done = (1...3).map {
            DoneRecord(claim: Array("shop/.spoolship.\($0)".utf8), handle: Self.id($0).bytes)
        }
        let table = DropTable(Self.limits, done: done)
        #expect(table.hasQueued && table.records(of: Self.id(1)) == [done[0]] && !table.isInHand(Self.id(1)))
        let names = table.takeNamesBefore(in: FileName("shop"))
        #expect(names.count >= 3)
        let namesAgain = table.takeNamesBefore(in: FileName("shop"))
        #expect(namesAgain.isEmpty)
        let isStuck = table.stick(Self.id(1), Self.stuck(1, "shop"))
        #expect(isStuck)
        table.wasRemoved(Self.id(2))
        let gone = table.takeDoneBefore()
        #expect(gone == [done[2]])
        #expect(table.stageName(of: Self.id(1)) == "stuck" && table.records(of: Self.id(3)) == nil)
        #expect(table.brokenRule() == nil)
    }

    @Test("a stuck file is found by its path until it is renamed, and is new only once")
    func stuckPaths() {
        let table = DropTable(
            Self.limits, done: [1, 2].map { DoneRecord(claim: [], handle: Self.id($0).bytes) })
        let isNew = table.stick(Self.id(1), Self.stuck(1, "shop"))
        #expect(isNew)
        let isNewAgain = table.stick(Self.id(1), Self.stuck(1, "shop"))
        #expect(!isNewAgain)
        #expect(table.stuck(at: FileName("shop/1.json")) == Self.id(1))
        table.movedAway(from: FileName("shop/1.json"))
        #expect(table.stuck(at: FileName("shop/1.json")) == nil && table.isStuck(Self.id(1)))
        // Another file with the name that the first one had.
        table.stick(Self.id(2), Self.stuck(1, "shop"))
        let removed = table.wasRemoved(Self.id(1))
        #expect(removed != nil)
        #expect(table.stuck(at: FileName("shop/1.json")) == Self.id(2))
        #expect(table.brokenRule() == nil)
    }

    @Test("an app at its limit of stuck files gets no more, and others do")
    func stuckBound() {
        let numbers = 0..<40
        let table = DropTable(
            Self.limits, done: numbers.map { DoneRecord(claim: [], handle: Self.id($0).bytes) })
        for number in numbers.prefix(20) { table.stick(Self.id(number), Self.stuck(number, "shop")) }
        // 40 among the one app that has some, and a further one.
        #expect(!table.mayStick("shop") && table.mayStick("other"))
        table.crowd("shop", in: Self.directory)
        let tooEarly = table.takeCrowded("shop")
        #expect(tooEarly.isEmpty)
        for number in numbers.prefix(11) { table.wasRemoved(Self.id(number)) }
        let relisted = table.takeCrowded("shop")
        let relistedAgain = table.takeCrowded("shop")
        #expect(relisted.count == 1 && relistedAgain.isEmpty)
    }

    @Test("one parked file beyond the limit delays the others until it is resumed, and keeps its position")
    func parkedBound() {
        let table = DropTable(Self.limits)
        for number in 0..<18 { table.wait(Self.pending(number), in: "app\(number)") }
        for _ in 0..<16 {
            _ = next(table)
            let isAside = table.park()
            #expect(isAside)
        }
        let last = next(table)
        let isLastAside = table.park()
        #expect(last != nil && !isLastAside)
        let heldUp = next(table)
        #expect(heldUp == nil && !table.areAllRead)
        if let last { table.resume(last.id) }
        let resumed = next(table)
        #expect(resumed === last)
        #expect(table.brokenRule() == nil)
    }

    // The expected stage of each file is kept beside the table, in a plain dictionary.
    @Test(
        "random lives: a file has one stage, all figures follow from the stages, every file is read to its end"
    )
    func randomLives() {
        for seed in UInt64(1)...40 {
            var random = SplitMix64(seed: seed)
            let table = DropTable(
                Self.limits, done: (0..<5).map { DoneRecord(claim: [], handle: Self.id($0).bytes) })
            var stages: [Int: String] = Dictionary(uniqueKeysWithValues: (0..<5).map { ($0, "doneBefore") })
            var taken: Set<Int> = []
            var begun = 5
            func numbers(_ stage: String) -> [Int] { stages.filter { $0.value == stage }.keys.sorted() }
            func number(_ id: FileID) -> Int { Int(id.bytes[0]) << 8 | Int(id.bytes[1]) }
            /// Does something with the file that is read, or reads the next one.
            func step(_ table: DropTable, drains: Bool) {
                guard let drop = next(table) else { return }
                let read = number(drop.id)
                stages[read] = "reading"
                switch drains ? 5 : Int.random(in: 0..<8, using: &random) {
                case 0, 1: if table.setAside() { stages[read] = "aside" }
                case 2:
                    _ = table.park()
                    stages[read] = "parked"
                case 3: if table.awaitRetry() { stages[read] = "cut" }
                case 4:
                    table.letGo(drop.id)
                    stages[read] = nil
                    // It is found again under its name.
                    table.wait(Self.pending(read), in: drop.share)
                default:
                    table.wasTaken(drop.file)
                    stages[read] = "committing"
                    #expect(taken.insert(read).inserted, "a file was read twice")
                }
            }
            for _ in 0..<300 {
                switch Int.random(in: 0..<10, using: &random) {
                case 0, 1:
                    table.wait(Self.pending(begun), in: "app\(begun % 4)")
                    begun += 1
                case 2:
                    if let parked = numbers("parked").randomElement(using: &random) {
                        let holdsUp = table.reading?.id == Self.id(parked)
                        table.resume(Self.id(parked))
                        stages[parked] = holdsUp ? "reading" : "aside"
                    }
                case 3:
                    if let cut = numbers("cut").randomElement(using: &random) {
                        table.retry(Self.id(cut))
                        stages[cut] = "aside"
                    }
                case 4:
                    let done = numbers("committing") + numbers("stuck") + numbers("doneBefore")
                    if let gone = done.randomElement(using: &random) {
                        if Bool.random(using: &random) {
                            table.wasRemoved(Self.id(gone))
                            stages[gone] = nil
                        } else {
                            table.stick(Self.id(gone), Self.stuck(gone, "app\(gone % 4)"))
                            stages[gone] = "stuck"
                        }
                    }
                default: step(table, drains: false)
                }
                #expect(table.brokenRule() == nil, "seed \(seed)")
                for (number, stage) in stages {
                    #expect(table.stageName(of: Self.id(number)) == stage, "seed \(seed), file \(number)")
                }
            }
            // The sink takes all, and nothing ends too early any more: every file ends in the queue.
            for parked in numbers("parked") {
                table.resume(Self.id(parked))
            }
            for cut in numbers("cut") {
                table.retry(Self.id(cut))
            }
            for _ in 0..<2 * begun where !table.areAllRead { step(table, drains: true) }
            #expect(table.areAllRead && taken == Set(5..<begun), "seed \(seed)")
        }
    }

    @Test("once no commit will take what was read, nothing more is read, and what was committed stays")
    func giveUp() {
        let table = DropTable(Self.limits)
        for number in 0..<3 { table.wait(Self.pending(number), in: "app\(number)") }
        if let first = next(table) { table.wasTaken(first.file) }
        _ = next(table)
        let isAside = table.setAside()
        #expect(isAside)
        _ = next(table)
        table.giveUpReading()
        #expect(table.reading == nil && table.openDrops.isEmpty)
        #expect(table.countInHand == 1 && table.brokenRule() == nil)
    }
}
