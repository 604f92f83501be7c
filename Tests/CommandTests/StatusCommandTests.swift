import Control
import EventLoops
import Metrics
import Model
import TestKit
import Testing

@testable import Agent
@testable import spoolship

/// An agent's control socket that answers what a test wants.
final class FakeAgent {
    let directory: TemporaryDirectory
    let configuration: String
    private let loop: EventLoop
    private let server: ControlServer

    init(_ routes: ControlRoutes) async throws {
        directory = try TemporaryDirectory()
        configuration = "\(directory.path)/spoolship.toml"
        try writeFile(configuration, "[control]\nsocket = \"\(directory.path)/control.sock\"\n")
        loop = try EventLoop(name: "fake-agent")
        try loop.start()
        let socket = "\(directory.path)/control.sock"
        server = try ControlServer(on: loop, socket: socket, routes: routes)
        try await server.start()
    }

    func stop() async {
        await server.stop()
        loop.stop()
    }
}

/// The routes of an agent that stands so.
private func routes(of report: StatusReport) -> ControlRoutes {
    var routes = ControlRoutes()
    routes.addStatus { report }
    return routes
}

@Suite("status", .timeLimit(.minutes(1)))
struct StatusCommandTests {
    private var report: StatusReport {
        let now = Timestamp(milliseconds: 1_795_168_800_000)
        var report = StatusReport(started: now - .seconds(60), now: now)
        report.version = "1.0.0"
        var main = StatusReport.Destination(name: "main", state: .held)
        main.lastFailure = (
            Failure(kind: .status, status: 401, message: "401 Unauthorized"), now - .seconds(5)
        )
        report.destinations = [main]
        report.obstacles = ["main is held"]
        return report
    }

    @Test("a report for strangers has no messages of receivers")
    func withoutAnswers() {
        let text = DiagnoseReport.withoutAnswers(
            "main: held\n  it says: no: SECRET\n  1 event lost; it says: a: SECRET\n{\n  \"answer\": \"no: \\\"SECRET\\\"\",\n}"
        )
        #expect(
            !text.contains("SECRET")
                && text.hasPrefix(
                    "main: held\n  it says: (not shown)\n  1 event lost; it says: (not shown)\n")
        )
        #expect(text.contains("  \"answer\": (not shown)\n}"))
    }

    @Test("status prints text or JSON, and its exit code says whether the agent is ready")
    func status() async throws {
        let json = report.json
        let agent = try await FakeAgent(routes(of: report))
        let (code, kept) = KeptConsole.run("status", "--config", agent.configuration)
        #expect(code == .negative)
        let held = "main: held: 401 Unauthorized; fix it or its settings, then reload; nothing waits"
        #expect(kept.output.contains(held))
        let (_, asJSON) = KeptConsole.run("status", "--json", "--config", agent.configuration)
        #expect(try JSONValue(parsing: asJSON.output) == json)
        let (_, quiet) = KeptConsole.run("status", "-q", "--config", agent.configuration)
        #expect(quiet.output == "")
        for isEnabled in [true, false] {
            var ready = report
            ready.obstacles = []
            ready.isEnabled = isEnabled
            let other = try await FakeAgent(routes(of: ready))
            // Disabled, it deletes what comes: no health check should pass over that.
            #expect(
                KeptConsole.run("status", "-q", "--config", other.configuration).0
                    == (isEnabled ? .success : .negative)
            )
            await other.stop()
        }
        await agent.stop()
        let (gone, message) = KeptConsole.run("status", "--config", agent.configuration)
        #expect(gone == .unreachable)
        #expect(message.errorOutput.contains("is it running?"))
    }

    @Test("a refusal of the agent becomes one line and an exit code")
    func refusal() async throws {
        var routes = ControlRoutes()
        routes.add("GET", "/v1/status") { _ in
            ControlRefusal(503, "starting", "the agent is starting").response
        }
        let agent = try await FakeAgent(routes)
        let (code, kept) = KeptConsole.run("status", "--config", agent.configuration)
        #expect(code == .temporaryFailure)
        #expect(kept.errorOutput == "spoolship: the agent is starting\n")
        await agent.stop()
    }
}
