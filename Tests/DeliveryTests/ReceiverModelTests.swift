import EventLoops
import Glibc
import Model
import TestKit
import Testing

@testable import Delivery

/// A receiver by seed: each event is good or bad by its content, by its app, and by the time; now and then nothing goes at all.
private struct ModelReceiver {
    /// What becomes different for a time.
    enum Change: Equatable {
        /// A schema refuses one app's events.
        case app(Int)
        /// It refuses every event.
        case everything
        /// It answers nothing but 503.
        case outage
    }

    struct Phase {
        let change: Change
        let from: BootInstant
        let to: BootInstant
    }

    static let apps = 5

    let manner: ScriptedReceiver.Manner
    let latency: Duration
    /// How many of 10,000 events are bad by their content.
    let badContents: UInt64
    let badApp: Int
    let phases: [Phase]

    init(from start: BootInstant, for length: Duration, using random: inout SplitMix64) {
        manner = ScriptedReceiver.Manner.allCases.randomElement(using: &random) ?? .wholly
        let milliseconds = [1, 20, 150].randomElement(using: &random) ?? 1
        badContents = [0, 10, 200, 2000].randomElement(using: &random) ?? 0
        // A slow receiver cannot answer all the requests that finding so many bad events takes in time:
        // Sources/Delivery/DESIGN.md.
        latency = .milliseconds(badContents == 2000 ? min(milliseconds, 20) : milliseconds)
        badApp = [-1, -1, 0].randomElement(using: &random) ?? -1
        let seconds = Int(length.components.seconds)
        phases = (0..<Int.random(in: 0...3, using: &random)).map { _ in
            let change: Change =
                [.app(1), .app(2), .everything, .outage].randomElement(using: &random) ?? .outage
            let from = start + .seconds(Int.random(in: 20...seconds, using: &random))
            return Phase(
                change: change, from: from, to: from + .seconds(Int.random(in: 5...200, using: &random)))
        }
    }

    /// Whether it is bad whenever it comes.
    func isBad(_ event: Int) -> Bool {
        event % ModelReceiver.apps == badApp
            || (UInt64(event) &* 0x9E37_79B9_7F4A_7C15) >> 40 % 10_000 < badContents
    }

    /// Whether it may be bad, when it comes at a bad time.
    func mayBeBad(_ event: Int) -> Bool {
        isBad(event) || phases.contains { $0.change == .app(event % ModelReceiver.apps) }
    }

    func answer(_ sent: World.Sent, at now: BootInstant) -> Outcome {
        let present = phases.filter { $0.from <= now && now < $0.to }.map(\.change)
        if present.contains(.outage) { return .retry(.unavailable) }
        let bad = sent.events.filter { isBad($0) || present.contains(.app($0 % ModelReceiver.apps)) }
        return ScriptedReceiver(manner: manner, bad: Set(bad), refusesAll: present.contains(.everything))
            .answer(sent)
    }

    /// Until when an event that came then may be on its way: half a minute where it could pass all the time, and behind a time in
    /// which nothing passed as long as the next probe takes.
    func latest(_ event: Int, _ accepted: BootInstant, knowsApps: Bool) -> BootInstant {
        var latest = accepted + .seconds(6 + 30)
        for phase in phases.sorted(by: { $0.from < $1.from }) where phase.from < latest {
            let back: Duration
            switch phase.change {
            // Until the next turn of what is set aside, and as long as all of it takes; nobody's waits for a probe interval.
            case .app(let app) where app == event % ModelReceiver.apps:
                back = .seconds(knowsApps ? 90 : 1_260)
            case .app: continue
            case .everything: back = .seconds(60)
            // What failed waits for its retry, new events behind it, or for the breaker's probe after 10 to 20 minutes.
            case .outage: back = .seconds(1_260)
            }
            if accepted < phase.to + back { latest = max(latest, phase.to + back) }
        }
        return latest
    }
}

@Suite("Receivers by seed")
struct ReceiverModelTests {
    private final class Arrivals {
        var at: [Int: BootInstant] = [:]
    }

    /// SPOOLSHIP_EVENTS asks for another number.
    private static let events = getenv("SPOOLSHIP_EVENTS").flatMap { Int(String(cString: $0)) } ?? 20_000
    private static let worlds = 50

