@testable import Delivery
import EventLoops
import Model
import Testing

@Suite("Commands, switches, stop")
struct CommandTests {
    let first = CommandID(number: 1)
    let second = CommandID(number: 2)

    @Test("ga04: dispatch sends what waits now, keeps the interval, and makes no request without events")
    func ga04_dispatch() {
        var world = World(options(interval: .every(.seconds(600))))
        world.input(.dispatch(nil, nil))
        world.run(.seconds(1))
        #expect(world.sent.isEmpty)
        world.accept(5)
        world.accept(1, .critical)
        world.input(.dispatch(nil, nil))
        world.run(.seconds(1))
        #expect(world.sent.map(\.priority) == [.critical, .normal])
        #expect(world.store.queued == 0)
        let start = world.boot
        world.accept(5)
        world.run(.seconds(700))
        #expect(world.sent.count == 3)
        #expect(world.sent[2].at - start >= .seconds(600))
    }

    @Test("ga05: dispatch --wait reports each request and the number left, while periodic dispatch rests")
    func ga05_dispatchAndWait() {
        var world = World(options { $0.parallelBatches = 1 })
        world.answer = { _, _ in (.seconds(5), .acknowledged) }
        world.accept(120)
        world.run(.milliseconds(500))
        world.input(.dispatch(first, nil))
        world.run(.seconds(2))
        world.accept(20)
        world.run(.seconds(60))
        #expect(world.reports.first == .good("main", waiting: 40))
        #expect(world.results[first] == .done)
        // What came later waited for its interval, and periodic dispatch is back.
        #expect(world.store.queued == 0)
    }

    @Test("ga06: a drain also sends events that arrived for one destination while another was busy")
    func ga06_drainGoesRound() {
        var options = options(interval: .off)
        options.destinations.append(DestinationOptions(name: "slow"))
        var world = World(options)
        world.answer = { _, sent in
            (sent.destination == "slow" ? .seconds(10) : .milliseconds(50), .acknowledged)
        }
        world.accept(10)
        world.accept(10, to: "slow")
        world.input(.drain(first, nil, timeout: .seconds(60)))
        world.run(.seconds(5))
        world.accept(10)
        world.run(.seconds(4))
        #expect(world.sent.count == 2 && world.results.isEmpty)
        world.run(.seconds(20))
        #expect(world.results[first] == .done && world.store.queued == 0)
        #expect(world.sent.count == 3 && world.wishes == 3)
    }

    @Test("ga05: the failure of an earlier request does not end a dispatch")
    func ga05_othersFail() {
        var world = World(options())
        world.answer = { _, sent in
            sent.events.count == 50 ? (.seconds(10), .retry(.unavailable)) : (.seconds(20), .acknowledged)
        }
        world.accept(50)
        world.run(.milliseconds(100))
        world.accept(10)
        world.input(.dispatch(first, nil))
        world.run(.seconds(15))
        #expect(world.sizes.prefix(2) == [50, 10] && world.results.isEmpty)
        world.run(.seconds(10))
        #expect(world.results[first] != nil && world.store.acknowledged.count == 10)
    }

