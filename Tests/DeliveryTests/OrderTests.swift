@testable import Delivery
import EventLoops
import Model
import TestKit
import Testing

@Suite("Destinations that keep the order")
struct OrderTests {
    /// What a destination acknowledged, in that order.
    private final class Received {
        var events: [Priority: [Int]] = [:]
    }

    private func world(_ order: DestinationOptions.Order, seed: UInt64) -> (World, Received) {
        var world = World(options { $0.order = order }, seed: seed)
        let received = Received()
        world.answered = { _, sent, outcome in
            if outcome == .acknowledged { received.events[sent.priority, default: []] += sent.events }
        }
        return (world, received)
    }

    /// Every second seed has events that are always refused, sixty in a row among them: they end as dead letters, and what comes behind
    /// them keeps its order.
    @Test(
        "order = promised: each lane arrives in order through failures, cuts, refusals and restarts",
        arguments: 1...40)
    func promised(seed: Int) {
        var (world, received) = world(.promised, seed: UInt64(seed))
        let isBad = { (event: Int) in seed.isMultiple(of: 2) && (event % 97 == 0 || 2000..<2060 ~= event) }
        var chance = SplitMix64(seed: UInt64(seed))
        let dead = Failure(kind: .connection, message: "gone")
        world.answer = { world, sent in
            let wait = Duration.milliseconds(Int.random(in: 1...400, using: &chance))
            if sent.events.contains(where: isBad), Int.random(in: 0..<4, using: &chance) > 0 {
                return (wait, .rejected(.badRequest))
            }
            return switch Int.random(in: 0..<12, using: &chance) {
            case 0...1: (wait, .retry(dead))
            case 2: (wait, .retryAfter(.seconds(30), .unavailable))
            case 3: (wait, .held(.unauthorised))
            case 4 where sent.events.count > 1: (wait, .tooLarge(wireBytes: 1_000_000, .tooLarge))
            case 5 where sent.events.count > 1: (wait, .rejected(.badRequest))
            default: (wait, sent.events.contains(where: isBad) ? .rejected(.badRequest) : .acknowledged)
            }
        }
        for round in 0..<200 {
            world.accept(Int.random(in: 1...120, using: &chance), round % 7 == 0 ? .critical : .normal)
            world.run(.seconds(Int.random(in: 1...40, using: &chance)))
            if round % 50 == 49 { world.restart() }
            // Two hours without an answer, several times: the breaker opens and probes go.
            if round % 60 == 30 {
                let usual = world.answer
                world.answer = { _, _ in (.seconds(30), .retry(dead)) }
                world.accept(300)
                world.run(.seconds(7200))
                world.answer = usual
            }
        }
        world.answer = { _, sent in
            (.milliseconds(10), sent.events.contains(where: isBad) ? .rejected(.badRequest) : .acknowledged)
        }
        world.run(.seconds(86_400))
        for (priority, events) in received.events {
            #expect(zip(events, events.dropFirst()).allSatisfy { $0 < $1 }, "\(priority) lost its order")
        }
        let bad = (1...world.store.accepted).count { isBad($0) }
        #expect(received.events.values.reduce(0) { $0 + $1.count } == world.store.accepted - bad)
        #expect(world.store.deadLettered.count == bad && world.store.deadLettered.keys.allSatisfy(isBad))
        #expect(world.faults.isEmpty)
    }

    /// Loki's rules: an entry more than an hour behind its stream's newest is refused, the others of the push are kept.
    ///
    /// Source: Loki's `pkg/ingester/stream.go` and `chunkenc.ErrTooFarBehind`; `max_chunk_age` is two hours by default.
    private struct LokiModel {
        var newest: [Priority: Timestamp] = [:]
        var refused: [Int] = []

        mutating func push(_ events: [Int], _ stream: Priority, time: (Int) -> Timestamp) -> Outcome {
            var isRefused = false
            for event in events {
                let newest = newest[stream] ?? time(event)
                if time(event) < newest + .seconds(-3600) {
                    refused.append(event)
                    isRefused = true
                }
                self.newest[stream] = max(newest, time(event))
            }
            return isRefused ? .rejected(.badRequest) : .acknowledged
        }
    }

    @Test(
        "order = kept: after three hours without Loki all arrives, and live events within ten seconds",
        arguments: [false, true])
    func lokiAfterAnOutage(isFlaky: Bool) throws {
        var (world, received) = world(.kept, seed: 3)
        let start = world.wall
        let time = { (event: Int) in start + .seconds(10 * (event - 1)) }
        var loki = LokiModel()
        var isDown = false
        var backAt: Timestamp?
        var latest = Duration.zero
        var chance = SplitMix64(seed: 3)
        world.answer = { world, sent in
            let failed = (Duration.milliseconds(10), Outcome.retry(.unavailable))
            if isDown { return failed }
            // Later batches must not pass the retry of an answer that fails after the return.
            if isFlaky, Int.random(in: 0..<10, using: &chance) == 0 { return failed }
            let outcome = loki.push(sent.events, sent.priority, time: time)
            if let back = backAt {
                for event in sent.events where time(event) >= back {
                    latest = max(latest, world.wall - time(event))
                }
            } else {
                backAt = world.wall
            }
            return (.milliseconds(10), outcome)
        }
        func live(_ hours: Int) {
            for _ in 0..<(360 * hours) {
                world.accept(1, world.store.accepted % 9 == 0 ? .critical : .normal)
                world.run(.seconds(10))
            }
        }
        live(1)
        isDown = true
        live(3)
        isDown = false
        backAt = nil
        live(2)
        world.run(.seconds(86_400))
        #expect(backAt != nil && loki.refused.isEmpty)
        #expect(Set(received.events.values.joined()).count == world.store.accepted)
        #expect(world.store.deadLettered.isEmpty && !world.isHeld)
        if !isFlaky { #expect(latest <= .seconds(10)) }
    }
}