    @Test(
        "acceptable events arrive within 30 s, rejected ones are kept, only a destination that accepts none is held",
        // 72: six set-aside events of one app were the next probes when a time without acceptances was over.
        arguments: Seeds.list(Array(1...UInt64(worlds)) + [72]))
    func goodEventsPass(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var settings = options()
        settings.destinations[0].batchMostEvents = [1, 7, 50, 1000].randomElement(using: &random) ?? 50
        settings.destinations[0].batchBytes = 4 << 20
        var world = World(settings, seed: seed)
        if seed % 2 == 0 { world.store.apps = ModelReceiver.apps }
        let rate = settings.destinations[0].batchMostEvents == 1 ? 2 : Int.random(in: 1...10, using: &random)
        let length = Duration.seconds(Self.events / Self.worlds / rate)
        let receiver = ModelReceiver(from: world.boot, for: length, using: &random)
        let arrivals = Arrivals()
        world.answer = { world, sent in (receiver.latency, receiver.answer(sent, at: world.boot)) }
        world.answered = { world, sent, outcome in
            var rejected: Set<Int> = []
            switch outcome {
            case .acknowledged: break
            case .partial(let some, _): rejected = Set(some.map(\.index))
            default: return
            }
            for (place, event) in sent.events.enumerated() where !rejected.contains(place) {
                arrivals.at[event] = arrivals.at[event] ?? world.boot
            }
        }
        var accepted: [BootInstant] = [world.boot]
        var restarts = 0
        let end = world.boot + length
        while world.boot < end {
            let count = Int.random(in: 1...2 * rate, using: &random)
            accepted += Array(repeating: world.boot, count: count)
            world.accept(count, Int.random(in: 0..<5, using: &random) == 0 ? .critical : .normal)
            world.run(.milliseconds(Int.random(in: 500...1500, using: &random)))
            if seed % 4 >= 2, Int.random(in: 0..<150, using: &random) == 0 {
                restarts += 1
                world.restart()
            }
            switch Int.random(in: 0..<300, using: &random) {
            case 0: world.input(.resume(token: nil, nil))
            case 1: world.input(.retrySetAside(nil, app: Bool.random(using: &random) ? "app1" : nil))
            default: break
            }
        }
        world.run(.seconds(3 * 3600))
        // Whatever was rejected last, and held it: what comes then goes.
        accepted += Array(repeating: world.boot, count: 60)
        world.accept(60)
        world.run(.seconds(120))

        let again = "\(Seeds.again(seed)): \(receiver)"
        #expect(world.faults.isEmpty && world.store.faults.isEmpty, "\(again)")
        let left = Set(world.store.batches.values.flatMap { $0.events.map(\.number) })
        let ended = world.store.acknowledged.count + world.store.deadLettered.count
        #expect(ended + left.count == world.store.accepted, "\(again)")
        // What is rejected and may not be given up is kept: beside the others, or where nothing came after it that was taken.
        #expect(
            left.allSatisfy { receiver.isBad($0) } && world.store.waiting.values.allSatisfy(\.isEmpty),
            "\(again)")
        let good = (1..<accepted.count).filter { !receiver.mayBeBad($0) }
        // A time in which everything is rejected costs the ten events by which it is known, and as many after a restart.
        let refusals = receiver.phases.count { $0.change == .everything }
        #expect(
            good.count { world.store.deadLettered[$0] != nil } <= 10 * refusals * (1 + restarts), "\(again)")
        // What one app has rejected is its own matter: a hundred of a thousand are given up, the others are kept, and nobody is held.
        for app in 0..<ModelReceiver.apps where world.store.apps != nil && receiver.badContents == 0 {
            let own = world.store.deadLettered.keys.count { $0 % ModelReceiver.apps == app }
            #expect(
                own <= 100 * (2 + restarts) + accepted.count / 10,
                "\(again): \(own) dead letters of app \(app)")
        }
        let isOfApps = receiver.phases.allSatisfy { if case .app = $0.change { true } else { false } }
        if world.store.apps != nil, receiver.badContents == 0, isOfApps, restarts == 0 {
            #expect(world.alerts == 0, "\(again)")
        }
        let late = (1..<accepted.count).filter { number in
            guard !receiver.isBad(number), world.store.deadLettered[number] == nil else { return false }
            let latest = receiver.latest(number, accepted[number], knowsApps: world.store.apps != nil)
            return arrivals.at[number].map { $0 > latest } ?? true
        }
        #expect(late.isEmpty, "\(again): \(late.count) of \(accepted.count) late, as \(late.first ?? 0)")
    }
}
