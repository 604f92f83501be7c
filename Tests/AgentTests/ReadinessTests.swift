import EventLoops
import Model
import TestKit
import Testing

@testable import Agent
@testable import Control

@Suite("Readiness of destinations", .timeLimit(.minutes(2)))
struct ReadinessTests {
    /// A report of one destination in a state, with events that wait or without.
    private func report(_ state: DestinationStateName, queued: Int) -> StatusReport {
        var report = SampleReport.healthy
        report.destinations[0].state = state
        report.destinations[0].lanes = [SampleReport.lane(.normal, accepted: 10, queued: queued)]
        return report
    }

    /// The status code and the text of an answer.
    private func answer(_ report: StatusReport, _ path: String) throws -> (status: Int, text: String) {
        let response = try #require(report.readiness.answer(path))
        guard case .bytes(let bytes) = response.body else { return (response.status, "") }
        return (response.status, String(decoding: bytes, as: UTF8.self))
    }

    @Test(
        "a destination is ready while it delivers or has nothing to do",
        arguments: DestinationStateName.allCases)
    func states(_ state: DestinationStateName) throws {
        let fails: Set<DestinationStateName> = [.held, .breakerOpen, .offline, .waitingForRetry, .retryAfter]
        let idle = try answer(report(state, queued: 0), "/readyz/main")
        #expect(idle.status == (fails.contains(state) ? 503 : 200), "\(idle)")
        let busy = try answer(report(state, queued: 3), "/readyz/main")
        #expect(busy.status == (state == .active ? 200 : 503), "\(busy)")
        for found in [idle, busy] {
            #expect(found.text.hasPrefix(found.status == 200 ? "ready; main: " : "not ready; main: "))
            #expect(found.text.count { $0 == "\n" } == 1)
        }
        let all = try answer(report(state, queued: 3), "/readyz")
        #expect(all.status == 200)
        #expect(all.text.hasPrefix("ready; failing: main ") == fails.contains(state), "\(all)")
    }

    @Test("readiness says since when and why, without the receiver's words")
    func reasons() throws {
        var report = SampleReport.failing
        report.destinations[0].lastFailure?.failure = Failure(
            kind: .status, status: 503, message: "answered 503", excerpt: "Table default.events doesn't exist"
        )
        let since = report.now - .seconds(11_520)
        #expect(
            try answer(report, "/readyz") == (
                503,
                "not ready; failing: main since \(since)\n"
                    + "- main: nothing was acknowledged for 3h12m although 12,431 events wait: answered 503\n"
            ))
        let one = try answer(report, "/readyz/main")
        #expect(one.status == 503)
        #expect(
            one.text.hasPrefix(
                "not ready; main: failing for 3h12m, next try in 41s: 503; 12,431 waiting (3 critical)")
        )
        #expect(!one.text.contains("Table"))
        // Without a route the last failure is an older one.
        report.destinations[0].state = .offline
        report.destinations[0].since = nil
        #expect(try answer(report, "/readyz").text.hasPrefix("not ready; failing: main (no route)\n"))
        // Between two attempts it counts as active; the last failure is all that is known.
        report.destinations[0].state = .active
        report.destinations[0].since = nil
        #expect(try answer(report, "/readyz/main").status == 503)
        let last = report.now - .seconds(800)
        #expect(
            try answer(report, "/readyz").text.hasPrefix("not ready; failing: main (last failure \(last))\n"))
    }

    @Test("a destination that stands still is not ready, whatever its state")
    func standstill() throws {
        var report = report(.active, queued: 3)
        #expect(try answer(report, "/readyz/main").status == 200)
        report.standingStill = ["main"]
        #expect(try answer(report, "/readyz/main").status == 503)
    }

    @Test("the answers of thirty destinations over HTTP: ten fail, and the agent is ready")
    func overHTTP() async throws {
        var report = SampleReport.healthy
        report.destinations = (1...30).map { number in
            var destination = SampleReport.healthy.destinations[0]
            destination.name = "d\(number)"
            destination.state = number <= 10 ? .waitingForRetry : .active
            destination.since = number <= 10 ? report.now - .seconds(60) : nil
            return destination
        }
        let readiness = report.readiness
        try await withLoop { loop in
            let server = StatsServer(on: loop, readiness: { readiness })
            let address = "http://127.0.0.1:\(try await server.start())"
            func get(_ path: String) throws -> String {
                try runShell("curl -s --max-time 20 -w '%{http_code}' '\(address)\(path)'").output
            }
            let all = try get("/readyz")
            #expect(all.hasPrefix("ready; failing: d1 since ") && all.hasSuffix("\n200"), "\(all)")
            #expect(all.split(separator: " since ").count == 11, "\(all)")
            #expect(try get("/readyz/d10").hasSuffix("\n503"))
            #expect(try get("/readyz/d11").hasSuffix("\n200"))
            #expect(try get("/readyz/d31").hasSuffix(", d29, d30\n404"))
            await server.stop()
        }
        #expect(
            StatusText(report).screen.contains(
                ": ready, 10 of 30 destinations failing: d1, d2, d3 and 7 more\n"))
    }
}
