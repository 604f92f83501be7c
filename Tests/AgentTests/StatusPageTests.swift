import Control
import EventLoops
import Glibc
import Model
import TestKit
import Testing

@testable import Agent

@Suite("Status page", .serialized, .timeLimit(.minutes(5)))
struct StatusPageTests {
    /// An hour with a morning rush, or one in which the destination fails after a third.
    static func history(failing: Bool) -> StatusHistory {
        var history = StatusHistory()
        var accepted = 0
        var acknowledged = 0
        for minute in 0...61 {
            let rate = 80 + 40 * (minute % 13) + (minute > 20 && minute < 34 ? 119 : 0)
            accepted += rate
            acknowledged = failing && minute > 20 ? acknowledged : accepted - rate / 4
            let queued = accepted - acknowledged
            history.add(
                .init(
                    at: SampleReport.now - .seconds((61 - minute) * 60), accepted: accepted,
                    acknowledged: acknowledged,
                    queued: queued, bytes: queued * 337))
        }
        return history
    }

    static let states = ["healthy", "failing", "everything"]

    static func html(_ state: String) -> String {
        switch state {
        case "healthy": StatusPage(SampleReport.healthy, history: history(failing: false)).html
        case "failing": StatusPage(SampleReport.failing, history: history(failing: true)).html
        default: StatusPage(SampleReport.everything, history: StatusHistory()).html
        }
    }

    /// Serves a page as the agent does, and runs Chromium on it.
    private func chromium(_ html: String, _ arguments: String) async throws -> String {
        try await withLoop { loop in
            let server = StatsServer(on: loop, page: { html })
            let port = try await server.start()
            let home = try TemporaryDirectory()
            let command =
                "HOME='\(home.path)' timeout 90 chromium --headless --no-sandbox --disable-gpu --hide-scrollbars "
                + "--user-data-dir='\(home.path)' --disable-dev-shm-usage \(arguments) http://127.0.0.1:\(port)/ 2>/dev/null"
            let output = try runShell(command).output
            await server.stop()
            return output
        }
    }

    @Test("the page shows throughput, backlog and the reason of a standstill in a browser")
    func textInABrowser() async throws {
        let dom = try await chromium(StatusPageTests.html("failing"), "--dump-dom")
        for text in [
            "<title>Not ready: Spoolship on web3</title>", "Needs attention",
            "main: nothing was acknowledged for 3h12m although 12,431 events wait: answered 503",
            "for 3h12m, next try in 41s: 503",
            "<dt>Waiting, critical</dt><dd>3</dd>", "<dt>Waiting, normal</dt><dd>12,428</dd>",
            "<dt>Cap reached in</dt><dd>about 5h</dd>", "Queue: 4 MiB of 10 MiB, 40 %",
            "aria-label=\"Deliveries, last hour: accepted ",
        ] {
            #expect(dom.contains(text), "\(text)")
        }
    }

    @Test("the page looks right when wide, on a phone and in the dark", arguments: states)
    func screenshots(state: String) async throws {
        let directory = try TemporaryDirectory()
        let looks = [
            ("", "--window-size=1200,1250", (1200, 1250)), ("-phone", "--window-size=500,2400", (500, 2400)),
            ("-dark", "--window-size=1200,1250 --blink-settings=preferredColorScheme=0", (1200, 1250)),
        ]
        for (look, arguments, size) in looks where look.isEmpty || state == "failing" {
            let path = "\(directory.path)/\(state)\(look).png"
            _ = try await chromium(StatusPageTests.html(state), "--screenshot='\(path)' \(arguments)")
            let header = try runShell("head -c 24 '\(path)' | od -An -tu1 -v").output
                .split(whereSeparator: { " \n".contains($0) }).compactMap { Int($0) }
            try #require(header.count == 24)
            #expect(Array(header[1...3]) == Array("PNG".utf8).map { Int($0) })
            #expect(header[18] * 256 + header[19] == size.0)
            #expect(header[22] * 256 + header[23] == size.1)
        }
    }

    @Test("the page loads nothing from other servers and runs no script", arguments: states)
    func selfContained(state: String) {
        let html = StatusPageTests.html(state)
        for word in ["<script", "@import", "url(", "onload="] { #expect(!html.contains(word)) }
        for attribute in ["href=\"http", "href=\"//", "src=", "action="] {
            #expect(!html.contains(attribute))
        }
        #expect(html.utf8.count < 40_000)
    }

    @Test("names, messages and addresses cannot become markup")
    func hostileText() {
        var report = SampleReport.everything
        let hostile = "<img src=x onerror=alert(1)>\"'&"
        report.host = hostile
        report.version = hostile
        report.obstacles = [hostile]
        report.reloadProblem = hostile
        report.restartProblem = hostile
        report.spool.complaints = [hostile]
        report.spool.waits = hostile
        report.interval = hostile
        report.pauseTokens = [hostile]
        report.containers[0].id = hostile
        report.containers[0].problem = hostile
        report.destinations[0].name = hostile
        report.destinations[0].address = hostile
        report.destinations[1].lastFailure?.failure = Failure(kind: .status, message: hostile)
        report.destinations[2].state = .paused
        let html = StatusPage(report, history: StatusPageTests.history(failing: true)).html
        #expect(!html.contains("<img"))
        #expect(html.split(separator: "&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;").count > 10)
    }

    @Test("the page works with a screen reader: one main heading, sections, labelled plots, table heads")
    func accessibility() {
        let html = StatusPageTests.html("failing")
        func count(_ text: String) -> Int {
            html.split(separator: text, omittingEmptySubsequences: false).count - 1
        }
        #expect(count("<h1>") == 1)
        #expect(count("<main>") == 1)
        #expect(html.contains("<html lang=\"en\">"))
        #expect(count("<svg ") == count("role=\"img\" aria-label=\""))
        #expect(count("<svg ") == 2)
        #expect(count("scope=\"row\"") == 2)
        #expect(count("scope=\"col\"") == 10)
        #expect(html.contains("<label for=\"fill\">") && html.contains("<meter id=\"fill\""))
    }

    @Test("without figures of the last hour the page says so")
    func emptyHistory() {
        let html = StatusPage(SampleReport.healthy, history: StatusHistory()).html
        #expect(html.contains("No figures yet"))
        #expect(!html.contains("<svg"))
    }
}
