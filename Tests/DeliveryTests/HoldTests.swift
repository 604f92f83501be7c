import EventLoops
import Model
import Testing

@testable import Delivery

/// A hold and its doubt, without a destination, a queue or a clock.
@Suite("A hold")
struct HoldTests {
    private let start = BootInstant(nanoseconds: 1_000_000_000)

    private func hold(doubt: Doubt? = nil, patience: Patience? = nil) -> Hold {
        Hold(
            failure: .badRequest, since: Timestamp(milliseconds: 1), nextProbe: start, doubt: doubt,
            patience: patience)
    }

    private func inDoubt(isAnnounced: Bool = false) -> Hold {
        hold(doubt: Doubt(began: start, isAnnounced: isAnnounced))
    }

    /// One more rejection some seconds after the start.
    private func reject(
        _ hold: inout Hold, after seconds: Int, order: DestinationOptions.Order = .free,
        probeInterval: Duration = .seconds(600), _ change: (inout Hold.Rejection) -> Void = { _ in }
    ) -> Duration? {
        var rejection = Hold.Rejection()
        change(&rejection)
        var options = DestinationOptions(name: "main")
        options.order = order
        options.probeInterval = probeInterval
        var noJitter = NoJitter()
        return hold.goOnDoubting(rejection, options, using: &noJitter, at: start + .seconds(seconds))
    }

    @Test(
        "a person has to act unless refusals may pass; the log says it of a doubt only once it is announced")
    func state() {
        #expect(hold().state == .held && hold().isAnnounced)
        let patient = hold(patience: Patience(at: start))
        #expect(patient.state == .waitingForRetry && !patient.isAnnounced)
        #expect(!inDoubt().isAnnounced && inDoubt(isAnnounced: true).isAnnounced)
    }

    @Test("for 30 s what was not tried is tried at once; then it counts as held, which is said once")
    func patience() {
        var hold = inDoubt()
        #expect(did(reject(&hold, after: 5) { $0.hasUntried = { _ in true } }) == nil)
        #expect(hold.nextProbe == start + .seconds(5), "at once")
        #expect(did(reject(&hold, after: 6)) == nil)
        #expect(hold.nextProbe == start + .seconds(16), "nothing is left to try")
        let asked = did(reject(&hold, after: 30) { $0.hasUntried = { _ in true } })
        #expect(asked == .seconds(10) && hold.doubt?.isAnnounced == true)
        #expect(did(reject(&hold, after: 40)) == nil, "it is said once")
    }

    @Test("untried is what was not tried since the doubt began")
    func untriedSince() {
        var hold = inDoubt()
        var asked: BootInstant?
        _ = reject(&hold, after: 5) {
            $0.hasUntried = {
                asked = $0
                return true
            }
        }
        #expect(asked == start)
    }

    @Test("the wait is 10 s, 5 s beside set-aside batches once held, and never more than a probe interval")
    func waits() {
        var hold = inDoubt(isAnnounced: true)
        _ = reject(&hold, after: 40)
        #expect(hold.nextProbe == start + .seconds(50))
        _ = reject(&hold, after: 50) { $0.hasRefused = true }
        #expect(hold.nextProbe == start + .seconds(55))
        _ = reject(&hold, after: 60, probeInterval: .seconds(2))
        #expect(hold.nextProbe == start + .seconds(62))
        var young = inDoubt()
        _ = reject(&young, after: 1) { $0.hasRefused = true }
        #expect(young.nextProbe == start + .seconds(11), "set-aside batches have no turns yet")
    }

    @Test("an answer to a request that was in flight does not move a probe that is planned")
    func inFlight() {
        var hold = inDoubt()
        hold.nextProbe = start + .seconds(20)
        _ = reject(&hold, after: 6) { $0.isProbe = false }
        #expect(hold.nextProbe == start + .seconds(20))
        _ = reject(&hold, after: 20) { $0.isProbe = false }
        #expect(hold.nextProbe == start + .seconds(30), "the planned one is due")
    }

    @Test("with a promised order the doubt lasts until memory is full of rejected batches")
    func promised() {
        var hold = inDoubt()
        #expect(did(reject(&hold, after: 300, order: .promised)) == nil && hold.doubt?.isAnnounced == false)
        #expect(did(reject(&hold, after: 301, order: .promised) { $0.hasRoom = false }) == .seconds(10))
    }

    @Test("new events are tried at once, and within 10 s where the destination counts as held")
    func newEvents() {
        var hold = inDoubt()
        hold.nextProbe = start + .seconds(100)
        hold.noteNewEvents(.free, hasRoom: true, at: start + .seconds(5))
        #expect(hold.nextProbe == start + .seconds(5))
        hold.nextProbe = start + .seconds(100)
        hold.noteNewEvents(.free, hasRoom: true, at: start + .seconds(40))
        #expect(hold.nextProbe == start + .seconds(50))
        hold.noteNewEvents(.free, hasRoom: true, at: start + .seconds(45))
        #expect(hold.nextProbe == start + .seconds(50), "never later")
        var other = self.hold()
        other.nextProbe = start + .seconds(100)
        other.noteNewEvents(.free, hasRoom: true, at: start)
        #expect(other.nextProbe == start + .seconds(100), "not a doubt")
    }
}
