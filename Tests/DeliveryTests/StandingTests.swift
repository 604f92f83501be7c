import EventLoops
import Model
import TestKit
import Testing

@testable import Delivery

/// Whether anything may be sent, without a destination, a queue or a clock.
@Suite("Whether and until when a destination is left alone")
struct StandingTests {
    private let start = Moment(
        boot: BootInstant(nanoseconds: 1_000_000_000), wall: Timestamp(milliseconds: 1_000))

    @Test("reasons have ranks: a hold, Retry-After, no route, an open breaker")
    func precedence() {
        var standing = Standing()
        #expect(standing.obstacle == nil && !standing.isForProbesOnly)
        standing.openBreaker(nextProbe: nil, at: start.wall)
        #expect(standing.obstacle == .breakerOpen && standing.isForProbesOnly)
        standing.noteNoRoute(until: start.boot + .seconds(30))
        #expect(standing.obstacle == .offline)
        #expect(did(wait(&standing, .seconds(60))) == .seconds(60))
        #expect(standing.obstacle == .retryAfter)
        standing.hold(for: .passing, at: start)
        #expect(standing.obstacle == .waitingForRetry)
        standing.hold(for: .refusal, at: start)
        #expect(standing.obstacle == .held)
        #expect(did(standing.liftHold())?.isAnnounced == true && did(standing.liftHold()) == nil)
        #expect(standing.obstacle == .retryAfter)
        #expect(did(standing.passTime(at: start.boot + .seconds(60))), "the wait that was asked for is over")
        #expect(standing.obstacle == .breakerOpen)
        #expect(did(standing.closeBreaker()) && !did(standing.closeBreaker()))
        #expect(standing.obstacle == nil)
    }

    private func wait(_ standing: inout Standing, _ asked: Duration) -> Duration? {
        var noJitter = NoJitter()
        return standing.waitAsTold(asked, using: &noJitter, at: start)
    }

    /// The answer to a refusal by a destination that is probed every 600 s.
    private func refuse(
        _ standing: inout Standing, isAgain: Bool = false, isProbe: Bool = true, isPatient: Bool = true,
        isTrusted: Bool = true, after seconds: Int
    ) -> Standing.Refusal {
        let now = Moment(boot: start.boot + .seconds(seconds), wall: start.wall + .seconds(seconds))
        var noJitter = NoJitter()
        var options = DestinationOptions(name: "main")
        options.probeInterval = .seconds(600)
        return standing.refuse(
            .unauthorised, isAgain: isAgain, isProbe: isProbe, isPatient: isPatient,
            fresh: isTrusted ? Patience(at: now.boot) : nil, options, using: &noJitter, at: now)
    }

    @Test("what has acknowledged lately is asked again after 10, 30, 60 s, and held after five minutes")
    func patience() {
        var standing = Standing()
        var refusal = refuse(&standing, after: 0)
        #expect(refusal.news == .retry(number: 1, wait: .seconds(10)) && refusal.isHold)
        #expect(refusal.batchNotBefore == start.boot && standing.obstacle == .waitingForRetry)
        refusal = refuse(&standing, isAgain: true, isProbe: false, after: 1)
        #expect(refusal.news == nil && !refusal.isHold, "it was in flight when the hold began")
        #expect(refusal.batchNotBefore == start.boot + .seconds(10), "the others go first")
        #expect(did(refuse(&standing, after: 10)).news == .retry(number: 2, wait: .seconds(30)))
        #expect(did(refuse(&standing, after: 40)).news == .retry(number: 3, wait: .seconds(60)))
        #expect(standing.failuresInARow == 3)
        refusal = refuse(&standing, isAgain: true, after: 301)
        #expect(refusal.news == .held(probeIn: .seconds(600)) && standing.obstacle == .held)
        #expect(refusal.batchNotBefore == start.boot + .seconds(901))
        #expect(did(refuse(&standing, after: 901)).news == nil, "it is said once")
    }

    @Test("without a recent acknowledgement, and where the refusal cannot pass, it is held at once")
    func impatience() {
        for (isPatient, isTrusted) in [(true, false), (false, true)] {
            var standing = Standing()
            let refusal = refuse(&standing, isPatient: isPatient, isTrusted: isTrusted, after: 0)
            #expect(refusal.news == .held(probeIn: .seconds(600)) && standing.obstacle == .held)
            #expect(standing.failuresInARow == 0)
        }
    }

