import Configuration
import Delivery
import Events
@testable import Intake
import Logs
import Model
import Queue
import TestKit
import Testing

@testable import Agent

@Suite("Settings of a destination, for the modules")
struct OwnSettingsTests {
    private func settings(_ text: String) throws -> (Settings, TemporaryDirectory) {
        let directory = try TemporaryDirectory()
        let whole = "agent.state_directory = \"\(directory.path)\"\n\(text)\n"
        return (try Settings.read([ConfigurationText(file: "t.toml", text: whole)]).settings, directory)
    }

    private static let text = """
        queue.max_size = "64MiB"
        queue.max_age = "10d"
        [dispatch]
        interval = "5s"
        batch_events = 200
        batch_most_events = 200
        parallel_batches = 2
        [apps.logs]
        destinations = ["archive"]
        [apps.alarms]
        destinations = ["pager"]
        [[destination]]
        name = "main"
        type = "stdout"
        [[destination]]
        name = "archive"
        type = "file"
        path = "/tmp/a"
        interval = "1m"
        batch_events = 10000
        batch_most_events = 10000
        batch_size = "8MiB"
        parallel_batches = 1
        critical_delay = "30s"
        max_age = "90d"
        [[destination]]
        name = "pager"
        type = "file"
        path = "/tmp/p"
        interval = "off"
        batch_events = 1
        batch_most_events = 1
        max_age = "1h"
        """

    @Test("each module gets a destination's own settings, and the general ones where it has none")
    func modules() throws {
        let (settings, _) = try settings(OwnSettingsTests.text)
        let options = try settings.deliveryOptions()
        #expect(options.interval == .every(.seconds(5)))
        #expect(options.destinations.map(\.interval) == [nil, .every(.seconds(60)), .off])
        #expect(options.destinations.map(\.criticalDelay) == [nil, .seconds(30), nil])
        #expect(options.destinations.map(\.batchEvents) == [200, 10_000, 1])
        #expect(options.destinations.map(\.batchMostEvents) == [200, 10_000, 1])
        // A thirty-second of the cap is the most.
        #expect(options.destinations.map(\.batchBytes) == [1 << 20, 2 << 20, 1 << 20])
        #expect(options.destinations.map(\.parallelBatches) == [2, 1, 2])
        #expect(settings.backfillDepths == ["main": 800, "archive": 20_000, "pager": 4])
        let queue = settings.queueOptions
        #expect(queue.maxAge == .seconds(864_000))
        #expect(queue.maxAges == ["archive": .seconds(90 * 86_400), "pager": .seconds(3600)])
    }

    @Test(
        "chunks are cut at the smallest batch size of the destinations that share them, down to a lower limit"
    )
    func chunks() throws {
        let (settings, _) = try settings(OwnSettingsTests.text)
        let intake = settings.intakeSettings(
            cap: 64 << 20, isCollecting: true, country: nil,
            host: HostFacts(settings, version: "1", log: Log(KeptLog())))
        func route(_ app: String) -> (events: Int, bytes: Int, others: [String]) {
            let route = intake.routes[intake.routeIndex(of: app)]
            return (route.chunks.events, route.chunks.bytes, route.otherBatches.map(\.text))
        }
        // Shared: 1, 200 and 10,000 events a batch; nobody's batches are chunks as they are.
        #expect(route("") == (50, 1 << 20, ["main", "archive", "pager"]))
        // A destination's alone are cut by what it wants, exactly.
        #expect(route("logs") == (10_000, 2 << 20, []))
        #expect(route("alarms") == (1, 1 << 20, []))
        #expect(intake.table.route(to: ["main", "archive"]).chunks.events == 200)
        #expect(intake.table.route(to: ["main", "archive"]).otherBatches == ["archive"])
        #expect(settings.chunksByDefault.events == 50)
        // What is too old for all expires before it is stored; the rest in the lanes of those that it is too old for.
        #expect(intake.events.maxAge == .seconds(90 * 86_400))
    }

    @Test("without settings of destinations, all chunks have one size and each is a batch")
    func nothingOfItsOwn() throws {
        let (settings, _) = try settings(
            "[[destination]]\nname = \"a\"\ntype = \"stdout\"\n[[destination]]\nname = \"b\"\ntype = \"stdout\""
        )
        let intake = settings.intakeSettings(
            cap: 10 << 20, isCollecting: true, country: nil,
            host: HostFacts(settings, version: "1", log: Log(KeptLog())))
        #expect(
            intake.routes.map(\.chunks) == [
                ChunkLimits(batchEvents: 5_000, batchBytes: 1 << 20, cap: 10 << 20)
            ])
        #expect(intake.routes.map(\.batchFrom) == [50])
        #expect(
            intake.routes.allSatisfy(\.otherBatches.isEmpty) && intake.events.maxAge == .seconds(25 * 86_400))
        #expect(settings.queueOptions.maxAges.isEmpty)
    }
}
