import Events
@testable import Metrics
import Testing

@Suite("Oddities of events")
struct OddityTests {
    @Test("each kind that the pass counts has a series of its own")
    func kinds() {
        #expect(
            Oddity.allCases.map(\.rawValue).sorted() == MetricFamily.table.oddities.labels[0].values?.sorted()
        )
    }
}