    @Test("ga05: no data is explained by the reason of highest rank")
    func ga05_reasons() {
        func reason(_ prepare: (inout World) -> Void) -> DestinationStateName? {
            var world = World(options())
            prepare(&world)
            world.reports = []
            world.input(.dispatch(first, nil))
            world.run(.seconds(1))
            guard case .noData(_, let reason)? = world.reports.last else { return .active }
            #expect(world.results[first]?.exitCode == (reason == nil ? 0 : 75))
            return reason
        }
        func answering(_ outcome: Outcome, _ world: inout World) {
            world.answer = { _, _ in (.milliseconds(1), outcome) }
            world.accept(50)
            world.run(.seconds(2))
        }
        #expect(reason { _ in } == nil)
        #expect(reason { $0.input(.enabled(false)) } == .disabled)
        #expect(reason { $0.input(.network(on: false)) } == .networkOff)
        #expect(reason { $0.input(.pause(token: "t", nil, ttl: nil, untilRestart: false)) } == .paused)
        #expect(reason { $0.input(.pause(token: "t", "main", ttl: nil, untilRestart: false)) } == .paused)
        #expect(reason { $0.input(.routes(["main": false])) } == .offline)
        #expect(reason { answering(.held(.unauthorised), &$0) } == .held)
        #expect(reason { answering(.retryAfter(.seconds(60), .unavailable), &$0) } == .retryAfter)
        #expect(reason { answering(.retry(.unavailable), &$0) } == .waitingForRetry)
        #expect(
            reason {
                $0.input(.routes(["main": false]))
                $0.input(.pause(token: "t", nil, ttl: nil, untilRestart: false))
                $0.input(.network(on: false))
                $0.input(.enabled(false))
            } == .disabled)
    }

    @Test("ga05: with the breaker open dispatch sends one probe")
    func ga05_breakerProbe() {
        var world = World(options { $0.whenExhausted = .suspend })
        world.answer = { _, _ in (.milliseconds(1), .retry(.unavailable)) }
        world.accept(200)
        world.run(.seconds(86_400))
        let before = world.sent.count
        world.input(.dispatch(first, nil))
        world.run(.seconds(60))
        #expect(world.sent.count == before + 1)
        #expect(world.results[first]?.exitCode == 75)
        world.input(.drain(second, nil, timeout: .seconds(30)))
        world.run(.seconds(60))
        #expect(world.sent.count == before + 2)
        #expect(world.results[second]?.exitCode == 75)
    }

    @Test("ga06: drain continues until nothing waits, including events that arrived after its beginning")
    func ga06_drain() {
        var world = World(options(interval: .off))
        world.answer = { _, _ in (.seconds(1), .acknowledged) }
        world.accept(500)
        for second in 0..<5 { world.later(.seconds(second), .accept("main", .normal, 10)) }
        world.input(.drain(first, nil, timeout: .seconds(60)))
        world.run(.seconds(60))
        #expect(world.results[first] == .done)
        #expect(world.store.queued == 0)
        world.accept(500)
        world.run(.seconds(1000))
        #expect(world.store.queued == 500)
    }

    @Test("ga06: drain leaves nothing, even if summaries that show a lease arrive before the lease")
    func ga06_drainWithOvertakingSummaries() {
        for start in stride(from: 100, through: 1200, by: 50) {
            var world = World(options(interval: .every(.seconds(1))))
            world.summariesOvertake = true
            // What was acknowledged shows later.
            world.summaryLag = { _ in .milliseconds(80) }
            world.answer = { _, _ in (.milliseconds(20), .acknowledged) }
            world.accept(199)
            world.run(.milliseconds(start))
            world.input(.drain(first, nil, timeout: .seconds(60)))
            let begun = world.boot
            while world.results[first] == nil { world.run(.milliseconds(1)) }
            #expect(world.elapsed(since: begun) < .seconds(2))
            #expect(world.results[first] == .done && world.store.queued == 0, "drained after \(start) ms")
        }
    }

    @Test("ga06: the deadline stops new requests, the one in flight ends, and the exit code is 124")
    func ga06_deadline() {
        var world = World(options(interval: .off) { $0.parallelBatches = 1 })
        world.answer = { _, _ in (.seconds(10), .acknowledged) }
        world.accept(500)
        world.input(.drain(first, nil, timeout: .seconds(15)))
        world.run(.seconds(16))
        #expect(world.results[first] == nil)
        world.run(.seconds(60))
        #expect(world.sent.count == 2)
        #expect(world.results[first] == .timedOut(waiting: 400))
        world.input(.drain(second, nil, timeout: .zero))
        world.run(.seconds(60))
        #expect(world.sent.count == 2 && world.results[second]?.exitCode == 124)
    }

    @Test(
        "ga06: a drain beyond its deadline answers although a receiver hangs, and requests in flight end later"
    )
    func ga06_hangingReceiver() {
        var world = World(options(interval: .off) { $0.parallelBatches = 1 })
        world.answer = { _, _ in (.seconds(40), .acknowledged) }
        world.accept(100)
        world.input(.drain(first, nil, timeout: .seconds(3)))
        world.run(.seconds(10))
        #expect(world.results[first] == nil)
        world.run(.seconds(2))
        #expect(world.results[first] == .timedOut(waiting: 100))
        world.run(.seconds(60))
        #expect(world.sent.count == 1 && world.store.queued == 50)
    }

    @Test(
        "ga06: an error or an obstacle ends a drain with 75 and the reason; without events it is 0, unless disabled"
    )
    func ga06_stuck() {
        var world = World(options())
        world.answer = { _, _ in (.milliseconds(1), .held(.unauthorised)) }
        world.accept(20)
        world.input(.drain(first, nil, timeout: .seconds(60)))
        world.run(.seconds(10))
        #expect(world.results[first]?.exitCode == 75)
        var paused = World(options())
        paused.input(.pause(token: "x", nil, ttl: nil, untilRestart: false))
        paused.input(.drain(first, nil, timeout: .seconds(60)))
        paused.run(.seconds(1))
        #expect(paused.results[first] == .done)
        paused.accept(1)
        paused.input(.drain(second, nil, timeout: .seconds(60)))
        paused.run(.seconds(1))
        #expect(paused.results[second] == .stuck(["main": .paused]))
        var disabled = World(options())
        disabled.input(.enabled(false))
        disabled.input(.drain(first, nil, timeout: .seconds(60)))
        disabled.input(.dispatch(second, nil))
        disabled.run(.seconds(1))
        #expect(disabled.results[first] == .stuck(["main": .disabled]))
        #expect(disabled.results[second] == .stuck(["main": .disabled]))
    }

    @Test("ga06: when the client disconnects, periodic dispatch resumes")
    func ga06_cancel() {
        var world = World(options())
        world.answer = { _, _ in (.seconds(5), .retry(.unavailable)) }
        world.accept(10)
        world.input(.drain(first, nil, timeout: .seconds(600)))
        world.run(.seconds(1))
        world.input(.cancel(first))
        #expect(world.results[first] == .cancelled)
        world.answer = { _, _ in (.milliseconds(1), .acknowledged) }
        world.run(.seconds(60))
        #expect(world.store.queued == 0)
    }

    @Test("ga07: SIGTERM drains for the grace period, then cuts; 0, off, pause and network off send nothing")
    func ga07_stop() {
        var world = World(options(interval: .every(.seconds(600))))
        world.accept(30)
        world.input(.stop(grace: .seconds(10)))
        world.run(.seconds(1))
        #expect(world.isStopped && world.store.queued == 0)

        var slow = World(options())
        slow.answer = { _, _ in (.seconds(60), .acknowledged) }
        slow.accept(30)
        slow.input(.stop(grace: .seconds(10)))
        slow.run(.seconds(9))
        #expect(!slow.isStopped && slow.sent.count == 1)
        // The first deadline counts.
        slow.input(.stop(grace: .seconds(10)))
        slow.run(.seconds(2))
        #expect(slow.isStopped && slow.store.queued == 30 && slow.store.leased.isEmpty)

        let nothing: [(inout World) -> Duration] = [
            { _ in .zero },
            {
                $0.input(.interval(.off, isDurable: false))
                return .seconds(10)
            },
            {
                $0.input(.pause(token: "x", nil, ttl: nil, untilRestart: true))
                return .seconds(10)
            },
            {
                $0.input(.network(on: false))
                return .seconds(10)
            },
        ]
        for prepare in nothing {
            var world = World(options(interval: .every(.seconds(600))))
            world.accept(30)
            let grace = prepare(&world)
            world.input(.stop(grace: grace))
            world.run(.seconds(20))
            #expect(world.isStopped && world.sent.isEmpty && world.store.queued == 30)
        }
    }

    @Test("ga07: a second SIGTERM ends at once")
    func ga07_hurry() {
        var world = World(options())
        world.answer = { _, _ in (.seconds(60), .acknowledged) }
        world.accept(300)
        world.run(.seconds(1))
        world.input(.stop(grace: .seconds(600)))
        #expect(!world.isStopped)
        world.input(.hurry)
        #expect(world.isStopped)
        world.run(.seconds(1))
        #expect(world.store.leased.isEmpty && world.store.queued == 300)
    }

    @Test("ac16: pause tokens: each counts once, unknown ones change nothing, and a ttl ends one by itself")
    func ac16_tokens() {
        var world = World(options())
        world.input(.pause(token: "a", nil, ttl: nil, untilRestart: false))
        world.input(.pause(token: "a", nil, ttl: nil, untilRestart: false))
        world.input(.pause(token: "b", nil, ttl: .seconds(100), untilRestart: false))
        world.accept(100)
        world.input(.resume(token: "zzz", nil))
        world.input(.resume(token: "a", nil))
        world.run(.seconds(99))
        #expect(world.sent.isEmpty)
        world.run(.seconds(2))
        #expect(world.store.queued == 0)
        #expect(!world.switches.keys.contains { $0.hasPrefix("delivery.pause/") })
    }

    @Test("ac16: resume ends what status names: all pauses without a token, or one token wherever it holds")
    func ac16_resumeEverything() {
        var both = options()
        both.destinations.append(DestinationOptions(name: "other"))
        for (token, left) in [(nil, []), ("deploy", ["x"])] as [(String?, [String])] {
            var world = World(both)
            world.input(.pause(token: "deploy", "other", ttl: nil, untilRestart: false))
            world.input(.pause(token: "deploy", nil, ttl: nil, untilRestart: false))
            world.input(.pause(token: "x", "main", ttl: nil, untilRestart: false))
            #expect(world.machine.snapshot(at: world.now).heldTokens == 3)
            world.input(.resume(token: token, nil))
            let tokens = world.machine.snapshot(at: world.now).destinations.flatMap(\.pauseTokens)
            #expect(tokens == left)
            #expect(world.machine.snapshot(at: world.now).heldTokens == left.count)
            #expect(world.switches.keys.filter { $0.hasPrefix("delivery.pause/") }.count == left.count)
        }
        // Of one destination only its own.
        var world = World(both)
        world.input(.pause(token: "a", "other", ttl: nil, untilRestart: false))
        world.input(.pause(token: "a", "main", ttl: nil, untilRestart: false))
        world.input(.resume(token: nil, "other"))
        #expect(world.machine.snapshot(at: world.now).destinations.flatMap(\.pauseTokens) == ["a"])
    }

    @Test("ac16: a pause survives a restart unless it was until the restart, also for one destination")
    func ac16_durable() {
        var both = options()
        both.destinations.append(DestinationOptions(name: "other"))
        var world = World(both)
        world.input(.pause(token: "a/b", "other", ttl: nil, untilRestart: false))
        world.input(.pause(token: "c", nil, ttl: nil, untilRestart: true))
        world.restart()
        #expect(world.notes.contains(.pauseKept(token: "a/b")))
        world.accept(50)
        world.accept(50, to: "other")
        world.run(.seconds(100))
        #expect(world.sent.map(\.destination) == ["main"])
        world.input(.resume(token: "a/b", "other"))
        world.run(.seconds(10))
        #expect(world.store.queued == 0)
        world.input(.pause(token: "t", nil, ttl: .seconds(1000), untilRestart: false))
        world.stepWall(by: .seconds(-1_000_000))
        world.restart()
        world.accept(50)
        world.run(.seconds(1010))
        #expect(world.store.queued == 0)
    }

    @Test("ac16: requests in flight at a pause end, and nothing new begins, not even a batch just leased")
    func ac16_leasedButNotSent() {
        var world = World(options())
        world.accept(50)
        #expect(world.sent.isEmpty)
        world.input(.pause(token: "a", nil, ttl: nil, untilRestart: false))
        world.run(.seconds(10))
        #expect(world.sent.isEmpty && world.store.leased.isEmpty)
    }

    @Test("ac17: disabling forgets everything, late answers are ignored, and enabling starts afresh")
    func ac17_disable() {
        var world = World(options())
        world.answer = { _, _ in (.seconds(5), .acknowledged) }
        world.accept(200)
        world.run(.seconds(1))
        world.input(.enabled(false))
        world.input(.forget)
        world.store.batches = [:]
        world.store.waiting = [:]
        world.store.leased = []
        world.publish()
        world.run(.seconds(60))
        #expect(world.store.acknowledged.isEmpty && world.store.faults.isEmpty)
        #expect(world.shown.attempts == 0 && world.keepsNothing)
        world.input(.enabled(true))
        world.accept(50)
        world.run(.seconds(60))
        #expect(world.store.acknowledged.count == 50)
    }

    @Test(
        "ga06: a drain that times out before its first request reports how many wait, not that there is no data"
    )
    func ga06_outOfTimeBeforeTheFirst() {
        var world = World(options(interval: .off))
        world.storeLatency = { _ in .seconds(60) }
        world.accept(10)
        world.input(.drain(first, nil, timeout: .seconds(5)))
        world.run(.seconds(200))
        #expect(world.results[first] == .timedOut(waiting: 10) && world.reports.isEmpty)
    }

    @Test(
        "network on ends the waits, once; off is reported at each start, and is not shown as another reason")
    func networkOnAgain() {
        var world = World(options())
        world.answer = { _, _ in (.milliseconds(10), .retry(.unavailable)) }
        world.accept(10)
        world.run(.seconds(7))
        world.input(.network(on: false))
        world.answer = { _, _ in (.milliseconds(10), .acknowledged) }
        world.run(.milliseconds(100))
        world.notes = []
        world.restart()
        #expect(
            world.notes.contains(.network(on: false)) && world.machine.snapshot(at: world.now).heldTokens == 0
        )
        world.input(.network(on: true))
        world.run(.milliseconds(100))
        #expect(world.store.acknowledged.count == 10)
        world.notes = []
        world.input(.network(on: true))
        #expect(world.notes.isEmpty)

        // A wait of minutes ends with it.
        world.answer = { _, _ in (.milliseconds(10), .retry(.unavailable)) }
        world.accept(10)
        world.run(.seconds(120))
        world.input(.network(on: false))
        world.answer = { _, _ in (.milliseconds(10), .acknowledged) }
        world.input(.network(on: true))
        world.run(.milliseconds(100))
        #expect(world.store.acknowledged.count == 20)
    }

    @Test("network off: events are collected, no connection is made, also after a restart")
    func networkOff() {
        var world = World(options())
        world.input(.network(on: false))
        world.accept(500)
        world.run(.seconds(1000))
        world.restart()
        world.run(.seconds(1000))
        world.input(.dispatch(nil, nil))
        world.run(.seconds(1000))
        #expect(world.sent.isEmpty)
        world.input(.network(on: true))
        world.run(.seconds(1))
        #expect(world.store.queued == 0)
        #expect(world.switches.isEmpty || world.switches["delivery.network"] == nil)
    }

    @Test("the first requests of a fleet are spread over time")
    func fault14_firstConnection() {
        var times: [Duration] = []
        for seed in 0..<200 {
            var fleet = options()
            fleet.startSpread = .seconds(2)
            var world = World(fleet, seed: UInt64(seed))
            let start = world.boot
            world.accept(50)
            world.run(.seconds(10))
            times.append(world.sent[0].at - start)
        }
        #expect(times.allSatisfy { $0 <= .milliseconds(2010) })
        #expect(times.count { $0 < .seconds(1) } > 60 && times.count { $0 > .seconds(1) } > 60)
    }
}

