@testable import Delivery
import EventLoops
import Model
import TestKit
import Testing

@Suite("Settings of a destination")
struct OwnSettingsTests {
    private func world(
        _ own: [(DestinationName, (inout DestinationOptions) -> Void)],
        all: DispatchInterval = .every(.seconds(6))
    ) -> World {
        let destinations = own.map { name, change in
            var destination = DestinationOptions(name: name)
            change(&destination)
            return destination
        }
        return World(DeliveryOptions(interval: all, startSpread: .zero, destinations: destinations))
    }

    private func waits(_ world: World, _ name: DestinationName, since start: BootInstant) -> [Duration] {
        world.sent.filter { $0.destination == name }.map { $0.at - start }
    }

    /// Whether it went when it should: a lease takes the queue a millisecond, of several in turn.
    private func isAt(_ wait: Duration?, _ expected: Duration) -> Bool {
        wait.map { $0 >= expected && $0 < expected + .milliseconds(10) } ?? false
    }

    @Test("ac01, ac03: each destination waits for its own interval and critical delay, or the general ones")
    func ac01_eachItsOwn() {
        var world = world([
            ("main", { _ in }), ("archive", { $0.interval = .every(.seconds(60)) }),
            ("pager", { $0.interval = .every(.seconds(1)) }),
            ("alarm", { $0.criticalDelay = .milliseconds(500) }),
        ])
        let names = world.names
        let start = world.boot
        for name in names { world.accept(3, to: name) }
        world.run(.seconds(100))
        #expect(isAt(waits(world, "main", since: start).first, .seconds(6)))
        #expect(isAt(waits(world, "archive", since: start).first, .seconds(60)))
        #expect(isAt(waits(world, "pager", since: start).first, .seconds(1)))
        #expect(isAt(waits(world, "alarm", since: start).first, .seconds(6)))
        #expect(world.sent.count == 4)

        let second = world.boot
        world.sent = []
        for name in names { world.accept(3, .critical, to: name) }
        world.run(.seconds(100))
        #expect(isAt(waits(world, "main", since: second).first, .seconds(3)))
        #expect(isAt(waits(world, "archive", since: second).first, .seconds(3)))
        #expect(isAt(waits(world, "pager", since: second).first, .seconds(1)))
        #expect(isAt(waits(world, "alarm", since: second).first, .milliseconds(500)))
        #expect(world.machine.wakeAt(world.now) == nil, "it wakes without a cause")
    }

    @Test("ac01, ac04: batches and slots are counted for each destination")
    func ac01_batchesOfTheirOwn() {
        var world = world([
            ("main", { _ in }), ("archive", { $0.batchEvents = 1_000 }), ("pager", { $0.batchEvents = 1 }),
            ("weak", { $0.parallelBatches = 1 }),
        ])
        world.answer = { _, _ in (.seconds(1), .acknowledged) }
        for name in world.names { world.accept(150, to: name) }
        world.run(.seconds(300))
        func sizes(_ name: DestinationName) -> [Int] {
            world.sent.filter { $0.destination == name }.map(\.events.count)
        }
        #expect(sizes("main") == [50, 50, 50])
        #expect(sizes("archive") == [150])
        #expect(sizes("pager") == Array(repeating: 1, count: 150))
        #expect(sizes("weak") == [50, 50, 50])
        #expect(world.mostInFlight == ["main": 3, "archive": 1, "pager": 3, "weak": 1])
        #expect(world.faults.isEmpty && world.store.queued == 0)
    }

    @Test(
        "ga02, ga07: one destination may be off while others are not, and the reverse, also when the agent stops"
    )
    func ga02_offForOne() {
        for isOffForAll in [true, false] {
            let own: DispatchInterval = isOffForAll ? .every(.seconds(2)) : .off
            var world = world(
                [("main", { _ in }), ("own", { $0.interval = own })],
                all: isOffForAll ? .off : .every(.seconds(6)))
            let off: DestinationName = isOffForAll ? "main" : "own"
            for name in world.names { world.accept(60, to: name) }
            world.run(.seconds(1_000))
            #expect(world.sent.allSatisfy { $0.destination != off })
            #expect(world.sent.reduce(0) { $0 + $1.events.count } == 60)
            // A command sends there all the same.
            world.input(.dispatch(CommandID(number: 1), off))
            world.run(.seconds(10))
            #expect(world.store.queued == 0 && world.results[CommandID(number: 1)] == .done)
            // The stop drains the one that sends by itself only.
            world.sent = []
            for name in world.names { world.accept(3, to: name) }
            world.input(.stop(grace: .seconds(10)))
            world.run(.seconds(20))
            #expect(world.isStopped && world.sent.map(\.destination) == [isOffForAll ? "own" : "main"])
        }
    }

    @Test(
        "ga10: a command's interval overrides all, also a destination's own, until `default`, also after a restart"
    )
    func ga10_commandStandsAboveAll() {
        var world = world([("main", { _ in }), ("own", { $0.interval = .every(.seconds(1)) })])
        func waitsOfAll() -> [DestinationName: Duration] {
            world.sent = []
            let start = world.boot
            world.accept(1, to: "main")
            world.accept(1, to: "own")
            world.run(.seconds(100))
            return Dictionary(uniqueKeysWithValues: world.sent.map { ($0.destination, $0.at - start) })
        }
        func intervals() -> [DispatchInterval] {
            world.machine.snapshot(at: world.now).destinations.map(\.interval)
        }
        world.input(.interval(.every(.seconds(20)), isDurable: true))
        #expect(intervals() == [.every(.seconds(20)), .every(.seconds(20))])
        var found = waitsOfAll()
        #expect(isAt(found["main"], .seconds(20)) && isAt(found["own"], .seconds(20)))
        world.restart()
        found = waitsOfAll()
        #expect(isAt(found["main"], .seconds(20)) && isAt(found["own"], .seconds(20)))
        world.input(.interval(.off, isDurable: false))
        #expect(waitsOfAll().isEmpty)
        world.input(.interval(nil, isDurable: true))
        world.run(.seconds(100))
        #expect(intervals() == [.every(.seconds(6)), .every(.seconds(1))])
        found = waitsOfAll()
        #expect(isAt(found["main"], .seconds(6)) && isAt(found["own"], .seconds(1)))
    }

