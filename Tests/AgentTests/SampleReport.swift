import EventLoops
import Model
@testable import Queue

@testable import Agent

/// Reports for tests: one where all is well, one where nothing goes, one with everything that can be said.
enum SampleReport {
    static let now = Timestamp(milliseconds: 1_795_168_800_000)

    static func ledger(accepted: Int, queued: Int) -> Ledger {
        var ledger = Ledger()
        ledger.accepted = accepted
        ledger.queued = queued
        ledger.acknowledged = accepted - queued
        return ledger
    }

    static func lane(
        _ priority: Priority, accepted: Int, queued: Int, oldest: Timestamp? = nil
    ) -> QueueSnapshot.LaneState {
        .init(
            destination: "", priority: priority, isConfigured: true, summary: LaneSummary(),
            ledger: ledger(accepted: accepted, queued: queued), oldestQueuedAt: oldest)
    }

    static var healthy: StatusReport {
        var report = StatusReport(started: now - .seconds(273_900), now: now)
        report.version = "1.0.0"
        report.host = "web3"
        report.processID = 812
        var main = StatusReport.Destination(name: "main", state: .active)
        main.address = "https://logs.example:8443"
        main.lastAcknowledged = now - .seconds(2)
        main.inFlight = 1
        main.lanes = [
            lane(.critical, accepted: 1_204, queued: 0),
            lane(.normal, accepted: 8_312_554, queued: 37, oldest: now - .seconds(4)),
        ]
        report.destinations = [main]
        report.queue.intake.read = 8_313_761
        report.queue.intake.accepted = 8_313_758
        report.queue.intake.quarantined = 3
        report.queue.storedBytes = 41_200
        report.queue.maxSize = 10_485_760
        report.queue.fileBytes = 4_600_000
        report.queue.quarantine.count = 3
        report.queue.quarantine.bytes = 912
        report.spool.directory = "/var/spool/spoolship"
        report.spool.files = 14
        return report
    }

    static var failing: StatusReport {
        var report = healthy
        report.obstacles = [
            "main: nothing was acknowledged for 3h12m although 12,431 events wait: answered 503"
        ]
        report.destinations[0].state = .breakerOpen
        report.destinations[0].since = now - .seconds(11_520)
        report.destinations[0].nextAttempt = now + .seconds(41)
        report.destinations[0].lastAcknowledged = now - .seconds(11_600)
        report.destinations[0].lastFailure = (
            Failure(kind: .status, status: 503, message: "answered 503"), now - .seconds(800)
        )
        report.destinations[0].inFlight = 0
        report.destinations[0].lanes = [
            lane(.critical, accepted: 1_207, queued: 3, oldest: now - .seconds(9_000)),
            lane(.normal, accepted: 8_324_982, queued: 12_428, oldest: now - .seconds(11_520)),
        ]
        report.queue.storedBytes = 4_194_304
        report.growth = 350
        return report
    }

    static var everything: StatusReport {
        var report = failing
        report.isNetworkOn = false
        report.pauseTokens = ["deploy"]
        report.interval = "off"
        report.intervalOrigin = "command"
        report.logLevel = "debug"
        report.reloadProblem = "/etc/spoolship/spoolship.toml:12:1: unknown key \"intervall\""
        report.edits = ["queue.max_size", "dispatch.interval", "agent.log", "destination.main.url"]
        report.restartEdits = ["queue.durability"]
        report.restartProblem = "destination main: /etc/spoolship/ca.pem holds no certificate"
        report.destinations[0].lanes[1].ledger.evicted = 4
        report.destinations[0].lanes[1].ledger.deadLettered = 12
        report.destinations[0].lanes[1].ledger.accepted += 16
        report.destinations[0].unnamedRejections = (1_207, "too old")
        var audit = StatusReport.Destination(name: "audit", state: .held)
        audit.since = now - .seconds(60)
        audit.nextAttempt = now + .seconds(900)
        audit.lastFailure = (Failure(kind: .status, status: 403, message: "answered 403"), now - .seconds(60))
        audit.lanes = [
            lane(.critical, accepted: 0, queued: 0),
            lane(.normal, accepted: 10, queued: 10, oldest: now - .seconds(75)),
        ]
        var old = StatusReport.Destination(name: "old-place", state: .orphaned)
        old.lanes = [lane(.normal, accepted: 5, queued: 5, oldest: now - .seconds(864_000))]
        report.destinations += [audit, old]
        report.queue.accepting = .nothing(.diskFull)
        report.queue.deadLetters.count = 12
        report.destinations[0].lanes[1].deadLetters = 9
        report.destinations[1].lanes[1].deadLetters = 3
        report.queue.deadLetters.bytes = 48_000
        report.spool.lagBytes = 5_242_880
        report.spool.lagSeconds = 600
        report.spool.waits = "the queue is near its cap"
        report.spool.complaints = [
            "shop/app.jsonl cannot be read: owner 1001, mode 0600; its writer must let the group read"
        ]
        report.rules = [("no debug lines", 1_234), ("rule 2", 0)]
        report.checks = [
            "schemas: 12,431 events that match their schemas, 2 not, in quarantine: 2 of purchase (3)"
        ]
        report.containers = [
            .init(
                id: "GTM-1234", source: "saved", version: "17", confirmed: now - .seconds(43_200),
                problem: "the last fetch failed: server_error"),
            .init(
                id: "GTM-5678", source: "preview", version: "18", confirmed: nil,
                previewEnds: now + .seconds(900)),
        ]
        var shop = AppCounts()
        (shop.events, shop.bytes, shop.lastRead) = (8_000_000, 2_400_000_000, now - .seconds(2))
        var nginx = AppCounts()
        (nginx.events, nginx.records, nginx.bytes) = (313_761, 313_758, 91_000_000)
        (nginx.quarantined, nginx.lastRead) = (3, now - .seconds(7_200))
        report.apps = ["shop": shop, "nginx": nginx, "idle": AppCounts()]
        report.overrides = [
            ("queue.max_age", "\"7d\"", "container GTM-1234")
        ]
        return report
    }
}
