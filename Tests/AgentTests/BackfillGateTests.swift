import Model
@testable import Queue
import Spool
import Testing

@testable import Agent

@Suite("When a backfill may continue")
struct BackfillGateTests {
    private let gate = BackfillGate(depths: ["main": 300], unread: 1_000_000)

    private func queue(normal: Int = 0, critical: Int = 0, stored: Int = 0) -> QueueSnapshot {
        var snapshot = QueueSnapshot()
        snapshot.maxSize = 10_000_000
        snapshot.storedBytes = stored
        for (priority, queued) in [(Priority.normal, normal), (.critical, critical)] {
            var ledger = Ledger()
            ledger.queued = queued
            snapshot.lanes.append(
                .init(
                    destination: "main", priority: priority, isConfigured: true, summary: LaneSummary(),
                    ledger: ledger)
            )
        }
        return snapshot
    }

    private func obstacle(_ queue: QueueSnapshot, _ spool: SpoolFigures = SpoolFigures()) -> String? {
        gate.obstacle(queue, spool, to: ["main"])
    }

    @Test("waiting events of both lanes go before a backfill; events of other destinations do not delay it")
    func queued() {
        #expect(obstacle(queue(normal: 300)) == nil && obstacle(queue(normal: 200, critical: 100)) == nil)
        #expect(obstacle(queue(normal: 301)) == "301 events wait for main")
        #expect(obstacle(queue(normal: 250, critical: 51)) == "301 events wait for main")
        #expect(gate.obstacle(queue(normal: 9999), SpoolFigures(), to: ["other"]) == nil)
    }

    @Test("a backfill waits while the queue is more than half full or stores nothing")
    func room() {
        #expect(obstacle(queue(stored: 5_000_000)) == nil)
        #expect(obstacle(queue(stored: 5_000_001)) == "the queue is more than half full")
        var full = queue()
        full.accepting = .nothing(.diskFull)
        #expect(obstacle(full) == "the queue stores nothing now: disk_full")
    }

    @Test("a backfill waits for unread files of the spool, but not for a line that is being written")
    func spool() {
        var figures = SpoolFigures()
        figures.unreadBytes = 1_000_000
        #expect(obstacle(queue(), figures) == nil)
        figures.unreadBytes += 1
        #expect(obstacle(queue(), figures) == "the spool is not read to its end")
        figures.unreadBytes = 0
        figures.isHeldBack = true
        #expect(obstacle(queue(), figures) == "the spool is not read to its end")
    }
}
