@testable import Delivery
import EventLoops
import Model
import TestKit

/// What destinations do to us, and people, and the network, drawn from a seed; with the truth kept beside it.
struct Chaos {
    /// How a destination behaves for a while.
    enum Mood: CaseIterable {
        case well, down, hanging, busy, locked, picky, small, partial, again, routeless
    }

    var moods: [DestinationName: Mood] = [:]
    /// Until when a destination has asked to be left alone.
    var leaveAloneUntil: [DestinationName: BootInstant] = [:]
    var isNetworkOn = true
    var isEnabled = true
    /// Tokens that are held, by destination; nil for all.
    var pauses: Set<PauseTokens.Key> = []
    var routes: [DestinationName: Bool] = [:]
    var restarts = 0
    /// Whether the time of day was set since the last start.
    var isClockSet = false
    /// Events that a picky destination rejects.
    let isBad: @Sendable (Int) -> Bool = { $0 % 997 == 0 }

    mutating func answer(_ sent: World.Sent, at now: BootInstant, using random: inout SplitMix64) -> (
        Duration, Outcome
    ) {
        let wait = Duration.milliseconds(Int.random(in: 1...400, using: &random))
        switch moods[sent.destination] ?? .well {
        case .well: return (wait, .acknowledged)
        case .down: return (wait, .retry(.unavailable))
        case .hanging:
            let failure = Failure(kind: .timeout, message: "no answer within 30 s")
            return Bool.random(using: &random) ? (wait, .acknowledged) : (.seconds(30), .retry(failure))
        case .busy:
            let asked = Duration.seconds(Int.random(in: 0...900, using: &random))
            return (wait, .retryAfter(asked, .unavailable))
        case .locked: return (wait, .held(.unauthorised))
        case .picky:
            return (wait, sent.events.contains(where: isBad) ? .rejected(.badRequest) : .acknowledged)
        case .small:
            let bytes = sent.events.count * ModelStore.bytesPerEvent / 4
            return (wait, bytes > 1000 ? .tooLarge(wireBytes: bytes, .tooLarge) : .acknowledged)
        case .partial:
            var rejected: [RejectedEvent] = []
            var again: [Int] = []
            for (index, event) in sent.events.enumerated() {
                if isBad(event) {
                    rejected.append(RejectedEvent(index: index, failure: .badRequest))
                } else if Int.random(in: 0..<20, using: &random) == 0 {
                    again.append(index)
                }
            }
            return (wait, .partial(rejected: rejected, retry: again))
        case .again: return (wait, .partial(rejected: [], retry: Array(sent.events.indices)))
        case .routeless: return (.zero, .offline)
        }
    }

    /// Whether nothing may be sent to a destination now, and why.
    func forbids(_ sent: World.Sent) -> String? {
        if !isEnabled { return "collection is disabled" }
        if !isNetworkOn { return "the network is off" }
        if pauses.contains(where: { $0.destination == nil || $0.destination == sent.destination }) {
            return "paused"
        }
        if let until = leaveAloneUntil[sent.destination], sent.at < until { return "Retry-After" }
        if routes[sent.destination] == false { return "no route" }
        return nil
    }
}

/// A world in which anything may happen.
struct ChaoticWorld {
    var world: World
    let names: [DestinationName]
    var chaos = Box()
    /// Drains so far: each is a command of its own.
    private var drains: UInt64 = 0

    /// Shared by the closures of the world.
    final class Box {
        var value = Chaos()
    }

