import Testing

@testable import SpoolshipClient

/// When the agent may see lines, and which lines a write takes: without files, threads and clocks.
@Suite struct GatheringTests {
    @Test("Lines gather for the interval, counted from the first that the agent may not see")
    func interval() {
        var gathering = Gathering()
        gathering.interval = 100
        #expect(gathering.timeLeft(at: 5) == nil)
        gathering.noteLine(at: 10, isUrgent: false)
        gathering.noteLine(at: 60, isUrgent: false)
        #expect(gathering.timeLeft(at: 50) == 60 && gathering.timeLeft(at: 110) == nil)
        gathering.noteWritten(since: gathering, wasHeld: true, isEmpty: true, at: 70)
        #expect(gathering.timeLeft(at: 70) == 40, "what is held back still gathers")
        gathering.noteWritten(since: gathering, wasHeld: false, isEmpty: true, at: 110)
        #expect(gathering.timeLeft(at: 110) == nil)
    }

    @Test("A critical event ends the interval, unless events wait until they are asked for")
    func urgency() {
        var gathering = Gathering()
        gathering.interval = 100
        gathering.noteLine(at: 0, isUrgent: true)
        #expect(gathering.isUrgent && gathering.timeLeft(at: 0) == nil)
        var asked = Gathering()
        asked.interval = Gathering.untilAsked
        asked.noteLine(at: 0, isUrgent: true)
        #expect(!asked.isUrgent && asked.timeLeft(at: 0) == Gathering.untilAsked)
        asked.demand()
        #expect(asked.isUrgent && !asked.isHandingOver && asked.timeLeft(at: 0) == nil)
    }

    @Test("What is asked for during a write stays asked for")
    func demandDuringWrite() {
        var gathering = Gathering()
        gathering.noteLine(at: 0, isUrgent: false)
        let before = gathering
        gathering.demand(finishing: true)
        gathering.noteWritten(since: before, wasHeld: false, isEmpty: true, at: 1)
        #expect(gathering.isUrgent && gathering.isHandingOver)
        let second = gathering
        gathering.noteLine(at: 2, isUrgent: false)
        gathering.noteWritten(since: second, wasHeld: false, isEmpty: false, at: 3)
        #expect(gathering.isUrgent && gathering.isHandingOver, "a line came during the write")
        gathering.noteWritten(since: gathering, wasHeld: false, isEmpty: true, at: 4)
        #expect(!gathering.isUrgent && !gathering.isHandingOver)
    }

    @Test("Lines that could not be written are written first, in their order, and count until then")
    func queue() {
        var lines = LineQueue()
        lines.add([1])
        lines.add([2])
        let round = lines.begin()
        lines.add([3])
        #expect(round.lines == [1, 2] && lines.bytes == 3 && lines.written == 0)
        lines.end(round, isWritten: false)
        #expect(lines.bytes == 3 && lines.written == 0)
        let second = lines.begin()
        #expect(second.lines == [1, 2, 3] && lines.isEmpty && lines.bytes == 3)
        lines.end(second, isWritten: true)
        #expect(lines.bytes == 0 && lines.written == 3 && lines.accepted == 3)
    }
}
