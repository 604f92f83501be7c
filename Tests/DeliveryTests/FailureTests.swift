@testable import Delivery
import EventLoops
import Model
import TestKit
import Testing

@Suite("Retries, breaker, Retry-After, holds")
struct FailureTests {
    @Test("ac13: one attempt and three retries of the same batch, then the breaker opens")
    func ac13_fourAttempts() {
        var world = World(options { $0.whenExhausted = .suspend })
        world.answer = { _, _ in (.milliseconds(10), .retry(.unavailable)) }
        world.accept(50)
        world.run(.seconds(86_400))
        #expect(world.sent.count == 4)
        #expect(Set(world.sent.map(\.batch)).count == 1)
        let waits = zip(world.sent, world.sent.dropFirst()).map { $1.at - $0.at }
        #expect((.seconds(5) ... .milliseconds(10_020)).contains(waits[0]))
        #expect((.seconds(150) ... .milliseconds(300_020)).contains(waits[1]))
        #expect((.seconds(600) ... .milliseconds(1_200_020)).contains(waits[2]))
        #expect(world.isBroken && world.nextIn == nil)
        #expect(world.alerts == 1)
    }

    @Test("a destination that keeps answering Retry-After counts as failing since the first answer")
    func refusingSince() throws {
        var world = World(options())
        var takes = false
        world.answer = { _, _ in
            (.milliseconds(10), takes ? .acknowledged : .retryAfter(.seconds(5), .unavailable))
        }
        func since() -> Timestamp? { world.machine.snapshot(at: world.now).destinations.first?.since }
        world.accept(50)
        world.run(.seconds(1))
        let first = try #require(since())
        world.run(.seconds(60))
        #expect(world.sent.count > 3 && since() == first)
        takes = true
        world.runUntilQuiet()
        #expect(world.store.queued == 0 && since() == nil)
    }

    @Test("a destination that fails says since when, before it is suspended too, until a batch arrives")
    func failingSince() throws {
        var world = World(options())
        var takes = false
        world.answer = { _, _ in (.milliseconds(10), takes ? .acknowledged : .retry(.unavailable)) }
        func since() -> Timestamp? { world.machine.snapshot(at: world.now).destinations.first?.since }
        world.accept(50)
        world.run(.seconds(1))
        let first = try #require(since())
        world.run(.seconds(3_600))
        #expect(world.sent.count > 3 && since() == first)
        takes = true
        world.runUntilQuiet()
        #expect(world.store.queued == 0 && since() == nil)
    }

    @Test(
        "Retry-After in the answer to a request that the stop or a disabling has overtaken counts after the restart",
        arguments: [false, true])
    func retryAfterAtTheEnd(isDisabled: Bool) {
        var world = World(options())
        world.answer = { _, _ in (.seconds(1), .retryAfter(.seconds(600), .unavailable)) }
        world.accept(50)
        world.run(.milliseconds(500))
        if isDisabled {
            world.input(.enabled(false))
            world.store.empty()
            world.input(.forget)
            world.run(.seconds(1))
            world.input(.enabled(true))
        } else {
            world.input(.stop(grace: .seconds(5)))
            world.run(.seconds(1))
            #expect(world.isStopped)
            world.restart(down: .seconds(2))
        }
        world.answer = { _, _ in (.milliseconds(1), .acknowledged) }
        world.accept(50)
        world.run(.seconds(500))
        #expect(world.sent.count == 1 && world.shown.obstacle == .retryAfter)
        world.run(.seconds(500))
        #expect(world.store.queued == 0)
    }