    init(seed: UInt64, destinations: Int = 2, storeTrouble: Bool = true) {
        var random = SplitMix64(seed: seed)
        names = (0..<destinations).map { DestinationName("d\($0)") }
        let all = names.map { name in
            DestinationOptions(
                name: name, batchEvents: [10, 50].randomElement(using: &random) ?? 50,
                batchMostEvents: [nil, 5_000].randomElement(using: &random) ?? nil,
                parallelBatches: Int.random(in: 1...4, using: &random),
                whenExhausted: .probe,
                requestsPerSecond: Int.random(in: 0..<4, using: &random) == 0 ? 20 : nil)
        }
        let options = DeliveryOptions(
            interval: .every(.seconds([1, 6, 120].randomElement(using: &random) ?? 6)),
            batchOnSize: Int.random(in: 0..<4, using: &random) > 0, destinations: all)
        world = World(options, seed: seed)
        let box = chaos
        world.answer = { world, sent in box.value.answer(sent, at: world.boot, using: &world.random) }
        world.check = { world, sent in
            if let reason = box.value.forbids(sent) {
                world.faults.append("\(world.boot): sends although \(reason)")
            }
        }
        world.answered = { world, sent, outcome in
            guard case .retryAfter(let wait, _) = outcome else { return }
            let until = world.boot + max(.seconds(1), wait)
            box.value.leaveAloneUntil[sent.destination] = max(
                until, box.value.leaveAloneUntil[sent.destination] ?? until)
        }
        if storeTrouble {
            world.storeFails = { Int.random(in: 0..<500, using: &$0.random) == 0 }
            world.storeLatency = { .microseconds(Int.random(in: 100...20_000, using: &$0.random)) }
            world.summaryLag = { .microseconds(Int.random(in: 0...50_000, using: &$0.random)) }
        }
    }

    /// Lives for so long, with something happening every minute or so.
    mutating func live(_ duration: Duration, eventsPerMinute: Int) {
        let end = world.boot + duration
        while world.boot < end {
            surprise()
            for _ in 0..<Int.random(in: 0...3, using: &world.random) {
                let name = names.randomElement(using: &world.random) ?? names[0]
                let priority: Priority =
                    Int.random(in: 0..<5, using: &world.random) == 0 ? .critical : .normal
                world.accept(
                    Int.random(in: 1...max(1, eventsPerMinute), using: &world.random), priority, to: name)
                world.run(.seconds(Int.random(in: 0...20, using: &world.random)))
            }
            world.run(.seconds(Int.random(in: 0...30, using: &world.random)))
        }
    }

    private mutating func surprise() {
        let name = names.randomElement(using: &world.random) ?? names[0]
        switch Int.random(in: 0..<50, using: &world.random) {
        case 0..<12:
            chaos.value.moods[name] = Chaos.Mood.allCases.randomElement(using: &world.random)
        case 12..<20:
            chaos.value.moods[name] = .well
        case 20, 21:
            chaos.value.isNetworkOn.toggle()
            world.input(.network(on: chaos.value.isNetworkOn))
        case 22, 23:
            let key = PauseTokens.Key(destination: Bool.random(using: &world.random) ? name : nil, token: "t")
            chaos.value.pauses.insert(key)
            world.input(.pause(token: "t", key.destination, ttl: nil, untilRestart: false))
        case 24..<29:
            for key in chaos.value.pauses { world.input(.resume(token: key.token, key.destination)) }
            chaos.value.pauses = []
        case 29:
            chaos.value.routes[name] = false
            world.input(.routes([name: false]))
        case 30, 31:
            chaos.value.routes = [:]
            world.input(.routes(Dictionary(uniqueKeysWithValues: names.map { ($0, true) })))
        case 32: world.input(.networkChanged)
        case 33:
            // A word that says now ends a Retry-After.
            chaos.value.leaveAloneUntil = [:]
            world.input(.dispatch(nil, nil))
        case 34:
            chaos.value.leaveAloneUntil[name] = nil
            drains += 1
            world.input(.drain(CommandID(number: drains), name, timeout: .seconds(60)))
        case 35:
            world.stepWall(by: .seconds(Int.random(in: -100_000...100_000, using: &world.random)))
            chaos.value.isClockSet = true
        case 36: restart()
        case 37: world.input(.reload(world.machine.options))
        case 38:
            let intervals: [DispatchInterval?] = [.off, .every(.seconds(1)), nil]
            world.input(.interval(intervals.randomElement(using: &world.random) ?? nil, isDurable: false))
        case 39, 40:
            // The queue makes room, or lets events expire; its figures follow with the next change.
            let lane = ModelStore.Lane(
                destination: name, priority: Bool.random(using: &world.random) ? .critical : .normal)
            world.store.evict(Int.random(in: 1...1000, using: &world.random), lane)
        case 41: forget()
        case 42: stop()
        case 43: reload(name)
        case 44: world.purge(name)
        case 45, 46, 47:
            if let other = names.randomElement(using: &world.random), other != name {
                world.move(name, to: other)
            }
        default: world.input(.timer)
        }
    }

