import EventLoops
import Logs
import Model
import TestKit
import Testing

@testable import Events
@testable import Intake

/// The parts of an intake, each alone.
@Suite("Parts of an intake")
struct IntakePartsTests {
    private func record(_ reason: QuarantineRecord.Reason, at offset: Int64 = 0) -> QuarantineRecord {
        QuarantineRecord(
            reason: reason, detail: "expected a value", app: "shop", path: "shop/a.jsonl", offset: offset,
            length: 3, content: [], time: Timestamp(nanoseconds: 0))
    }

    private func fields(_ message: LogMessage?) -> [String: String] {
        Dictionary(message?.fields.map { ($0.key, $0.value) } ?? [], uniquingKeysWith: { first, _ in first })
    }

    @Test("quarantined lines are logged every ten seconds: the first one, and the number of all since")
    func quarantined() {
        let log = KeptLog()
        var reports = IntakeReports(Log(log))
        let start = BootInstant(nanoseconds: 0)
        reports.report(
            [record(.notJSON, at: 5), record(.notJSON), record(.notUTF8)], EventCounts(), at: start)
        #expect(log.messages.count == 1)
        #expect(fields(log.messages.first)["count"] == "2")
        #expect(fields(log.messages.first)["other_reasons"] == "1")
        #expect(fields(log.messages.first)["offset"] == "5")
        for second in 1..<10 {
            reports.report([record(.notUTF8)], EventCounts(), at: start + .seconds(second))
        }
        #expect(log.messages.count == 1)
        reports.report([record(.notUTF8)], EventCounts(), at: start + .seconds(10))
        #expect(log.messages.count == 2 && fields(log.messages.last)["count"] == "10")
    }

    @Test("cuts are logged once an hour, with those since the last report")
    func cuts() {
        let log = KeptLog()
        var reports = IntakeReports(Log(log))
        var counts = EventCounts()
        let start = BootInstant(nanoseconds: 0)
        reports.report([], counts, at: start)
        #expect(log.messages.isEmpty)
        counts[.cut, .nameLength] = 3
        counts.lastCut = LimitCut(app: "shop", member: "name", limit: .nameLength)
        reports.report([], counts, at: start)
        counts[.cut, .nameLength] = 5
        reports.report([], counts, at: start + .seconds(3_599))
        #expect(log.messages.count == 1 && fields(log.messages.last)["count"] == "3")
        reports.report([], counts, at: start + .seconds(3_600))
        #expect(log.messages.count == 2 && fields(log.messages.last)["count"] == "2")
    }

    @Test("trust in the clock is logged when it changes")
    func clock() {
        let log = KeptLog()
        var reports = IntakeReports(Log(log))
        for isTrusted in [false, false, true, true, false] { reports.note(isClockTrusted: isTrusted) }
        #expect(log.messages.count == 3)
    }

    @Test("events that tags made too large are logged together, with the place of the last one")
    func tooLarge() {
        let log = KeptLog()
        var reports = IntakeReports(Log(log))
        for offset in 1...3 as ClosedRange<Int64> {
            reports.note(
                IntakeReports.MadeTooLarge(app: "shop", path: "shop/a.jsonl", offset: offset, tags: ["t"]))
        }
        reports.report([], EventCounts(), at: BootInstant(nanoseconds: 0))
        #expect(log.messages.count == 1)
        #expect(fields(log.messages.first)["count"] == "3" && fields(log.messages.first)["offset"] == "3")
        reports.report([], EventCounts(), at: BootInstant(nanoseconds: 0) + .seconds(60))
        #expect(log.messages.count == 1)
    }

    @Test("without rules every line may be read, and a stop without an obstacle waits for the commit")
    func openGate() {
        var gate = RulesGate(nil, TagCalls(nil, aside: nil), isOld: false)
        #expect(gate.mayRead("shop") && gate.mayCall("shop"))
        #expect(!gate.park {})
    }

    @Test("an obstacle is noted until lines are offered again; old lines do not wait for a document")
    func obstacles() {
        var gate = RulesGate(nil, TagCalls(nil, aside: nil), isOld: true)
        let mayGoOn = gate.stop(at: .document)
        #expect(!mayGoOn && gate.obstacle == .document)
        #expect(!gate.park {})
        gate.reset()
        #expect(gate.obstacle == nil)
    }
}
