import Events
@testable import Metrics
import Testing

@Suite("Oddities of events")
struct OddityTests {
    @Test("each oddity that the pass counts has its own series")
    func kinds() {
        #expect(
            Oddity.allCases.map(\.rawValue).sorted() == MetricFamily.table.oddities.labels[0].values?.sorted()
        )
    }
}