    @Test("a hold's probe is before the breaker's; a breaker without probes gets none")
    func probes() {
        var standing = Standing()
        standing.openBreaker(nextProbe: start.boot + .seconds(9), at: start.wall)
        #expect(standing.nextProbe == start.boot + .seconds(9))
        standing.hold(for: .refusal, nextProbe: start.boot, at: start)
        #expect(standing.nextProbe == start.boot)
        standing.setProbes(to: start.boot + .seconds(5))
        _ = standing.liftHold()
        #expect(standing.nextProbe == start.boot + .seconds(5), "both were put off")
        standing.openBreaker(nextProbe: nil, at: start.wall)
        standing.setProbes(to: start.boot + .seconds(5))
        #expect(standing.nextProbe == nil)
    }

    @Test("a failed probe waits for the probe interval, but in a doubt or while refusals may pass less")
    func failedProbe() {
        let cases: [(Standing.Cause?, Int)] = [(nil, 600), (.refusal, 600), (.passing, 60), (.rejection, 10)]
        for (cause, wait) in cases {
            var standing = Standing()
            standing.openBreaker(nextProbe: start.boot, at: start.wall)
            if let cause {
                standing.hold(for: cause, at: start)
            }
            standing.postponeProbes(by: .seconds(600), at: start.boot)
            #expect(standing.nextProbe == start.boot + .seconds(wait))
            standing.postponeProbes(by: .seconds(5), at: start.boot)
            #expect(standing.nextProbe == start.boot + .seconds(5), "never later than the interval")
        }
    }

    @Test("a doubt begins unless the destination is held, and only a probe turns a hold into one")
    func beginDoubt() {
        var standing = Standing()
        standing.beginDoubt(.badRequest, isProbe: false, at: start)
        #expect(standing.hold?.doubt?.isAnnounced == false && standing.nextProbe == start.boot)
        let later = Moment(boot: start.boot + .seconds(9), wall: start.wall + .seconds(9))
        standing.beginDoubt(.tooLarge, isProbe: true, at: later)
        #expect(standing.hold?.failure == .badRequest, "it goes on since the first rejection")
        standing.hold(for: .refusal, at: start)
        standing.beginDoubt(.badRequest, isProbe: false, at: later)
        #expect(standing.hold?.doubt == nil, "the request was in flight when the hold began")
        standing.beginDoubt(.badRequest, isProbe: true, at: later)
        #expect(standing.hold?.doubt?.isAnnounced == true && standing.hold?.since == start.wall)
        #expect(standing.hold?.doubt?.began == later.boot && standing.nextProbe == later.boot)
    }

    @Test("after a failure what is left of a command waits for the hold, the wait asked for, or a retry")
    func afterFailure() {
        var standing = Standing()
        #expect(standing.reasonAfterFailure == .waitingForRetry)
        _ = wait(&standing, .seconds(1))
        #expect(standing.reasonAfterFailure == .retryAfter)
        standing.hold(for: .refusal, at: start)
        #expect(standing.reasonAfterFailure == .held)
        standing.hold(for: .passing, at: start)
        #expect(standing.reasonAfterFailure == .waitingForRetry)
    }

    @Test("a wait that the destination requests is not shortened by a later answer, and ends once")
    func retryAfter() {
        var standing = Standing(retryAfterUntil: start.boot + .seconds(10))
        #expect(did(wait(&standing, .seconds(5))) == nil)
        #expect(did(wait(&standing, .seconds(20))) == .seconds(20))
        #expect(standing.trouble?.since == start.wall, "one request at a time follows")
        #expect(!did(standing.passTime(at: start.boot + .seconds(10))))
        #expect(did(standing.endRetryAfter()) && !did(standing.endRetryAfter()))
    }

    @Test(
        "a wait that the destination requests is at least a second and at most a day, and half of it longer")
    func boundedWait() {
        var short = Standing()
        #expect(did(wait(&short, .zero)) == .seconds(1))
        var long = Standing()
        #expect(did(wait(&long, .seconds(1_000_000))) == .seconds(86_400))
        var random = SplitMix64(seed: 1)
        for _ in 0..<100 {
            var standing = Standing()
            let wait = standing.waitAsTold(.seconds(100), using: &random, at: start)
            #expect(wait.map { $0 >= .seconds(100) && $0 <= .seconds(150) } == true)
        }
    }

