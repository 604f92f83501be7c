import Control
import EventLoops
import Model
import Queue
import Spool
import TestKit
import Testing

@testable import Agent

@Suite("Status")
struct StatusTextTests {
    @Test("one line says why nothing is sent, what waits, and how long there is room")
    func oneLineSaysWhy() throws {
        let report = SampleReport.failing
        #expect(
            StatusText(report).destinationLine(report.destinations[0])
                == "main: failing for 3h12m, next try in 41s: 503; 12,431 waiting (3 critical), oldest 3h12m, "
                + "cap reached in about 5h")
    }

    @Test("the texts are those in the stored screens", arguments: ["healthy", "failing", "everything"])
    func screens(name: String) throws {
        let report =
            switch name {
            case "healthy": SampleReport.healthy
            case "failing": SampleReport.failing
            default: SampleReport.everything
            }
        let difference = try GoldenFile("Tests/AgentTests/Fixtures/status-\(name).txt")
            .difference(from: StatusText(report).screen)
        #expect(difference == nil)
    }

    @Test("apps are listed by activity, with the time of their last event")
    func apps() {
        #expect(
            StatusText(SampleReport.everything).apps == """
                app       events  records     bytes  quarantined    last
                shop   8,000,000        0   2.2 GiB            0  2s ago
                nginx          3  313,758  86.8 MiB            3  2h ago
                idle           0        0       0 B            0       –

                """)
        #expect(StatusText(SampleReport.healthy).apps == "no app has written anything since the start\n")
    }

    @Test(
        "the line of every state names the state or the remedy", arguments: DestinationStateName.allCases
    )
    func everyState(state: DestinationStateName) {
        var report = SampleReport.failing
        report.destinations[0].state = state
        report.destinations[0].lastFailure = nil
        report.destinations[0].since = nil
        report.destinations[0].nextAttempt = nil
        let line = StatusText(report).destinationLine(report.destinations[0])
        #expect(line.hasPrefix("main: "))
        #expect(line.hasSuffix("oldest 3h12m, cap reached in about 5h") == (state != .active))
        #expect(!line.contains("nil") && !line.contains("Optional"))
    }

    @Test("how long a destination fails is said without a reason, too")
    func durationWithoutReason() {
        var report = SampleReport.failing
        report.destinations[0].lastFailure = nil
        for state: DestinationStateName in [.waitingForRetry, .breakerOpen] {
            report.destinations[0].state = state
            #expect(
                StatusText(report).destinationLine(report.destinations[0]).hasPrefix(
                    "main: failing for 3h12m, next try in 41s; "))
        }
        report.destinations[0].since = nil
        #expect(
            StatusText(report).destinationLine(report.destinations[0]).hasPrefix(
                "main: failing since before the agent's start, next try in 41s; "))
    }

    @Test("only a failure that the destination itself reported is shortened to its status")
    func whoAnswered() {
        var report = SampleReport.failing
        func line(_ message: String, _ state: DestinationStateName) -> String {
            report.destinations[0].state = state
            report.destinations[0].lastFailure?.failure = Failure(
                kind: .status, status: 500, message: message)
            return StatusText(report).destinationLine(report.destinations[0])
        }
        let token = "no credentials: the token endpoint answered 500 when asked for a bearer token"
        #expect(
            line("answered 500", .waitingForRetry).hasPrefix(
                "main: failing for 3h12m, next try in 41s: 500;"))
        #expect(
            line(token, .waitingForRetry).hasPrefix(
                "main: failing for 3h12m, next try in 41s: \(token);"))
        #expect(
            line(token, .retryAfter).hasPrefix(
                "main: asked to wait (\(token)) for 3h12m, next try in 41s;"))
        #expect(
            line("answered 429: too many requests", .retryAfter).contains(
                "asked to wait (429: too many requests)"))
    }

    @Test("the JSON contains the whole report")
    func json() throws {
        let difference = try GoldenFile("Tests/AgentTests/Fixtures/status-everything.json")
            .difference(from: SampleReport.everything.json.pretty + "\n")
        #expect(difference == nil)
    }

    @Test("colours change nothing but colours")
    func colours() {
        let marks = StyleMarks()
        let coloured = marks.resolved(StatusText(SampleReport.everything, marks: marks).screen)
        #expect(coloured.contains("\u{1B}[1mmain\u{1B}[0m"))
        let plain = ["0", "1", "31", "32", "33"].reduce(coloured) { $0.replacing("\u{1B}[\($1)m", with: "") }
        #expect(plain == StatusText(SampleReport.everything).screen)
    }

    @Test("control characters in names reach neither the text, nor the page, nor the coloured text")
    func hostileNames() {
        var report = SampleReport.failing
        let hostile = "x\u{1B}[31m\u{7}\u{9B}2J\u{202E}\ny<\(String(repeating: "0", count: 32)) 31>"
        report.spool.complaints = ["\(hostile).json cannot be read"]
        report.spool.secondTries = ["permission": 1]
        report.spool.secondTryPaths = ["/var/spool/\(hostile)"]
        report.spool.unfinishedLines = [
            .init(app: hostile, path: "/var/spool/\(hostile)", since: report.now - .seconds(300), bytes: 8)
        ]
        report.obstacles = [hostile]
        report.destinations[0].setAside = [hostile: 3]
        let marks = StyleMarks()
        let page = StatusPage(report, history: StatusPageTests.history(failing: true)).html
        for text in [StatusText(report).screen, page, StatusText(report, marks: marks).screen] {
            #expect(text.unicodeScalars.allSatisfy { PrintableText.isPrintable($0) || $0 == "\n" })
            #expect(text.contains("x\\u001b[31m\\u0007\\u009b2J\\u202e\\u000ay"))
            // A line feed in a name does not begin a line, which could be any.
            #expect(!text.contains("\ny"))
        }
        let shown = marks.resolved(StatusText(report, marks: marks).screen)
        let own = ["0", "1", "31", "33"].reduce(shown) { $0.replacing("\u{1B}[\($1)m", with: "") }
        #expect(!own.contains("\u{1B}") && own.contains("<\(String(repeating: "0", count: 32)) 31>"))
    }

    /// Thirty destinations of which the last two fail for some minutes; the agent as a whole is ready.
    private var thirty: StatusReport {
        var report = SampleReport.healthy
        report.destinations = (1...30).map { number in
            var destination = SampleReport.healthy.destinations[0]
            destination.name = "d\(number)"
            return destination
        }
        for index in 28...29 {
            report.destinations[index].state = .waitingForRetry
            report.destinations[index].inFlight = 0
            report.destinations[index].since = report.now - .seconds(180)
            report.destinations[index].lastFailure = (
                Failure(kind: .status, status: 503, message: "answered 503"), report.now - .seconds(10)
            )
        }
        return report
    }

    @Test("failing destinations are listed first and at once, even while the agent is ready")
    func troubles() {
        let report = thirty
        let screen = StatusText(report).screen
        #expect(screen.contains(": ready, 2 of 30 destinations failing: d29, d30\n"))
        let line = "failing for 3m: 503; 37 waiting, oldest 4s"
        #expect(screen.contains("\n\nd29: \(line)\nd30: \(line)\nd1: active"))
        let page = StatusPage(report, history: StatusPageTests.history(failing: false)).html
        #expect(page.contains("<p class=\"pill fair\">Ready, 2 of 30 destinations failing: d29, d30</p>"))
        #expect(page.contains("<li>d29: failing for 3m: 503; 37 events wait, the oldest for 4s</li>"))
        #expect(page.contains("<span class=\"pill fair\">Retrying</span> for 3m: 503</p>"))
        var held = report
        held.obstacles = ["d29 is held: answered 503"]
        held.standingStill = ["d29"]
        let words = StatusText(held)
        #expect(DestinationTroubles(held).sentences(reason: words.reason).map { $0.prefix(4) } == ["d30:"])
        #expect(DestinationTroubles(SampleReport.healthy).summary == nil)
    }

    @Test("thirty destinations have one line and one row each; a single one is shown in detail on request")
    func manyDestinations() {
        let words = StatusText(thirty)
        let lines = words.screen.split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.count { $0.hasPrefix("d") && $0.contains(":") } == 30)
        #expect(lines.count < 75)
        #expect(words.screen.contains("\nd30     8,313,758     8,313,721       37\n"))
        #expect(words.screen.contains("`spoolship status --destination NAME`"))
        let one = words.screen(of: "d29") ?? ""
        #expect(one.hasPrefix("d29: failing for 3m: 503") && one.contains("critical"))
        #expect(one.contains("https://logs.example:8443"))
        #expect(words.screen(of: "d31") == nil)
    }

    @Test("if many destinations fail, their answers are left for one that is shown in detail")
    func manyAnswers() {
        var report = thirty
        func fail(_ indices: Range<Int>) {
            for index in indices {
                report.destinations[index].name = "the-warehouse-of-the-analytics-team-\(index)"
                report.destinations[index].state = .waitingForRetry
                report.destinations[index].lastFailure = (
                    Failure(kind: .status, status: 503, message: "answered 503", excerpt: "no table"),
                    report.now
                )
            }
        }
        fail(0..<4)
        #expect(StatusText(report).screen.contains("  it says: no table\n"))
        fail(4..<18)
        #expect(!StatusText(report).screen.contains("it says"))
        let name = report.destinations[17].name
        #expect(StatusText(report).screen(of: name)?.contains("  it says: no table\n") == true)
        // The ledger fits into a terminal of 80 columns, whatever the names.
        let rows = StatusText(report).screen.split(separator: "\n").drop { !$0.hasPrefix("ledger") }.prefix(
            31)
        #expect(rows.allSatisfy { $0.count <= 80 }, "\(rows.joined(separator: "\n"))")
    }

    @Test("of many destinations the page leaves out the rows of the ledger that are all zeros")
    func longLedger() {
        var report = thirty
        for index in 3...29 { report.destinations[index].lanes.removeAll { $0.priority == .critical } }
        func page() -> String {
            StatusPage(report, history: StatusPageTests.history(failing: false)).html
        }
        #expect(page().contains("d30, normal") && !page().contains("d30, critical"))
        #expect(page().contains("d1, critical"))
        #expect(page().contains("<p class=\"quiet\">27 rows without events are left out.</p>"))
        report.destinations.removeFirst(25)
        #expect(page().contains("d30, critical") && !page().contains("left out"))
    }

    @Test("a destination that failed and is tried again is not green")
    func failingColour() throws {
        var report = SampleReport.healthy
        report.destinations[0].lastFailure = (
            Failure(kind: .status, status: 503, message: "answered 503"), report.now
        )
        report.destinations[0].lastAcknowledged = report.now - .seconds(60)
        let marks = StyleMarks()
        #expect(
            marks.resolved(StatusText(report, marks: marks).screen).contains("\u{1B}[33mfailed 0s ago"),
            "\(StatusText(report).screen)")
    }

    @Test("a receiver's own message is in status and its JSON, but not in the public line or on the page")
    func receiversWords() throws {
        var report = SampleReport.failing
        report.destinations[0].lastFailure?.failure = Failure(
            kind: .status, status: 503, message: "503", excerpt: "Table default.events doesn't exist")
        #expect(StatusText(report).screen.contains("\n  it says: Table default.events doesn't exist\n"))
        #expect(report.json.pretty.contains("Table default.events doesn't exist"))
        #expect(!StatusText(report).destinationLine(report.destinations[0]).contains("Table"))
        let page = StatusPage(report, history: StatusPageTests.history(failing: true)).html
        #expect(!page.contains("Table default"))
        // Once it takes events again, an old answer is no news.
        report.destinations[0].state = .active
        report.destinations[0].lastAcknowledged = report.now
        #expect(!StatusText(report).screen.contains("it says"))
        for state: DestinationStateName in [.paused, .networkOff, .disabled, .offline, .orphaned, .stopping] {
            report.destinations[0].state = state
            #expect(!StatusText(report).screen.contains("it says"), "\(state)")
        }
        report.destinations[0].state = .waitingForRetry
        #expect(StatusText(report).screen.contains("it says"))
    }

    @Test("a ledger that does not balance is shown as it is")
    func imbalance() {
        var report = SampleReport.healthy
        report.destinations[0].lanes[0].ledger.lost += 1
        #expect(StatusText(report).screen.contains("does not balance"))
        #expect(!StatusText(SampleReport.healthy).screen.contains("does not balance"))
    }

    @Test("figures are formatted for people")
    func figures() {
        #expect(
            [0, 7, 999, 1000, 1_234_567, -1234].map(HumanText.count) == [
                "0", "7", "999", "1,000", "1,234,567", "-1,234",
            ])
        #expect(
            [0, 1023, 1024, 3_565_158, 1_099_511_627_776].map(HumanText.bytes)
                == ["0 B", "1023 B", "1 KiB", "3.4 MiB", "1 TiB"])
        let seconds: [Int64] = [-5, 0, 59, 60, 61, 3600, 11_520, 90_000, 86_400 * 25]
        #expect(
            seconds.map { HumanText.duration(.seconds($0)) }
                == ["0s", "0s", "59s", "1m", "1m1s", "1h", "3h12m", "1d1h", "25d"])
        #expect(
            [17_976, 30, 100, 86_400 * 3].map { HumanText.roughly(.seconds($0)) } == [
                "5h", "30s", "1m", "3d",
            ])
        #expect([0, 0.44, 12, 1203.7].map(HumanText.rate) == ["0/s", "0.4/s", "12/s", "1,204/s"])
    }
}