    @Test(
        "ac13: Retry-After holds the whole destination, is durable, lengthened at random, limited, and no attempt"
    )
    func ac13_retryAfter() throws {
        var world = World(options())
        var answers = 0
        world.answer = { _, _ in
            answers += 1
            return (
                .milliseconds(10), answers <= 20 ? .retryAfter(.seconds(100), .unavailable) : .acknowledged
            )
        }
        world.accept(50)
        world.run(.seconds(1))
        world.accept(50)
        world.accept(50, .critical)
        world.run(.seconds(98))
        #expect(world.sent.count == 1)
        #expect(world.switches["delivery.retry_after/main"] != nil)
        world.restart(down: .milliseconds(500))
        #expect(world.shown.obstacle == .retryAfter)
        // That is kept beside pauses, and is none.
        #expect(world.machine.snapshot(at: world.now).heldTokens == 0)
        world.runUntilQuiet()
        // Twenty refusals: more than a schedule has retries, and the breaker never opened.
        #expect(world.store.queued == 0)
        #expect(!world.notes.contains { if case .breakerOpened = $0 { true } else { false } })
        #expect(world.switches["delivery.retry_after/main"] == nil)

        var long = World(options())
        long.answer = { _, _ in (.zero, .retryAfter(.seconds(86_400 * 365), .unavailable)) }
        long.accept(50)
        long.run(.seconds(1))
        let wait = try #require(long.nextIn)
        #expect((.seconds(86_390) ... .seconds(129_650)).contains(wait))
        long.stepWall(by: .seconds(-86_400 * 1000))
        long.restart()
        #expect(try #require(long.nextIn) <= .seconds(129_650))
    }

    @Test(
        "ac14: with suspend only a network change, resume, a restart or changed retry settings close the breaker"
    )
    func ac14_suspend() {
        for way in 0..<5 {
            var world = World(options { $0.whenExhausted = .suspend })
            world.answer = { _, _ in (.milliseconds(10), .retry(.unavailable)) }
            world.accept(50)
            world.run(.seconds(86_400))
            let before = world.sent.count
            world.accept(100)
            world.run(.seconds(86_400))
            #expect(world.sent.count == before)
            world.answer = { _, _ in (.milliseconds(10), .acknowledged) }
            switch way {
            case 0: world.input(.networkChanged)
            case 1: world.input(.resume(token: nil, nil))
            case 2: world.restart()
            case 3: world.input(.reload(options { $0.probeInterval = .seconds(60) }))
            default: world.input(.dispatch(nil, nil))
            }
            world.run(.seconds(10))
            #expect(world.store.queued == 0, "way \(way)")
        }
    }

