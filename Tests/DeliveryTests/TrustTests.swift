@testable import Delivery
import EventLoops
import Model
import TestKit
import Testing

/// A destination that takes what a script lets it, in one of the ways in which destinations say no.
struct ScriptedReceiver {
    enum Manner: CaseIterable {
        /// 400 to the whole batch.
        case wholly
        /// An answer event by event.
        case byEvent
        /// 413 to the whole batch.
        case tooLarge
    }

    let manner: Manner
    var bad: Set<Int> = []
    var refusesAll = false

    func answer(_ sent: World.Sent) -> Outcome {
        let rejected = sent.events.indices.filter { refusesAll || bad.contains(sent.events[$0]) }
        guard !rejected.isEmpty else { return .acknowledged }
        switch manner {
        case .wholly: return .rejected(.badRequest)
        case .tooLarge: return .tooLarge(wireBytes: sent.events.count * ModelStore.bytesPerEvent, .tooLarge)
        case .byEvent:
            return .partial(
                rejected: rejected.map { RejectedEvent(index: $0, failure: .badRequest) }, retry: [])
        }
    }
}

@Suite("Poisonous events before trust")
struct TrustTests {
    @Test(
        "a destination that refuses everything after one acknowledgement is held, and few events become dead letters"
    )
    func fault11_oneAcknowledgementIsNotTrust() {
        for manner in ScriptedReceiver.Manner.allCases {
            for first in [1, 50] {
                var world = World(options())
                world.accept(first)
                world.run(.seconds(10))
                #expect(world.store.acknowledged.count == first)
                let receiver = ScriptedReceiver(manner: manner, refusesAll: true)
                world.answer = { _, sent in (.milliseconds(50), receiver.answer(sent)) }
                world.accept(300)
                world.run(.seconds(3600))
                #expect(world.store.deadLettered.count <= 10, "\(manner) after \(first)")
                #expect(world.isHeld, "\(manner) after \(first)")
            }
        }
    }

    @Test("a new destination that finds everything too large is held, and gets no dead letters")
    func fault12_newDestination() {
        var world = World(options())
        world.answer = { _, sent in (.milliseconds(5), .tooLarge(wireBytes: 1000, .tooLarge)) }
        world.accept(300)
        world.run(.seconds(86_400))
        #expect(world.store.deadLettered.isEmpty)
        #expect(world.isHeld)
        // It is well again: all of it arrives.
        world.answer = { _, _ in (.milliseconds(5), .acknowledged) }
        world.run(.seconds(86_400))
        #expect(world.store.acknowledged.count == 300)
    }

    @Test("events rejected before they are sent are dead letters, whatever is known of the destination")
    func rejectedHere() {
        var world = World(options())
        let old = Failure(kind: .local, message: "too old")
        world.answer = { _, sent in
            let rejected = sent.events.indices.map { RejectedEvent(index: $0, failure: old, isFinal: true) }
            return (.milliseconds(1), .partial(rejected: rejected, retry: []))
        }
        world.accept(120)
        world.run(.seconds(60))
        #expect(world.store.deadLettered.count == 120 && !world.isHeld)
        #expect(world.switches[SwitchName.acknowledged("main")] == nil)
    }

    @Test("events rejected before they are sent say nothing about a destination that is down")
    func rejectedHereWhileDown() {
        var world = World(options { $0.retry = RetrySchedule(intervals: []) })
        world.answer = { _, _ in (.milliseconds(1), .retry(.unavailable)) }
        world.accept(50)
        world.run(.seconds(10))
        #expect(world.isBroken)
        let old = Failure(kind: .local, message: "too old")
        world.answer = { _, sent in
            let rejected = sent.events.indices.map { RejectedEvent(index: $0, failure: old, isFinal: true) }
            return (.milliseconds(1), .partial(rejected: rejected, retry: []))
        }
        world.run(.seconds(3600))
        #expect(world.store.deadLettered.count == 50 && world.isBroken)
    }

    @Test("events that a protocol forbids to repeat are dead letters at once, with the reason")
    func rejectedForGood() {
        var world = World(options())
        let refused = Failure(
            kind: .status, status: 200, message: "50 of 50 events were rejected", excerpt: "too old")
        world.answer = { _, sent in
            let rejected = sent.events.indices.map {
                RejectedEvent(index: $0, failure: refused, isFinal: true)
            }
            return (.milliseconds(1), .partial(rejected: rejected, retry: []))
        }
        world.accept(100)
        world.run(.seconds(86_400))
        #expect(world.sent.count == 2 && world.store.deadLettered.count == 100 && !world.isHeld)
        #expect(world.shown.lastFailure?.failure == refused)
    }

    @Test("a destination that is held because it rejects every event says why")
    func reasonOfRejectedEvents() {
        var world = World(options())
        let words = Failure(kind: .status, status: 400, message: "an event got 400", excerpt: "no such field")
        world.answer = { _, sent in
            let rejected = sent.events.indices.map { RejectedEvent(index: $0, failure: words) }
            return (.milliseconds(1), .partial(rejected: rejected, retry: []))
        }
        world.accept(100)
        world.run(.seconds(600))
        #expect(world.isHeld && world.shown.lastFailure?.failure == words)
    }

