import EventLoops
import Model
import TestKit
import Testing

@testable import Delivery

/// While any event would be acknowledged, events that would pass within 30 s do; while none is, all are kept.
@Suite("Good events beside rejected ones")
struct DoubtTests {
    private typealias Manner = ScriptedReceiver.Manner

    private func world(_ manner: ScriptedReceiver.Manner, bad: Set<Int>, most: Int = 50) -> World {
        var world = World(
            options {
                $0.batchMostEvents = most
                $0.batchBytes = 4 << 20
            })
        let receiver = ScriptedReceiver(manner: manner, bad: bad)
        world.answer = { _, sent in (.milliseconds(20), receiver.answer(sent)) }
        return world
    }

    @Test(
        "two and more refused events as a batch of their own, behind good ones",
        arguments: ScriptedReceiver.Manner.allCases,
        [Priority.normal, .critical])
    func batchOfItsOwn(manner: ScriptedReceiver.Manner, priority: Priority) {
        for (before, refused, most) in [
            (50, 2, 50), (500, 2, 50), (5000, 3, 50), (5000, 3, 5000), (50, 9, 50), (50, 9, 5000), (1, 2, 50),
            (0, 2, 5000),
        ] {
            var world = world(manner, bad: Set(before + 1...before + refused), most: most)
            if before > 0 { world.accept(before) }
            world.run(.seconds(60))
            world.accept(refused, priority)
            world.run(.seconds(16))
            world.accept(80)
            world.run(.seconds(30))
            #expect(world.store.acknowledged.count == before + 80, "\(before) good, then \(refused) bad")
            #expect(world.store.deadLettered.count == refused && !world.isHeld)
            #expect(
                world.notes.allSatisfy { if case .held = $0 { false } else { true } },
                "nobody is told of a hold that is none")
        }
    }

    @Test(
        "300 rejected events of one writer: the others arrive, and the rest is set aside",
        arguments: ScriptedReceiver.Manner.allCases)
    func manyOfOneWriter(manner: ScriptedReceiver.Manner) {
        var world = world(manner, bad: Set(101...400))
        world.accept(100)
        world.run(.seconds(10))
        world.accept(300)
        for _ in 0..<60 {
            world.accept(10)
            world.run(.seconds(1))
        }
        world.run(.seconds(30))
        #expect(world.store.acknowledged.count == 700)
        #expect(
            !world.isHeld && world.store.deadLettered.keys.allSatisfy { (101...400).contains($0) })
        let aside = world.shown.setAside.values.reduce(0, +)
        #expect(aside + world.store.deadLettered.count == 300)
    }

    @Test(
        "a thousand single events that are too large teach no size limit for the good ones behind them",
        arguments: [Priority.normal, .critical])
    func manyTooLarge(priority: Priority) {
        var world = world(.tooLarge, bad: Set(1101...2100))
        world.accept(1100)
        world.run(.seconds(60))
        world.accept(1000, priority)
        world.accept(200)
        world.run(.seconds(40))
        #expect(world.store.acknowledged.count == 1300)
    }

    @Test(
        "pieces of rejected batches at a slow destination alternate with other batches",
        arguments: ScriptedReceiver.Manner.allCases, [Priority.normal, .critical])
    func morePiecesThanTime(manner: ScriptedReceiver.Manner, priority: Priority) {
        var world = World(options())
        let receiver = ScriptedReceiver(manner: manner, bad: Set(101...500))
        world.answer = { _, sent in (.milliseconds(200), receiver.answer(sent)) }
        world.accept(100)
        world.run(.seconds(10))
        world.accept(400, priority)
        world.accept(500)
        world.run(.seconds(36))
        #expect(world.store.acknowledged.count == 600 && !world.saysHeld)
    }

    @Test("rejected events beyond the limit for setting aside become dead letters, and delay nothing")
    func moreThanSetAside() {
        var world = world(.wholly, bad: Set(101...1400))
        world.accept(100)
        world.run(.seconds(10))
        world.accept(1300)
        for _ in 0..<12 {
            world.accept(1)
            world.run(.seconds(5))
        }
        // The last one's time.
        world.run(.seconds(6))
        let aside = world.shown.setAside.values.reduce(0, +)
        // Some may be on their way to be tried again.
        #expect((900...1003).contains(aside) && world.store.deadLettered.count >= 200)
        #expect(!world.isHeld && world.store.acknowledged.count == 112)
    }

    @Test(
        "a temporary failure during a doubt delays nothing for long",
        arguments: ScriptedReceiver.Manner.allCases)
    func failureInDoubt(manner: ScriptedReceiver.Manner) {
        for failure in [Outcome.retry(.unavailable), .offline] {
            var world = world(manner, bad: Set(51...52))
            let receiver = ScriptedReceiver(manner: manner, bad: Set(51...52))
            world.accept(50)
            world.run(.seconds(10))
            var blips = 1
            world.answer = { world, sent in
                guard blips > 0, world.isHeld else {
                    return (.milliseconds(20), receiver.answer(sent))
                }
                blips -= 1
                return (.milliseconds(20), failure)
            }
            world.accept(2)
            world.run(.seconds(16))
            world.accept(80)
            world.run(.seconds(36))
            #expect(blips == 0 && world.store.acknowledged.count == 130, "\(manner), \(failure)")
        }
    }

    @Test(
        "if one app's events are all bad, others' events show that the destination accepts again",
        arguments: ScriptedReceiver.Manner.allCases)
    func oneBadApp(manner: ScriptedReceiver.Manner) {
        var world = world(manner, bad: [])
        world.store.apps = 5
        func receiver(refusesAll: Bool) {
            world.answer = { _, sent in
                let receiver = ScriptedReceiver(
                    manner: manner, bad: Set(sent.events.filter { $0 % 5 == 0 }), refusesAll: refusesAll)
                return (.milliseconds(150), receiver.answer(sent))
            }
        }
        receiver(refusesAll: false)
        world.accept(100)
        world.run(.seconds(60))
        receiver(refusesAll: true)
        world.accept(1_000)
        world.run(.seconds(60))
        receiver(refusesAll: false)
        world.run(.seconds(31))
        #expect(!world.isHeld)
        world.run(.seconds(60))
        #expect((1...1_100).allSatisfy { $0 % 5 == 0 || world.store.acknowledged[$0] == 1 })
    }

    @Test(
        "events that were set aside are sent once the destination accepts one of them",
        arguments: ScriptedReceiver.Manner.allCases)
    func mindChanged(manner: ScriptedReceiver.Manner) {
        var world = world(manner, bad: Set(101...400))
        world.accept(100)
        world.run(.seconds(10))
        world.accept(300)
        for _ in 0..<120 {
            world.accept(1)
            world.run(.seconds(10))
        }
        #expect(!world.shown.setAside.isEmpty)
        world.answer = { _, _ in (.milliseconds(20), .acknowledged) }
        // Until one of them is due.
        world.run((world.nextIn ?? .zero) + .seconds(30))
        #expect(
            world.keepsNothing && world.store.acknowledged.count + world.store.deadLettered.count == 520)
    }

    @Test(
        "one rejected event among 5,000 in a batch is found in 25 more requests, and the others arrive",
        arguments: ScriptedReceiver.Manner.allCases)
    func oneInALargeBatch(manner: ScriptedReceiver.Manner) {
        var world = world(manner, bad: [4_321], most: 5_000)
        world.accept(1_000)
        world.run(.seconds(10))
        let before = world.sent.count
        world.accept(5_000)
        world.run(.seconds(30))
        #expect(world.store.acknowledged.count == 5_999 && Array(world.store.deadLettered.keys) == [4_321])
        #expect(world.sent.count <= before + 26 && !world.isHeld)
    }

    @Test("19 rejected of 1,120 events cause no hold", arguments: ScriptedReceiver.Manner.allCases)
    func few(manner: ScriptedReceiver.Manner) {
        var world = world(manner, bad: Set(501...519))
        world.accept(1120)
        world.run(.seconds(60))
        #expect(
            world.store.acknowledged.count == 1101 && world.store.deadLettered.count == 19
                && !world.isHeld)
    }

    @Test("a destination that refuses everything is held and probed; good events are kept and sent later")
    func wholeOutage() {
        for manner in ScriptedReceiver.Manner.allCases {
            var world = world(manner, bad: [])
            world.accept(500)
            world.run(.seconds(30))
            let refusing = ScriptedReceiver(manner: manner, refusesAll: true)
            let before = world.answer
            world.answer = { _, sent in (.milliseconds(20), refusing.answer(sent)) }
            world.accept(400)
            world.run(.seconds(3600))
            #expect(
                world.saysHeld && world.store.deadLettered.isEmpty, "\(manner)")
            #expect(world.sent.count < 3000, "\(world.sent.count) requests in an hour")
            #expect(world.alerts == 1, "\(manner): told once")
            world.answer = before
            world.run(.seconds(30))
            #expect(world.store.acknowledged.count == 900 && !world.isHeld, "\(manner)")
        }
    }

    /// Events good or bad by their number, bursts, a schema change in the middle, whole outages: by seed.
    @Test("by a model of receivers: events that would be accepted within 30 s are", arguments: 0..<24)
    func model(seed: Int) {
        var random = SplitMix64(seed: Seeds.one(UInt64(28_000 + seed)))
        var world = World(options(), seed: UInt64(seed))
        let manner = ScriptedReceiver.Manner.allCases.randomElement(using: &random) ?? .wholly
        let rate = [0, 1, 3, 10].randomElement(using: &random) ?? 0
        var accepted = 0
        var outages = 0
        var refusesSince: BootInstant?
        var refusesAll = false
        // When each good event was accepted, and from when on it could pass.
        var waiting: [Int: BootInstant] = [:]
        var bad: Set<Int> = []
        var changed: Set<Int> = []
        for step in 0..<120 {
            if Int.random(in: 0..<20, using: &random) == 0 {
                refusesAll.toggle()
                if refusesAll {
                    outages += 1
                    refusesSince = world.boot
                } else if let since = refusesSince {
                    // What waits could not pass before now.
                    for (event, at) in waiting where at > since || world.store.acknowledged[event] == nil {
                        waiting[event] = world.boot
                    }
                }
            }
            let count = Int.random(in: 1...40, using: &random)
            let isBurstOfBad = bad.count < 250 && Int.random(in: 0..<30, using: &random) == 0
            let lane: Priority = Int.random(in: 0..<6, using: &random) == 0 ? .critical : .normal
            for number in accepted + 1...accepted + count {
                if isBurstOfBad || Int.random(in: 0..<100, using: &random) < rate {
                    bad.insert(number)
                } else {
                    waiting[number] = world.boot
                }
            }
            accepted += count
            let receiver = ScriptedReceiver(manner: manner, bad: bad.union(changed), refusesAll: refusesAll)
            let latency = Duration.milliseconds(Int.random(in: 1...60, using: &random))
            // Now and then a failure that passes, in the middle of a doubt.
            var blips = Int.random(in: 0..<10, using: &random) == 0 ? 1 : 0
            world.answer = { world, sent in
                guard blips > 0, world.isHeld else {
                    return (latency, receiver.answer(sent))
                }
                blips -= 1
                return (latency, .retry(.unavailable))
            }
            world.accept(count, lane)
            world.run(.milliseconds(Int.random(in: 10...5000, using: &random)))
            waiting = waiting.filter {
                world.store.acknowledged[$0.key] == nil && world.store.deadLettered[$0.key] == nil
            }
            guard !refusesAll else { continue }
            // Six seconds until the lane's time is up, thirty for the way.
            let late = waiting.filter { world.boot - $0.value > .seconds(36) }
            guard late.isEmpty else {
                Issue.record(
                    "seed \(seed), step \(step), \(manner): \(late.count) good events wait, state \(String(describing: world.shown.obstacle))"
                )
                return
            }
            if step == 60 { changed = [accepted + 5, accepted + 6] }
            for number in changed { waiting[number] = nil }
        }
        #expect(world.faults.isEmpty)
        // Alone and before proof ten in a row may be given up, and an answer that was on its way begins another row.
        let wrong = world.store.deadLettered.keys.filter { !bad.contains($0) && !changed.contains($0) }
        #expect(
            wrong.count <= 20 * outages,
            "\(manner), \(outages) outages: \(wrong.count) good events became dead letters"
        )
        #expect(world.store.acknowledged.values.allSatisfy { $0 == 1 })
    }
}