    @Test(
        "ac14: with probe one batch without retries is tried every 10–20 min, and success closes the breaker")
    func ac14_probe() {
        var world = World(options())
        world.answer = { _, _ in (.milliseconds(10), .retry(.unavailable)) }
        world.accept(500)
        world.run(.seconds(7200))
        #expect(world.isBroken)
        let opened = world.sent.count
        let begin = world.boot
        world.run(.seconds(86_400))
        let probes = world.sent.dropFirst(opened)
        #expect((72...145).contains(probes.count))
        for (left, right) in zip(probes, probes.dropFirst()) {
            #expect((.seconds(600) ... .seconds(1201)).contains(right.at - left.at))
        }
        // Another batch each time.
        for (left, right) in zip(probes, probes.dropFirst()) { #expect(left.batch != right.batch) }
        #expect(world.boot - begin == .seconds(86_400))
        world.answer = { _, _ in (.milliseconds(10), .acknowledged) }
        world.run(.seconds(1210))
        #expect(world.store.queued == 0)
    }

    @Test("ac14: opening cancels the other waits of that destination only")
    func ac14_openingCancelsWaits() {
        var both = options { $0.whenExhausted = .suspend }
        both.destinations.append(DestinationOptions(name: "other"))
        var world = World(both)
        world.answer = { _, sent in
            (.milliseconds(10), sent.destination == "main" ? .retry(.unavailable) : .acknowledged)
        }
        world.accept(150)
        world.accept(50, to: "other")
        world.run(.seconds(86_400))
        #expect(world.shown.waitingForRetry == 0)
        #expect(world.sent.filter { $0.destination == "other" }.count == 1)
        #expect(world.sent.filter { $0.destination == "main" }.count <= 12)
    }

    @Test(
        "ac15: a network change resets retries; it sends nothing twice, and lifts no Retry-After, hold or pause"
    )
    func ac15_networkChange() {
        var world = World(options())
        world.answer = { world, _ in
            (.seconds(3), world.sent.count <= 1 ? .retry(.unavailable) : .acknowledged)
        }
        world.accept(50)
        world.run(.seconds(4))
        world.accept(50)
        world.run(.seconds(1))
        #expect(world.sent.count == 2)
        world.input(.networkChanged)
        world.run(.seconds(1))
        // The waiting one goes at once, the one in flight is left alone.
        #expect(world.sent.count == 3 && world.faults.isEmpty)
        world.runUntilQuiet()
        #expect(world.store.queued == 0)

        for outcome in [Outcome.retryAfter(.seconds(3600), .unavailable), .held(.unauthorised)] {
            var kept = World(options())
            kept.answer = { _, _ in (.milliseconds(1), outcome) }
            kept.accept(50)
            kept.run(.seconds(1))
            kept.input(.networkChanged)
            kept.run(.seconds(1))
            #expect(kept.sent.count == 1)
        }
        var off = World(options(interval: .off))
        off.accept(50)
        off.input(.networkChanged)
        off.run(.seconds(100))
        #expect(off.sent.isEmpty)
    }

    @Test(
        "ac15: a destination without a route is offline: no attempt, no retry spent, no error; later all is sent"
    )
    func ac15_offline() {
        var world = World(options())
        world.input(.routes(["main": false]))
        world.accept(200)
        world.run(.seconds(3600))
        #expect(world.sent.isEmpty)
        #expect(world.machine.snapshot(at: world.now).destinations[0].obstacle == .offline)
        world.input(.routes(["main": true]))
        world.run(.seconds(1))
        #expect(world.store.queued == 0)

        // A sender that finds out by itself: asked again after a while, also without anybody watching the network.
        var found = World(options())
        found.answer = { world, _ in (.zero, world.sent.count <= 3 ? .offline : .acknowledged) }
        found.accept(50)
        found.runUntilQuiet()
        #expect(found.store.queued == 0)
        #expect(found.shown.counters.attempts == 1)
    }

    @Test(
        "ac18: a held destination keeps its data and is probed once in probe_interval; others are unaffected")
    func ac18_hold() {
        var both = options()
        both.destinations.append(DestinationOptions(name: "other"))
        var world = World(both)
        world.answer = { _, sent in
            (.milliseconds(10), sent.destination == "main" ? .held(.unauthorised) : .acknowledged)
        }
        world.accept(1000)
        world.accept(1000, to: "other")
        world.run(.seconds(60))
        #expect(world.store.acknowledged.count == 1000)
        let before = world.sent.count { $0.destination == "main" }
        #expect(before <= 3)
        world.run(.seconds(86_400))
        let probes = world.sent.filter { $0.destination == "main" }.dropFirst(before)
        #expect((72...145).contains(probes.count))
        #expect(world.store.deadLettered.isEmpty)
        #expect(world.alerts == 1)
        world.answer = { _, _ in (.milliseconds(10), .acknowledged) }
        world.run(.seconds(1210))
        #expect(world.store.queued == 0)
    }

    @Test("a failure during a stop is not final")
    func fault09_nothingIsFinalDuringAStop() {
        for outcome in [
            Outcome.rejected(.badRequest), .tooLarge(wireBytes: 10, .tooLarge), .held(.unauthorised),
            .retry(.unavailable),
            .partial(rejected: [RejectedEvent(index: 0, failure: .badRequest)], retry: [1]),
        ] {
            var world = World(options())
            world.accept(50)
            world.run(.seconds(1))
            #expect(world.store.acknowledged.count == 50)
            world.answer = { _, _ in (.seconds(2), outcome) }
            world.accept(60)
            world.run(.seconds(1))
            world.input(.stop(grace: .seconds(10)))
            world.run(.seconds(20))
            #expect(world.isStopped)
            #expect(world.store.deadLettered.isEmpty, "\(outcome)")
            #expect(world.store.queued + world.store.acknowledged.count == 110)
        }
    }

    @Test("new credentials end a hold and close a breaker at once; other destinations are unaffected")
    func newCredentials() {
        for outcome in [Outcome.held(.unauthorised), .retry(.unavailable)] {
            var world = World(options { $0.whenExhausted = .suspend })
            world.answer = { _, _ in (.milliseconds(10), outcome) }
            world.accept(50)
            world.run(.seconds(3600))
            #expect(world.machine.stuck == ["main"], "\(outcome)")
            world.answer = { _, _ in (.milliseconds(10), .acknowledged) }
            world.input(.newCredentials("main"))
            world.input(.newCredentials("nobody"))
            world.run(.seconds(10))
            #expect(world.store.queued == 0 && world.machine.stuck == [], "\(outcome)")
        }
    }

    @Test(
        "batches that failed in an outage are sent once newer events are acknowledged, not 20 minutes later"
    )
    func outageIsOver() {
        for seed in Seeds.list(1...10) {
            var world = World(options(), seed: seed)
            world.answer = { _, _ in (.milliseconds(10), .retry(.unavailable)) }
            world.accept(200)
            world.run(.seconds(400))
            let failures = Dictionary(grouping: world.sent, by: \.batch).mapValues(\.count)
            #expect(
                world.shown.waitingForRetry == 4 && failures.values.allSatisfy { $0 >= 2 },
                "\(Seeds.again(seed)): \(failures)")
            world.answer = { _, _ in (.milliseconds(10), .acknowledged) }
            let before = world.sent.count
            world.accept(50)
            world.run(.seconds(6))
            #expect(world.store.queued == 0, "\(Seeds.again(seed))")
            #expect(world.sent.count == before + 5 && world.faults.isEmpty, "\(Seeds.again(seed))")
        }
    }

