import Model
import Testing

@Suite("Priority")
struct PriorityTests {
    @Test("ac26: there are exactly two priorities, each with one name")
    func ac26_namesRoundTrip() {
        #expect(Priority.allCases.map(\.name) == ["normal", "critical"])
        for priority in Priority.allCases { #expect(Priority(name: priority.name) == priority) }
        for word in ["", "Critical", "high", "normal "] { #expect(Priority(name: word) == nil) }
        #expect(Priority.normal < .critical)
    }
}
