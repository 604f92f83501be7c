import Delivery
import Metrics
import Testing

@testable import Agent

@Suite("How a destination stands, by name")
struct StateNameTests {
    @Test("what is in the way has one name in delivery's answers, in status and in metrics, and one order")
    func namesAgree() {
        let reasons = NoDataReason.allCases.map(\.rawValue)
        let states = DestinationStateName.allCases.map(\.rawValue)
        #expect(reasons.filter { $0 != NoDataReason.empty.rawValue } == states.filter { reasons.contains($0) })
        #expect(Set(states).subtracting(reasons) == ["active", "orphaned"])
    }

    @Test("each obstacle of a destination is its state", arguments: NoDataReason.allCases)
    func obstacleIsState(reason: NoDataReason) {
        #expect((DestinationStateName(rawValue: reason.rawValue) == nil) == (reason == .empty))
    }
}
