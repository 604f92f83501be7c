import EventLoops
import Model
import TestKit
import Testing

@testable import Spool

/// Invariant 1 on numbers alone: what is taken goes into the commit of its place, and no commit changes once it is closed.
@Suite("Spool: handover")
struct HandoverTests {
    private let id = FileID(bytes: [1])
    private let place = Checkpoint(key: [1], path: "x", offset: 7, state: [])

    private func at(_ milliseconds: Int64) -> BootInstant {
        BootInstant(nanoseconds: milliseconds * 1_000_000)
    }

    private func handover(bytes: Int = 1000, linger: Duration = .milliseconds(5)) -> Handover {
        Handover(Handover.Limits(bytes: bytes, linger: linger))
    }

    private func close(_ handover: inout Handover, at time: BootInstant) -> Pass {
        let pass = handover.beginCommit(time)
        handover.closed(ClosedPass(progress: SpoolProgress(), files: [], done: []))
        return pass
    }

    @Test(
        "a commit is due by bytes, by files, or on request; late lines are committed while reading continues"
    )
    func due() {
        var handover = handover()
        #expect(handover.isEmpty && handover.next(at(0), isQuiet: false) == .work)
        #expect(handover.next(at(0), isQuiet: true) == .quiet(holdsLines: false))
        handover.took(999)
        #expect(!handover.isEmpty && handover.next(at(1), isQuiet: true) == .quiet(holdsLines: true))
        #expect(handover.next(at(99), isQuiet: false) == .work)
        #expect(handover.next(at(100), isQuiet: false) == .commit)
        handover.took(1)
        #expect(handover.isDue && handover.next(at(1), isQuiet: true) == .commit)

        var wanted = self.handover()
        wanted.refused(isParked: false)
        #expect(wanted.isDue && !wanted.isEmpty && !wanted.isParked && wanted.parked == 0)
        _ = close(&wanted, at: at(3))
        #expect(!wanted.isDue && wanted.isEmpty && wanted.dripDue(isUrgent: true) == at(8))
        wanted.want()
        #expect(wanted.next(at(4), isQuiet: true) == .commit)

        var places = self.handover()
        for number in 0..<Handover.Limits.checkpoints {
            #expect(!places.isDue)
            places.pass.forget(FileID(bytes: [UInt8(number >> 8), UInt8(number & 255)]))
        }
        #expect(places.isDue)
    }

    @Test("a small commit is due sooner if something urgent is held")
    func patience() {
        var handover = Handover(
            Handover.Limits(bytes: 1000, linger: .milliseconds(5), patience: .milliseconds(50)))
        _ = close(&handover, at: at(3))
        #expect(handover.dripDue(isUrgent: true) == at(8) && handover.dripDue(isUrgent: false) == at(53))
    }

    @Test("a quarantine record alone causes a commit, and many small ones make it due")
    func quarantine() {
        var handover = handover()
        handover.quarantined(0, isTooLong: false)
        #expect(!handover.isEmpty && !handover.isDue)
        for _ in 0..<3 { handover.quarantined(10, isTooLong: true) }
        #expect(handover.isDue)
    }

    @Test("a parked file delays no other file, and is counted until it is resumed")
    func parked() {
        var handover = handover()
        handover.refused(isParked: true)
        #expect(handover.isParked && handover.parked == 1 && !handover.isDue)
        handover.beginFile()
        #expect(!handover.isParked && handover.parked == 1)
        handover.resumed()
        #expect(handover.parked == 0)
    }

    @Test("with two commits under way nothing may be offered, and reading counts as held back")
    func full() {
        var handover = handover()
        handover.took(1)
        _ = close(&handover, at: at(10))
        #expect(handover.isClosing && !handover.isFull)
        #expect(handover.takeClosed() != nil && handover.takeClosed() == nil && !handover.isClosing)
        #expect(!handover.isHeldBack(at(2009), longerThan: .seconds(2)))
        #expect(handover.isHeldBack(at(2010), longerThan: .seconds(2)))
        // Lines that wait for a commit that is under way are not late.
        handover.took(1)
        #expect(handover.next(at(5000), isQuiet: false) == .work)
        #expect(handover.next(at(5000), isQuiet: true) == .quiet(holdsLines: false))
        _ = close(&handover, at: at(11))
        _ = handover.takeClosed()
        #expect(handover.isFull && handover.isHeldBack(at(11), longerThan: .seconds(2)))
        handover.endCommit(isDurable: true)
        handover.endCommit(isDurable: true)
        #expect(!handover.isFull && !handover.isHeldBack(at(90_000), longerThan: .seconds(2)))
    }

    @Test(
        "random lives: each byte and position is in one commit, in the order of arrival",
        arguments: 1...20)
    func random(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var handover = handover(bytes: 300)
        var (taken, committed, lost, now) = (0, 0, 0, Int64(0))
        var open: Set<UInt8> = []
        var places = (noted: 0, committed: 0, lost: 0)
        for _ in 0..<2000 {
            now += Int64.random(in: 0...20, using: &random)
            switch Int.random(in: 0..<9, using: &random) {
            case 0..<3 where !handover.isClosing && !handover.isFull:
                let count = Int.random(in: 0...100, using: &random)
                handover.took(count)
                taken += count
            case 3..<5:
                let name = UInt8.random(in: 0...255, using: &random)
                if open.insert(name).inserted { places.noted += 1 }
                handover.pass.keep(place, of: FileID(bytes: [name]))
            case 5 where !handover.isClosing && !handover.isFull:
                let isQuiet = Bool.random(using: &random)
                guard handover.next(at(now), isQuiet: isQuiet) == .commit else { continue }
                let pass = close(&handover, at: at(now))
                committed += pass.bytes
                places.committed += pass.checkpoints.count
                open = []
                #expect(handover.pass.isEmpty)
            case 6: _ = handover.takeClosed()
            case 7 where handover.underWay > 0 && !handover.isClosing: handover.endCommit(isDurable: true)
            case 8 where Int.random(in: 0..<50, using: &random) == 0:
                lost += handover.pass.bytes
                places.lost += handover.pass.checkpoints.count
                open = []
                handover.giveUp()
                #expect(handover.isEmpty)
            default: break
            }
            #expect(handover.underWay <= Handover.mostUnderWay)
            #expect(taken == committed + lost + handover.pass.bytes)
            #expect(places.noted == places.committed + places.lost + handover.pass.checkpoints.count)
        }
        #expect(committed > 0)
    }
}
