import Containers
import EventLoops
import Glibc
@testable import Intake
import Logs
import Model
import Queue
import TestKit
import Testing

@testable import Agent
@testable import Configuration

@Suite("The container keeper", .timeLimit(.minutes(2)))
struct ContainerKeeperTests {
    /// How a container stands that has only a default file, and what the log says.
    private func open(
        _ document: String, isSynchronised: Bool = true, required: [ContainerSettings.Requirement] = [],
        then: (ContainerKeeper) async throws -> Void = { _ in }
    ) async throws -> (ContainerState, [LogMessage]) {
        let directory = try TemporaryDirectory()
        let (loop, storeLoop) = (try EventLoop(name: "main"), try EventLoop(name: "store"))
        try loop.start()
        try storeLoop.start()
        defer {
            loop.stop()
            storeLoop.stop()
        }
        let file = "\(directory.path)/GTM-1"
        let raw = Glibc.open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0o644)
        try #require(raw >= 0 && write(raw, document, document.utf8.count) == document.utf8.count)
        close(raw)
        let log = KeptLog()
        let store = try QueueStore(
            QueueOptions(stateDirectory: "\(directory.path)/state", destinations: ["main"]), on: storeLoop,
            time: SystemTime(), log: Log(KeptLog()))
        let keeper = ContainerKeeper(
            store: store, inForce: ContainersInForce.opening(), userAgent: "test", facts: AgentFacts(),
            on: loop,
            time: SystemTime(), clock: ClockTrust(isSynchronised: { isSynchronised }), log: Log(log)
        ) { _, _ in }
        var settings = ContainerSettings()
        settings.id = "GTM-1"
        settings.defaultFile = file
        settings.required = required
        await keeper.configure([settings])
        await waitUntil("the default is in force: \(log.messages)") { keeper.states.first?.version == 3 }
        let state = try #require(keeper.states.first)
        try await then(keeper)
        await store.close()
        return (state, log.messages)
    }

    /// Waits without holding up the loops.
    private func waitUntil(_ what: @autoclosure () -> String, _ condition: () -> Bool) async {
        let clock = ContinuousClock()
        let end = clock.now + .seconds(30)
        while !condition() {
            guard clock.now < end else {
                Issue.record("waited too long: \(what())")
                return
            }
            await Task.yield()
        }
    }

    @Test(
        "an expired default file stays in force, and `status` and the log report it",
        arguments: [true, false])
    func expiredDefault(isSynchronised: Bool) async throws {
        let document = #"{"id": "GTM-1", "version": 3, "expires": "2021-01-01T00:00:00Z", "values": {}}"#
        let (state, log) = try await open(document, isSynchronised: isSynchronised)
        // A clock that is not to be trusted makes nothing expire.
        #expect(
            (state.problem == "the default file's document has expired; it stays in force") == isSynchronised)
        #expect(log.contains { $0.text == "default file has expired, it stays in force" } == isSynchronised)
    }

    @Test("a reload reports changed content of a default file, and a changed order of containers")
    func reloadSaysWhatChanged() async throws {
        let document = #"{"id": "GTM-1", "version": 3, "values": {}}"#
        _ = try await open(document) { keeper in
            let settings = try #require(await keeper.slots.first?.settings)
            #expect(await keeper.configure([settings]) == [])
            let file = try #require(settings.defaultFile)
            let raw = Glibc.open(file, O_WRONLY | O_APPEND | O_CLOEXEC)
            try #require(raw >= 0 && write(raw, "\n", 1) == 1)
            close(raw)
            #expect(await keeper.configure([settings]) == ["default_file of GTM-1: its content"])
            #expect(await keeper.configure([settings]) == [])
            let keys = ["GTM-1": HashKey.trial]
            let said = ["hash key of GTM-1: its content, so that digests change"]
            #expect(await keeper.configure([settings], hashKeys: keys) == said)
            #expect(await keeper.configure([settings], hashKeys: keys) == [])
            #expect(await keeper.configure([settings]) == said)
            var other = ContainerSettings()
            other.id = "GTM-2"
            #expect(await keeper.configure([settings, other]) == [])
            #expect(
                await keeper.configure([other, settings]) == [
                    "order of [[container]] GTM-1, GTM-2 -> GTM-2, GTM-1"
                ])
        }
    }

    private static let redacting =
        #"{"id": "GTM-1", "version": 3, "rules": {"all": {"conditions": []}}, "tags": [{"name": "r", "type": "redact", "rules": ["all"], "paths": ["properties.email"]}]}"#

    @Test(
        "`require` asks for redaction: neither a document with values only nor a draft satisfies it",
        arguments: [
            (ContainerKeeperTests.redacting, true),
            (#"{"id": "GTM-1", "version": 3, "values": {"a": 1}}"#, false),
        ])
    func required(document: String, redacts: Bool) async throws {
        let draft = Array(ContainerKeeperTests.redacting.utf8)
        let (state, log) = try await open(document, required: [.redaction]) { keeper in
            _ = try await keeper.preview(nil, draft, for: .seconds(60))
            await waitUntil("the draft rules") { keeper.states.first?.source == .preview }
            #expect(keeper.states.first?.isAwaited == true)
            #expect(keeper.obstacles.first?.hasSuffix("has a draft in force, which does not count") == true)
            _ = try await keeper.endPreview(nil)
            await waitUntil("the draft is gone") { keeper.states.first?.source == .standard }
            #expect(keeper.states.first?.isAwaited == !redacts)
        }
        #expect(state.isAwaited == !redacts)
        #expect(state.lack == (redacts ? nil : "its version 3 redacts nothing"))
        #expect(log.contains { $0.text.description.hasPrefix("events are not read") })
        let (other, _) = try await open(document, required: [.document])
        #expect(!other.isAwaited)
    }

    @Test("a default file that has not expired is not reported")
    func currentDefault() async throws {
        let document = #"{"id": "GTM-1", "version": 3, "expires": "2121-01-01T00:00:00Z", "values": {}}"#
        let (state, log) = try await open(document, isSynchronised: true)
        #expect(state.problem == nil)
        #expect(!log.contains { $0.text.description.contains("expired") })
    }
}