    @Test("a missing route is news once, and outlasts what a sender found out")
    func route() {
        var standing = Standing()
        #expect(
            !did(standing.setRoute(true)) && did(standing.setRoute(false)) && !did(standing.setRoute(false)))
        standing.noteNoRoute(until: start.boot)
        standing.forgetNoRoute()
        #expect(!did(standing.passTime(at: start.boot + .seconds(99))) && standing.offline == .noRoute)
        #expect(did(standing.setRoute(true)) && standing.offline == nil)
        standing.noteNoRoute(until: start.boot + .seconds(1))
        #expect(!did(standing.setRoute(true)), "no news: the network never said that it was gone")
        standing.forgetNoRoute()
        #expect(standing.offline == nil)
    }

    @Test("a failing queue is left alone for longer each time; calls that fail together are one failure")
    func store() {
        var standing = Standing()
        var now = start.boot
        for seconds in [1, 2, 4, 8, 16, 30, 30] {
            let wait = Duration.seconds(seconds)
            #expect(did(standing.noteStoreFailure(at: now)) == (now + wait, wait))
            #expect(did(standing.noteStoreFailure(at: now)) == (now + wait, nil))
            now = now + wait
            #expect(
                standing.storeRetryAt == now && !did(standing.passTime(at: now))
                    && standing.storeRetryAt == nil)
        }
        standing.noteStoreAnswer()
        #expect(did(standing.noteStoreFailure(at: now)).wait == .seconds(1))
    }

    @Test("a hold in doubt is announced when its doubt is")
    func announcement() {
        var standing = Standing()
        standing.hold(for: .rejection, at: start)
        #expect(did(standing.liftHold())?.isAnnounced == false)
        standing.hold(for: .rejection, at: start)
        standing.updateDoubt { $0.announce() }
        #expect(did(standing.liftHold())?.isAnnounced == true)
        standing.updateDoubt { $0.announce() }
        #expect(standing.hold == nil)
    }
}

@Suite("The new event that is tried in a doubt")
struct DoubtRoomTests {
    private let start = BootInstant(nanoseconds: 1)

    @Test(
        "every other new event is of another app, from one lane after the other, once until the announcement")
    func elsewhere() {
        var doubt = Doubt(began: start, isAnnounced: false)
        let lanes = Priority.inOrder
        #expect(did(doubt.laneOfOtherApp(lanes)) == .critical)
        doubt.foundNoOther(lanes)
        #expect(did(doubt.laneOfOtherApp(lanes)) == .normal)
        doubt.foundNoOther(lanes)
        for _ in 0..<4 { #expect(did(doubt.laneOfOtherApp(lanes)) == nil) }
        doubt.noteNew()
        #expect([0, 1].map { _ in doubt.laneOfOtherApp(lanes) }.compactMap { $0 }.count == 1)
        doubt.announce()
        let next = (0..<4).map { _ in doubt.laneOfOtherApp(lanes) }
        #expect(next.count { $0 == nil } == 2 && Set(next.compactMap { $0 }).count == 2)
        #expect(did(doubt.laneOfOtherApp([])) == nil)
    }

    @Test(
        "every other probe is the newest event, once until the announcement, and never if order is promised"
    )
    func newest() {
        var doubt = Doubt(began: start, isAnnounced: false)
        #expect(
            [0, 1, 2, 3].map { _ in doubt.looksAtNewest(.free, at: start) } == [false, true, false, false])
        doubt.noteNew()
        #expect([0, 1].map { _ in doubt.looksAtNewest(.free, at: start) } == [true, false])
        doubt.announce()
        #expect(
            [0, 1, 2, 3].map { _ in doubt.looksAtNewest(.free, at: start) } == [true, false, true, false])
        var kept = Doubt(began: start, isAnnounced: true)
        #expect(!did(kept.looksAtNewest(.promised, at: start + .seconds(99))))
        #expect([0, 1].map { _ in kept.looksAtNewest(.kept, at: start + .seconds(9)) } == [false, false])
        #expect([0, 1].map { _ in kept.looksAtNewest(.kept, at: start + .seconds(10)) } == [false, true])
    }

    @Test("the next new probe passes over refused apps, is the newest event, or the next in line")
    func newProbes() {
        var doubt = Doubt(began: start, isAnnounced: true)
        func probe(_ order: DestinationOptions.Order = .free, refused: Set<String>) -> Doubt.NewProbe {
            doubt.newProbe(from: .normal, order, lanes: Priority.inOrder, refused: refused, at: start)
        }
        let first = (0..<4).map { _ in probe(refused: ["bad"]) }
        #expect(first.map(\.lane) == [.critical, .normal, .normal, .normal])
        #expect(first.map(\.notOf) == [["bad"], [], ["bad"], []])
        #expect(first.map(\.isNewest) == [false, false, false, true])
        #expect(doubt.lane == .normal, "the lane of the last new event of any app")
        #expect(probe(.promised, refused: ["bad"]) == Doubt.NewProbe(lane: .normal), "nothing may be passed")
        var fresh = Doubt(began: start, isAnnounced: false)
        let next = fresh.newProbe(from: .critical, .free, lanes: [], refused: [], at: start)
        #expect(next == Doubt.NewProbe(lane: .critical), "no app is known to be refused")
    }
}