    @Test("a reload changes a destination's own settings at once, and no others")
    func reload() {
        var world = world([("main", { _ in }), ("own", { $0.interval = .every(.seconds(600)) })])
        let start = world.boot
        world.accept(1, to: "main")
        world.accept(1, to: "own")
        world.run(.seconds(3))
        var options = world.machine.options
        options.destinations[1].interval = .every(.seconds(4))
        world.input(.reload(options))
        world.run(.seconds(10))
        #expect(isAt(waits(world, "own", since: start).first, .seconds(4)))
        #expect(isAt(waits(world, "main", since: start).first, .seconds(6)))
        options.destinations[1].interval = nil
        world.input(.reload(options))
        #expect(
            world.machine.snapshot(at: world.now).destinations.map(\.interval)
                == Array(repeating: .standard, count: 2))
    }

    @Test("a drip is sent in small batches at once, a backlog in large ones, within the limits")
    func batchesGrow() {
        var world = world([
            (
                "main",
                {
                    $0.batchMostEvents = 5_000
                    $0.batchBytes = 4 << 20
                }
            )
        ])
        world.answer = { _, _ in (.milliseconds(20), .acknowledged) }
        for _ in 0..<10 {
            world.accept(60, to: "main")
            world.run(.milliseconds(200))
        }
        #expect(world.sent.suffix(9).allSatisfy { $0.events.count == 60 })
        let before = world.sent.count
        world.input(.pause(token: "t", nil, ttl: nil, untilRestart: false))
        world.accept(12_000, to: "main")
        world.input(.resume(token: "t", nil))
        world.run(.seconds(10))
        #expect(world.sent.dropFirst(before).map(\.events.count) == [5_000, 5_000, 2_000])
        world.accept(49, to: "main")
        world.run(.seconds(5))
        #expect(world.sent.count == before + 3)
        world.run(.seconds(2))
        #expect(world.sent.last?.events.count == 49)
    }

    @Test(
        "with any own settings no event is sent too early or too late, and no limit is exceeded",
        arguments: Seeds.list(0..<12))
    func boundsHold(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let all = DispatchInterval.every(.seconds([2, 6, 30].randomElement(using: &random) ?? 6))
        let names: [DestinationName] = ["a", "b", "c"]
        var world = world(
            names.map { name in
                let interval = [nil, 1, 5, 60].randomElement(using: &random) ?? nil
                let delay = [nil, 0, 2, 90].randomElement(using: &random) ?? nil
                let events = [1, 10, 50, 400].randomElement(using: &random) ?? 50
                let most = [nil, 1, 60, 3_000].randomElement(using: &random) ?? nil
                let places = Int.random(in: 1...4, using: &random)
                return (
                    name,
                    {
                        $0.interval = interval.map { .every(.seconds($0)) }
                        $0.criticalDelay = delay.map { .seconds($0) }
                        $0.batchEvents = events
                        $0.batchMostEvents = most
                        $0.parallelBatches = places
                    }
                )
            }, all: all)
        world.answer = { _, _ in (.milliseconds(1), .acknowledged) }
        let start = (boot: world.boot, wall: world.wall)
        world.check = { world, sent in
            guard let options = world.options(of: sent.destination),
                case .every(let interval) = options.interval ?? all,
                let stored = world.store.batches[sent.batch]
            else { return world.faults.append("\(sent.batch) is nobody's") }
            let wait =
                sent.priority == .critical ? min(options.criticalDelay ?? .seconds(3), interval) : interval
            let oldest = stored.events.map { start.boot + ($0.acceptedAt - start.wall) }.min() ?? world.boot
            let age = world.boot - oldest
            // Places may be short for a moment: many small batches go one after the other, 2 ms each.
            if age > wait + .seconds(5) {
                world.faults.append("seed \(seed): waited \(age) instead of \(wait)")
            }
            if sent.events.count > options.mostEvents {
                world.faults.append("seed \(seed): \(sent.events.count) events")
            }
        }
        for _ in 0..<150 {
            let name = names.randomElement(using: &random) ?? "a"
            let priority: Priority = Int.random(in: 0..<4, using: &random) == 0 ? .critical : .normal
            world.accept(Int.random(in: 1...60, using: &random), priority, to: name)
            world.run(.milliseconds(Int.random(in: 0...4_000, using: &random)))
        }
        world.run(.seconds(100))
        let again = Seeds.again(seed)
        #expect(world.faults.isEmpty, "\(again): \(world.faults.prefix(3))")
        #expect(world.store.queued == 0 && world.machine.wakeAt(world.now) == nil, "\(again)")
        for (name, most) in world.mostInFlight {
            #expect(most <= (world.options(of: name)?.parallelBatches ?? 0) + 1, "\(again)")
        }
    }
}
