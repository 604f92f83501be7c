import EventLoops
import Model
import TestKit
import Testing

@testable import Delivery

/// An ingress that restarts, one bad backend of two and a captive portal answer 404, 401, 403 or a page for a moment.
@Suite("A destination that refuses requests after acknowledging some")
struct PatienceTests {
    private static let refusals: [Outcome] = [401, 403, 404, 200].map { (status: Int) in
        Outcome.held(Failure(kind: .status, status: status, message: "a refusal"))
    }

    private func isHeld(_ note: DeliveryNote) -> Bool {
        if case .held = note { true } else { false }
    }

    private func state(_ world: World) -> DestinationStateName? {
        world.machine.snapshot(at: world.now).destinations[0].obstacle
    }

    /// A world whose destination has acknowledged 50 events.
    private func trusting(_ apps: Int? = nil) -> World {
        var world = World(options())
        world.store.apps = apps
        world.accept(50)
        world.run(.seconds(10))
        return world
    }

    @Test(
        "one answer of this kind holds nothing: the request is repeated after ten seconds, and everything is sent",
        arguments: refusals)
    func oneAnswer(refusal: Outcome) {
        var world = trusting()
        var isOver = false
        world.answer = { _, _ in
            defer { isOver = true }
            return (.milliseconds(10), isOver ? .acknowledged : refusal)
        }
        world.accept(500)
        world.accept(10, .critical)
        world.run(.seconds(20))
        #expect(world.store.acknowledged.count == 560 && world.alerts == 0 && !world.isHeld)
        #expect(world.notes.contains { if case .recovered = $0 { true } else { false } })
    }

    @Test(
        "a destination is asked again after 10, 30, 60 and 60 s, and held after five minutes without an acknowledgement"
    )
    func steps() {
        var world = trusting()
        world.answer = { _, _ in (.zero, .held(.unauthorised)) }
        world.accept(1)
        world.run(.seconds(4))
        let start = world.boot
        let before = world.sent.count
        world.run(.seconds(300))
        let times: [Int64] = world.sent.dropFirst(before).map { ($0.at - start).components.seconds }
        let waits: [Int64] = zip(times, times.dropFirst()).map { $1 - $0 }
        #expect(waits == [10, 30, 60, 60, 60, 60])
        #expect(!world.notes.contains(where: isHeld))
        #expect(state(world) == .waitingForRetry)
        world.run(.seconds(10))
        #expect(world.notes.count(where: isHeld) == 1 && world.alerts == 1)
        #expect(state(world) == .held)
        let held = world.sent.count
        world.run(.seconds(590))
        #expect(world.sent.count <= held + 1, "a held destination is asked once a probe interval")
    }

    @Test("any acknowledgement restarts the five minutes")
    func oneBadBackend() {
        var world = trusting()
        var requests = 0
        world.answer = { _, _ in
            requests += 1
            return (.milliseconds(10), requests.isMultiple(of: 2) ? .acknowledged : .held(.unauthorised))
        }
        for _ in 0..<60 {
            world.accept(10)
            world.run(.seconds(10))
        }
        world.run(.seconds(60))
        #expect(world.alerts == 0 && world.store.acknowledged.count >= 550)
    }

    @Test("credentials refused from the first request on, or after a change, are reported at once")
    func firstRequest() {
        var world = World(options())
        world.answer = { _, _ in (.milliseconds(10), .held(.unauthorised)) }
        world.accept(50)
        world.run(.seconds(10))
        #expect(world.notes.count(where: isHeld) == 1)

        var other = trusting()
        other.answer = { _, _ in (.milliseconds(10), .held(.unauthorised)) }
        other.input(.newCredentials("main"))
        other.accept(50)
        other.run(.seconds(10))
        #expect(other.notes.count(where: isHeld) == 1)
    }

    @Test("an acknowledgement of more than ten minutes ago earns no patience")
    func longAgo() {
        var world = trusting()
        world.run(.seconds(601))
        world.answer = { _, _ in (.milliseconds(10), .held(.unauthorised)) }
        world.accept(50)
        world.run(.seconds(10))
        #expect(world.notes.count(where: isHeld) == 1)
    }

    @Test("resume ends a Retry-After, as dispatch does, also after a restart")
    func resumeEndsRetryAfter() {
        var world = trusting()
        world.answer = { _, _ in (.milliseconds(10), .retryAfter(.seconds(3600), .unavailable)) }
        world.accept(50)
        world.run(.seconds(10))
        world.answer = { _, _ in (.milliseconds(10), .acknowledged) }
        world.input(.resume(token: nil, nil))
        #expect(world.switches[SwitchName.retryAfter("main")] == nil)
        world.run(.seconds(1))
        #expect(world.store.acknowledged.count == 100)
    }
}
