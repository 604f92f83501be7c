import EventLoops
import Model
import TestKit
import Testing

@testable import Containers

/// The parts of the rule engine, without an engine.
@Suite struct EnginePartsTests {
    /// A container with one tag that acts on every event.
    private func container(_ id: String, _ tag: String, apps: Set<String> = []) throws -> CompiledContainer {
        let text =
            #"{"id": "\#(id)", "version": 1, "rules": {"all": {"conditions": []}}, "#
            + #""tags": [{"name": "t", "rules": ["all"], \#(tag)}]}"#
        return try CompiledContainer(ContainerDocument(reading: Array(text.utf8)), apps: apps)
    }

    @Test("What tags decide is forgotten with the next event, calls also with the next push")
    func decisions() {
        var decisions = EventDecisions()
        decisions.begin(.normal)
        decisions.prioritise(.critical)
        decisions.ship(to: ["b", "a"])
        decisions.ship(to: ["b", "c"])
        decisions.call(FunctionCall(function: "f", parameters: .null))
        #expect(decisions.priority == .critical && decisions.destinations == ["a", "b", "c"])
        decisions.forgetCalls()
        #expect(decisions.calls.isEmpty && decisions.destinations != nil)
        decisions.begin(.normal)
        #expect(decisions.priority == .normal && decisions.destinations == nil)
    }

    @Test("Each app has the hidden members of the containers that concern it, renewed with the containers")
    func hidden() throws {
        let redact = #""type": "redact", "paths": ["properties.email"]"#
        var hidden = HiddenMembersByApp()
        #expect(hidden.members(of: "shop").isEmpty && hidden.changes == 0)
        hidden.use([try container("GTM-1", redact, apps: ["shop"]), try container("GTM-2", redact)])
        let ofShop = hidden.members(of: "shop")
        let ofOther = hidden.members(of: "other")
        #expect(ofShop.actions.count == 2 && ofOther.actions.count == 1 && hidden.changes == 1)
        hidden.use([try container("GTM-1", #""type": "discard""#)])
        let afterwards = hidden.members(of: "shop")
        #expect(afterwards.isEmpty && hidden.changes == 2)
    }

    @Test("Throttles of a container continue after a change of containers and after a restart")
    func throttles() throws {
        let throttle = #""type": "throttle", "events": 1, "seconds": 3600"#
        let throttling = try container("GTM-1", throttle)
        let other = try container("GTM-2", #""type": "discard""#)
        var throttles = ContainerThrottles()
        /// Whether an event of the first container's only throttle is let through.
        func admits(_ throttles: inout ContainerThrottles, _ place: Int) -> Bool {
            throttles.admit(7, to: place, of: "shop", at: Trial.now, throttle: 0, events: 1, seconds: 3600) {}
        }
        throttles.use([throttling])
        let first = admits(&throttles, 0)
        let second = admits(&throttles, 0)
        #expect(first && !second)
        throttles.save()
        throttles.use([other, throttling])
        let moved = admits(&throttles, 1)
        #expect(!moved)
        let changed = throttles.takeChanged()
        #expect(changed.map(\.id) == ["GTM-1"])
        var restarted = ContainerThrottles()
        restarted.use([throttling])
        restarted.restore(changed[0].bytes, of: "GTM-1")
        restarted.use([throttling])
        let later = admits(&restarted, 0)
        #expect(!later)
    }
}
