import EventLoops
@testable import Spool
import TestKit
import Testing

/// What is due later, without a disk, a clock or a reader.
@Suite("Spool: the agenda")
struct AgendaTests {
    private func at(_ milliseconds: Int64) -> BootInstant {
        BootInstant(nanoseconds: milliseconds * 1_000_000)
    }

    @Test("equal errands are merged, at the earliest time requested")
    func merging() {
        var agenda = Agenda()
        agenda.plan(.poll, at: at(30))
        agenda.plan(.poll, at: at(20))
        agenda.plan(.poll, at: at(40))
        agenda.plan(.check(FileID(bytes: [1])), at: at(20))
        #expect(agenda.count == 2)
        #expect(agenda.popDue(at(19)) == nil)
        #expect(Set([agenda.popDue(at(20)), agenda.popDue(at(20))]) == [.poll, .check(FileID(bytes: [1]))])
        #expect(agenda.popDue(at(100)) == nil && agenda.count == 0)
        // Once it was done it can be planned again, also for a time that an earlier plan had.
        agenda.plan(.poll, at: at(40))
        #expect(agenda.popDue(at(40)) == .poll && agenda.popDue(at(40)) == nil)
    }

    @Test("there is one alarm, for the earliest errand; only an earlier errand moves the timer")
    func alarm() {
        var agenda = Agenda()
        #expect(agenda.nextAlarm() == nil)
        agenda.plan(.poll, at: at(30))
        #expect(agenda.nextAlarm() == at(30) && agenda.nextAlarm() == nil)
        agenda.plan(.wake, at: at(50))
        #expect(agenda.nextAlarm() == nil)
        agenda.plan(.wake, at: at(10))
        #expect(agenda.nextAlarm() == at(10))
        agenda.alarmFired()
        #expect(agenda.popDue(at(10)) == .wake && agenda.nextAlarm() == at(30))
        agenda.alarmFired()
        #expect(agenda.popDue(at(30)) == .poll)
        // The superfluous entry of the errand that was moved to an earlier time sets no alarm.
        #expect(agenda.nextAlarm() == nil && agenda.count == 0)
    }

    @Test("what was planned for later and done at once leaves nothing: a busy file holds a few entries")
    func stale() {
        var agenda = Agenda()
        for number in UInt8.min...UInt8.max { agenda.plan(.read(FileID(bytes: [number])), at: at(900_000)) }
        for write in 0..<20_000 {
            let file = FileID(bytes: [UInt8(write % 8)])
            agenda.plan(.check(file), at: at(Int64(600_000 + write)))
            agenda.plan(.check(file), at: at(Int64(write)))
            #expect(agenda.popDue(at(Int64(write))) == .check(file))
            #expect(agenda.entries <= 2 * agenda.count + 65)
        }
        #expect(agenda.count == 256 && agenda.nextAlarm() == at(900_000))
    }

    @Test(
        "random plans: each errand runs once, not before its time, and never without an alarm",
        arguments: 1...40)
    func random(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var agenda = Agenda()
        var expected: [Errand: BootInstant] = [:]
        var timer: BootInstant?
        var now: Int64 = 0
        for _ in 0..<2_000 {
            if Bool.random(using: &random) {
                let id = FileID(bytes: [UInt8.random(in: 0..<6, using: &random)])
                let errand: Errand = Bool.random(using: &random) ? .check(id) : .read(id)
                let time = at(now + Int64.random(in: 0..<50, using: &random))
                agenda.plan(errand, at: time)
                expected[errand] = min(expected[errand] ?? time, time)
            } else {
                now += Int64.random(in: 0..<20, using: &random)
                if let set = timer, set <= at(now) {
                    timer = nil
                    agenda.alarmFired()
                }
                while let errand = agenda.popDue(at(now)) {
                    #expect(expected[errand].map { $0 <= at(now) } == true)
                    expected[errand] = nil
                }
                #expect(expected.values.allSatisfy { $0 > at(now) })
            }
            if let next = agenda.nextAlarm() {
                #expect(timer.map { next < $0 } ?? true)
                timer = next
            }
            #expect(agenda.count == expected.count)
            // The timer may come too early, after the errand that it was set for was done; never too late.
            if let earliest = expected.values.min() { #expect(timer.map { $0 <= earliest } == true) }
        }
    }
}