    @Test("ac13: a batch that fails while others are acknowledged keeps its own waits")
    func othersAreAcknowledged() {
        var world = World(options())
        world.answer = { _, sent in
            (.milliseconds(10), sent.events.contains(1) ? .retry(.unavailable) : .acknowledged)
        }
        world.accept(50)
        for second in stride(from: 2, to: 1_600, by: 2) {
            world.later(.seconds(second), .accept("main", .normal, 50))
        }
        world.run(.seconds(1_700))
        let mine = world.sent.filter { $0.events.contains(1) }
        let waits = zip(mine, mine.dropFirst()).map { $1.at - $0.at }
        // A place may be taken for a moment.
        #expect((.seconds(5) ... .milliseconds(10_100)).contains(waits[0]))
        #expect((.seconds(150) ... .milliseconds(300_100)).contains(waits[1]))
        #expect((.seconds(600) ... .milliseconds(1_200_100)).contains(waits[2]))
    }

    @Test("logged failures are followed by one line when an attempt succeeds")
    func recoveryIsLogged() {
        var world = World(options())
        var answers = 0
        world.answer = { _, _ in
            answers += 1
            return (.milliseconds(10), answers <= 2 ? .retry(.unavailable) : .acknowledged)
        }
        world.accept(50)
        world.runUntilQuiet()
        world.accept(50)
        world.runUntilQuiet()
        let recoveries = world.notes.filter { if case .recovered = $0 { true } else { false } }
        #expect(recoveries == [.recovered(failures: 2)])
    }

    @Test("the announced next attempt is right: none before it, and one at that moment")
    func nextTryIsTheNextTry() {
        for seed in Seeds.list(1...8) {
            var settings = options()
            settings.startSpread = .seconds(30)
            settings.destinations.append(DestinationOptions(name: "other"))
            var world = World(settings, seed: seed)
            world.answer = { world, _ in
                let outcomes: [Outcome] = [
                    .acknowledged, .retry(.unavailable), .retryAfter(.seconds(40), .unavailable),
                    .held(.unauthorised), .rejected(.badRequest),
                ]
                return (.milliseconds(20), outcomes.randomElement(using: &world.random) ?? .acknowledged)
            }
            for name in ["main", "other"] as [DestinationName] { world.accept(170, to: name) }
            world.run(.seconds(Int.random(in: 1...60, using: &world.random)))
            world.restart()
            for _ in 0..<200 {
                world.run(.milliseconds(700))
                for destination in world.machine.snapshot(at: world.now).destinations {
                    guard destination.attempts == 0, let next = destination.nextAttempt else { continue }
                    var later = world
                    let before = later.sent.count { $0.destination == destination.name }
                    later.run(next - world.wall - .nanoseconds(1))
                    #expect(
                        later.sent.count { $0.destination == destination.name } == before,
                        "\(Seeds.again(seed))")
                    later.run(.milliseconds(50))
                    #expect(
                        later.sent.count { $0.destination == destination.name } > before,
                        "\(Seeds.again(seed))")
                }
            }
        }
    }
}
