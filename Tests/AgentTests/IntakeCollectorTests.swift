import Containers
import Metrics
import TestKit
import Testing

@testable import Agent
@testable import Intake

@Suite("Figures of what is read")
struct IntakeCollectorTests {
    @Test("tags that only a backfill has fired are counted, and those that both have fired are summed")
    func tagsOfABackfill() {
        let figures = AllIntakes()
        figures.backfill.update { $0.rules.fired = ["old": 3, "both": 2] }
        figures.spool.update { $0.rules.fired = ["both": 1] }
        let exposition = Exposition(from: [IntakeCollector(figures: figures, time: ManualTime())])
        let text = ExpositionFormat.prometheusText.write(exposition)
        #expect(text.contains("spoolship_container_tags_fired_total{container=\"old\"} 3"), "\(text)")
        #expect(text.contains("spoolship_container_tags_fired_total{container=\"both\"} 3"), "\(text)")
    }

    @Test("the events of each rule of the configuration are counted by its name")
    func rules() {
        let figures = AllIntakes()
        figures.backfill.update { $0.rules.byRule = ["no debug lines": 3] }
        figures.spool.update { $0.rules.byRule = ["no debug lines": 1] }
        let exposition = Exposition(from: [IntakeCollector(figures: figures, time: ManualTime())])
        let text = ExpositionFormat.prometheusText.write(exposition)
        #expect(text.contains("spoolship_rule_events_total{rule=\"no debug lines\"} 4"), "\(text)")
    }
}
