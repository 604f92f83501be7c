import EventLoops
import Testing

@testable import Spool

/// Whose work is next, without work.
@Suite("Spool: turns")
struct TurnsTests {
    private let directory = SpoolDirectory(path: FileName("app"), depth: 1, id: FileID(bytes: []), 0)

    private func file(_ number: UInt8) -> AppendFile {
        AppendFile(
            FileID(bytes: [number]), in: directory, name: FileName("\(number).jsonl"), owner: 0, size: 1,
            now: BootInstant(nanoseconds: 0))
    }

    @Test("work of the app that has had least is first, and kinds without work are last")
    func order() {
        let turns = Turns()
        turns.lineUp(file(1), of: "app")
        let fresh = turns.order(names: 5, drops: 3)
        #expect(fresh.first == .lines)
        turns.charge("app", .nanoseconds(4))
        let levelled = turns.order(names: 5, drops: 3)
        #expect(levelled == [.drops, .lines, .names])
        let alone = turns.order(names: nil, drops: nil)
        #expect(alone.first == .lines)
    }

    @Test("equal kinds take turns")
    func level() {
        let turns = Turns()
        turns.lineUp(file(1), of: "app")
        var first: [Turns.Work: Int] = [:]
        for _ in 0..<30 {
            turns.beginPiece()
            let order = turns.order(names: 0, drops: 0)
            #expect(Set(order).count == 3)
            if let work = order.first { first[work, default: 0] += 1 }
        }
        #expect(first == [.names: 10, .lines: 10, .drops: 10])
    }

    @Test("an app is charged for its turn, and one that returns starts level with the app served last")
    func payment() {
        let turns = Turns()
        let start = BootInstant(nanoseconds: 100)
        let turn = turns.begin(of: "busy", start)
        turns.end(turn, start + .nanoseconds(50))
        #expect(turns.shares.spent(by: "busy") == 50)
        turns.lineUp(file(1), of: "busy")
        turns.lineUp(file(2), of: "fresh")
        let first = turns.nextFile(where: { _ in true })
        #expect(first?.app == "fresh")
        let second = turns.nextFile(where: { _ in true })
        #expect(second?.app == "busy")
        let third = turns.nextFile(where: { _ in true })
        #expect(third == nil)
    }

    @Test("a file that cannot be read now keeps its position, and others go first")
    func passedOver() {
        let turns = Turns()
        let waiting = file(1)
        turns.lineUp(waiting, of: "a")
        turns.lineUp(file(2), of: "b")
        let others = turns.nextFile(where: { $0 !== waiting })
        #expect(others?.app == "b")
        let nobody = turns.nextFile(where: { $0 !== waiting })
        #expect(nobody == nil)
        let waited = turns.nextFile(where: { _ in true })
        #expect(waited?.file === waiting)
    }

    @Test("drop files continue within a turn only while no app with other work has had less")
    func dropNext() {
        let turns = Turns()
        let onlyDrops = turns.isDropNext(names: nil, drops: 7)
        #expect(onlyDrops)
        let lessNames = turns.isDropNext(names: 6, drops: 7)
        #expect(!lessNames)
        turns.lineUp(file(1), of: "app")
        let lines = turns.isDropNext(names: nil, drops: 7)
        #expect(!lines)
    }
}