@Suite("Immediate commands")
struct NowTests {
    @Test("a command for now ends the wait for a retry, once", arguments: [false, true])
    func endsTheWaitForARetry(isDrain: Bool) {
        var world = World(options())
        world.answer = { _, _ in (.milliseconds(10), .retry(.unavailable)) }
        world.accept(120)
        world.run(.seconds(120))
        #expect(world.store.acknowledged.isEmpty && world.nextIn.map { $0 > .zero } == true)
        let id = CommandID(number: 1)
        let now: DeliveryInput = isDrain ? .drain(id, nil, timeout: .seconds(60)) : .dispatch(id, nil)
        // Not repaired yet: each batch goes once at most, and the command says what failed.
        let before = world.sent.count
        world.input(now)
        world.run(.seconds(5))
        #expect((1...3).contains(world.sent.count - before))
        #expect(world.reports.contains { if case .error = $0 { true } else { false } })
        #expect(world.results[id]?.exitCode == 75)
        world.answer = { _, _ in (.milliseconds(10), .acknowledged) }
        world.results = [:]
        world.input(now)
        world.run(.seconds(5))
        #expect(world.store.acknowledged.count == 120)
        #expect(world.results[id] == .done)
    }

    @Test(
        "a Retry-After of a thousand years ends with dispatch and drain, and does not return after a restart"
    )
    func endsRetryAfter() {
        for isDrain in [false, true] {
            var world = World(options())
            world.answer = { _, _ in (.milliseconds(10), .retryAfter(.seconds(31_536_000_000), .unavailable))
            }
            world.accept(50)
            world.run(.seconds(20))
            #expect(world.sent.count == 1 && world.shown.obstacle == .retryAfter)
            world.answer = { _, _ in (.milliseconds(10), .acknowledged) }
            let id = CommandID(number: 1)
            world.input(isDrain ? .drain(id, nil, timeout: .seconds(60)) : .dispatch(id, nil))
            world.run(.seconds(5))
            #expect(world.store.acknowledged.count == 50 && world.results[id] == .done)
            #expect(world.switches[SwitchName.retryAfter("main")] == nil)
        }
    }

    @Test("a held destination is tried once; a pause and network off override the command, which says so")
    func heldPausedOff() {
        var world = World(options())
        world.answer = { _, _ in (.milliseconds(10), .held(.unauthorised)) }
        world.accept(50)
        world.run(.seconds(20))
        #expect(world.isHeld)
        world.answer = { _, _ in (.milliseconds(10), .acknowledged) }
        world.input(.dispatch(CommandID(number: 1), nil))
        world.run(.seconds(5))
        #expect(world.store.acknowledged.count == 50 && !world.isHeld)
        world.accept(50)
        world.input(.network(on: false))
        world.input(.dispatch(CommandID(number: 2), nil))
        world.run(.seconds(5))
        #expect(world.results[CommandID(number: 2)] == .stuck(["main": .networkOff]))
        #expect(world.reports.last == .noData("main", .networkOff))
    }
}