    @Test("a hold keeps its own reason while requests that were in flight when it began fail otherwise")
    func reasonOfHoldStays() {
        var world = World(options())
        world.accept(150)
        world.answer = { world, _ in
            world.sent.count == 1
                ? (.milliseconds(100), .held(.unauthorised)) : (.seconds(20), .retry(.unavailable))
        }
        world.run(.seconds(60))
        #expect(world.sent.count > 1, "others were in flight")
        #expect(world.isHeld && world.shown.lastFailure?.failure == .unauthorised)
        let held = world.shown.lastFailure?.at
        // The next probe is refused too: its time is that of the last refusal.
        world.answer = { _, _ in (.milliseconds(1), .held(.unauthorised)) }
        world.run(.seconds(7200))
        let heldAgain = world.shown.lastFailure?.at
        #expect(world.isHeld && (heldAgain?.nanoseconds ?? 0) > (held?.nanoseconds ?? 0))
    }

    @Test("a wait that the destination asked for keeps its own reason while other requests fail")
    func reasonOfWaitStays() {
        var world = World(options())
        world.accept(150)
        world.answer = { world, _ in
            world.sent.count == 1
                ? (.milliseconds(100), .retryAfter(.seconds(3600), .badRequest))
                : (.seconds(20), .retry(.unavailable))
        }
        world.run(.seconds(60))
        #expect(world.sent.count > 1, "others were in flight")
        #expect(world.shown.obstacle == .retryAfter && world.shown.lastFailure?.failure == .badRequest)
    }

    @Test("unnamed rejections in an accepted batch are counted and reported, and the batch is not repeated")
    func unnamedRejections() {
        var world = World(options())
        world.answer = { _, _ in (.milliseconds(1), .acknowledgedWithLoss(rejected: 5, .badRequest)) }
        world.accept(100)
        world.run(.seconds(3600))
        #expect(world.sent.count == 2 && world.store.acknowledged.count == 100)
        #expect(world.shown.counters.unnamedRejections == 10)
        #expect(world.shown.counters.lastUnnamedRejection == .badRequest)
        #expect(world.shown.lastFailure?.failure == .badRequest)
        #expect(world.notes.count { if case .rejectedUnnamed = $0 { true } else { false } } == 2)
    }

    @Test(
        "a single poisonous event among good ones is found without a hold, at any rate",
        arguments: [1, 2, 7, 50])
    func fault11_lonePoison(batch: Int) {
        for manner in ScriptedReceiver.Manner.allCases {
            for latency in [1, 20, 300] {
                var world = World(options())
                world.accept(50)
                world.run(.seconds(10))
                let bad = 50 + (batch + 1) / 2
                let receiver = ScriptedReceiver(manner: manner, bad: [bad])
                world.answer = { [latency] world, sent in
                    // Good pieces are slower than the bad one.
                    let outcome = receiver.answer(sent)
                    return (.milliseconds(outcome == .acknowledged ? latency : 1), outcome)
                }
                for round in 0..<20 { world.later(.seconds(7 * round), .accept("main", .normal, batch)) }
                world.run(.seconds(600))
                let place = "\(manner), \(batch) a batch, \(latency) ms"
                #expect(world.store.deadLettered.keys.sorted() == [bad], "\(place)")
                #expect(world.store.acknowledged.count == 50 + 20 * batch - 1, "\(place)")
                #expect(world.alerts == 0, "\(place)")
            }
        }
    }

    @Test("poison is found and good events arrive; once everything is refused, good events are kept")
    func fault11_scriptedReceiver() {
        for seed in UInt64(1)...40 {
            var random = SplitMix64(seed: seed)
            let manner = ScriptedReceiver.Manner.allCases.randomElement(using: &random) ?? .wholly
            let parallel = Int.random(in: 1...4, using: &random)
            var world = World(options { $0.parallelBatches = parallel }, seed: seed)
            let total = 50 * Int.random(in: 10...30, using: &random)
            var receiver = ScriptedReceiver(manner: manner)
            for event in 51...total where Int.random(in: 0..<50, using: &random) == 0 {
                receiver.bad.insert(event)
            }
            world.accept(50)
            world.run(.seconds(10))
            world.answer = { [receiver] world, sent in
                (.milliseconds(Int.random(in: 1...40, using: &world.random)), receiver.answer(sent))
            }
            world.accept(total - 50)
            world.run(.seconds(3 * 3600))
            #expect(Set(world.store.deadLettered.keys) == receiver.bad, "seed \(seed), \(manner)")
            #expect(world.store.acknowledged.count == total - receiver.bad.count, "seed \(seed), \(manner)")
            receiver.refusesAll = true
            world.answer = { [receiver] world, sent in
                (.milliseconds(Int.random(in: 1...40, using: &world.random)), receiver.answer(sent))
            }
            world.accept(500)
            world.run(.seconds(3600))
            #expect(world.store.deadLettered.count - receiver.bad.count <= 10, "seed \(seed), \(manner)")
            #expect(world.isHeld, "seed \(seed), \(manner)")
        }
    }
}
