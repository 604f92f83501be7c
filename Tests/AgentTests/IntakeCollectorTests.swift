import Containers
import Metrics
import TestKit
import Testing

@testable import Agent
@testable import Intake

@Suite("Figures of the intake")
struct IntakeCollectorTests {
    @Test("tags fired by a backfill only are counted, and counts of spool and backfill are added")
    func tagsOfABackfill() {
        let figures = AllIntakes()
        figures.backfill.update { $0.rules.fired = ["old": 3, "both": 2] }
        figures.spool.update { $0.rules.fired = ["both": 1] }
        let exposition = Exposition(from: [IntakeCollector(figures: figures, time: ManualTime())])
        let text = ExpositionFormat.prometheusText.write(exposition)
        #expect(text.contains("spoolship_container_tags_fired_total{container=\"old\"} 3"), "\(text)")
        #expect(text.contains("spoolship_container_tags_fired_total{container=\"both\"} 3"), "\(text)")
    }

    @Test("events are counted by rule of the configuration")
    func rules() {
        let figures = AllIntakes()
        figures.backfill.update { $0.rules.byRule = ["no debug lines": 3] }
        figures.spool.update { $0.rules.byRule = ["no debug lines": 1] }
        let exposition = Exposition(from: [IntakeCollector(figures: figures, time: ManualTime())])
        let text = ExpositionFormat.prometheusText.write(exposition)
        #expect(text.contains("spoolship_rule_events_total{rule=\"no debug lines\"} 4"), "\(text)")
    }
}