    /// Collection is disabled and enabled again; what is in flight may end before the queue is emptied, or after.
    private mutating func forget() {
        chaos.value.isEnabled = false
        world.input(.enabled(false))
        world.run(.milliseconds(Int.random(in: 0...1000, using: &world.random)))
        world.store.empty()
        world.input(.forget)
        world.publish()
        world.run(.milliseconds(Int.random(in: 0...1000, using: &world.random)))
        chaos.value.isEnabled = true
        world.input(.enabled(true))
    }

    /// A stop, which ends when it said, and the next start.
    private mutating func stop() {
        let grace = Duration.seconds(Int.random(in: 0...20, using: &world.random))
        let end = world.boot + grace + .seconds(1)
        world.input(.stop(grace: grace))
        while !world.isStopped, world.boot <= end {
            world.run(.milliseconds(100))
            // A second one does not prolong it.
            world.input(.stop(grace: .seconds(600)))
        }
        if !world.isStopped || world.machine.wakeAt(world.now) != nil || !world.inFlight.isEmpty {
            world.faults.append("\(world.boot): does not stop")
        }
        restart()
    }

    /// Its settings change in what counts for trust, or in its rate.
    private mutating func reload(_ name: DestinationName) {
        var options = world.machine.options
        guard let index = options.destinations.firstIndex(where: { $0.name == name }) else { return }
        let before = options.destinations[index]
        if Bool.random(using: &world.random) {
            options.destinations[index].fingerprint += "'"
        } else {
            options.destinations[index].requestsPerSecond =
                [nil, 5, 20].randomElement(using: &world.random) ?? nil
        }
        world.input(.reload(options, isByPerson: Bool.random(using: &world.random)))
        guard let machine = world.machine.destinations[name] else { return }
        if machine.options.fingerprint != before.fingerprint,
            machine.blame.acknowledged.isWithSettings || machine.hold != nil
        {
            world.faults.append("\(world.boot): believes what was learned with other settings")
        }
        if machine.turns.isLimited != (machine.options.requestsPerSecond != nil) {
            world.faults.append("\(world.boot): has not the rate of its settings")
        }
    }

    private mutating func restart() {
        chaos.value.restarts += 1
        // What is left of a Retry-After goes by the time of day.
        if chaos.value.isClockSet { chaos.value.leaveAloneUntil = [:] }
        chaos.value.isClockSet = false
        world.restart(down: .seconds(Int.random(in: 0...10, using: &world.random)))
        // Routes are told anew by whoever watches the network.
        world.input(.routes(chaos.value.routes))
    }

    /// All is well again.
    mutating func heal() {
        chaos.value.moods = [:]
        chaos.value.pauses = []
        chaos.value.routes = [:]
        chaos.value.isNetworkOn = true
        world.storeFails = { _ in false }
        world.input(.network(on: true))
        for name in names.map(Optional.some) + [nil] { world.input(.resume(token: "t", name)) }
        world.input(.interval(nil, isDurable: false))
        world.input(.routes(Dictionary(uniqueKeysWithValues: names.map { ($0, true) })))
    }
}
