import EventLoops
import Glibc
import Testing

extension EndToEnd {
    @Suite("Bad input")
    struct BadInputTests {
        @Test(
            "lines that are invalid JSON, invalid UTF-8 or too long are quarantined, and their neighbours arrive"
        )
        func badLines() throws {
            let bench = try Workbench()
            bench.settings["spool.max_event_size"] = "\"2KiB\""
            try bench.startReceiver()
            try bench.startAgent()
            func good(_ number: Int) -> String {
                #"{"name":"good","properties":{"key":"e\#(number)"}}"# + "\n"
            }
            let bad: [[UInt8]] = [
                Array("this is not JSON\n".utf8),
                Array(#"{"name":"half"#.utf8) + [0xC3, 0x28] + Array("\"}\n".utf8),
                Array(#"{"name":"\#(String(repeating: "x", count: 3000))"}"#.utf8) + [0x0A],
            ]
            var lines = Array(good(0).utf8)
            for (number, line) in bad.enumerated() { lines += line + Array(good(number + 1).utf8) }
            try bench.append(lines, to: "app.jsonl")
            try bench.waitUntilDelivered(7, quarantined: 3)
            try bench.expectOnce(Set((0...3).map { "e\($0)" }), member: "key")
            let figures = try bench.figures()
            for reason in ["not_json", "not_utf8", "too_long"] {
                #expect(figures.value("spoolship_quarantined_total{reason=\"\(reason)\"}") == 1, "\(reason)")
            }
            #expect(try bench.command("status").text.contains("3 in quarantine"))
            // What a line holds is the app's business, not the log's.
            #expect(!bench.agentLog.contains("xxxx") && !bench.agentLog.contains("this is not"))
            #expect(try bench.stopAgent() == 0)
        }

        @Test("the log contains no content of events at any level, be they good, bad or rejected")
        func fault27_eventContentStaysOutOfTheLog() throws {
            let bench = try Workbench()
            bench.settings["agent.log"] = "\"verbose\""
            try bench.startReceiver("--marker", "private-rejected")
            try bench.startAgent()
            try bench.append(
                #"{"name":"private-name","properties":{"key":"private-good"}}"# + "\n", to: "app.jsonl")
            try bench.append("private-bad line\n", to: "app.jsonl")
            try bench.waitUntilDelivered(2, quarantined: 1)
            try bench.append(#"{"name":"x","properties":{"key":"private-rejected"}}"# + "\n", to: "app.jsonl")
            try wait(.seconds(30), "a dead letter", every: .milliseconds(100)) {
                try bench.figures().total("spoolship_deliveries_dead_lettered_total") == 1
            }
            #expect(
                bench.agentLog.contains("quarantined") && !bench.agentLog.contains("private-"),
                "\(bench.agentLog)")
            #expect(try bench.stopAgent() == 0)
        }

        @Test(
            "run and check end with 78 and list all five mistakes with their places",
            arguments: ["run", "check"])
        func fault22_fiveMistakes(command: String) throws {
            let bench = try Workbench()
            let mistakes = [
                "[agent]", "state_directroy = \"/x\"", "[dispatch]", "interval = 10000",
                "batch_events = \"many\"",
                "[queue]", "max_size = \"1KiB\"", "[retry]", "jitter = 2",
            ]
            try write(mistakes.map { $0 + "\n" }.joined(), to: bench.configuration)
            let (code, text) = try bench.command(command)
            #expect(code == 78)
            for place in ["2:1", "4:12", "5:16", "7:12", "9:10"] {
                #expect(text.contains("\(bench.configuration):\(place): "), "\(place) in:\n\(text)")
            }
            #expect(text.contains("did you mean state_directory?"))
        }

        @Test("a receiver with an untrusted certificate gets nothing, until the CA file is right")
        func wrongCertificate() throws {
            let bench = try Workbench()
            try bench.startReceiver()
            // The authority of another receiver.
            let other = try RunningProgram(
                spoolship, ["receive", "--listen", "127.0.0.1:0", "--certificates", "\(bench.path)/other"],
                output: "\(bench.path)/other.log")
            try wait(.seconds(30), "another authority") { access("\(bench.path)/other/ca.pem", F_OK) == 0 }
            other.kill9()
            let right = bench.settings["destination.tls.ca_file"]
            bench.settings["destination.tls.ca_file"] = "\"\(bench.path)/other/ca.pem\""
            bench.settings["retry.intervals"] = #"["500ms"]"#
            try bench.startAgent()
            try bench.append(keyed(0..<120), to: "app.jsonl")
            let advice = "name it in tls.ca_file"
            try wait(.seconds(30), "a log line that says what to do: \(bench.agentLog)") {
                bench.agentLog.contains(advice)
            }
            #expect(bench.agentLog.contains("certificate"))
            var status = ""
            try wait(.seconds(30), "a status that says what to do: \(status)") {
                status = (try? bench.command("status").text) ?? ""
                return status.contains("certificate") && status.contains(advice)
            }
            #expect(try bench.figures().total("spoolship_deliveries_acknowledged_total") == 0)
            #expect(bench.receiverFigure("requests") == 0)
            try bench.expectBalance()
            #expect(try bench.stopAgent() == 0)
            bench.settings["destination.tls.ca_file"] = right
            try bench.startAgent()
            try bench.waitUntilDelivered(120)
            try bench.expectOnce(Set((0..<120).map { "e\($0)" }), member: "key")
        }

        @Test("a stats port in use stops the start with an error that names it, and nothing is lost")
        func portInUse() throws {
            let bench = try Workbench()
            try bench.startReceiver()
            try bench.append(keyed(0..<60), to: "app.jsonl")
            let right = bench.settings["stats.listen"]
            bench.settings["stats.listen"] = "\"127.0.0.1:\(bench.receiverPort)\""
            try bench.startAgent(waits: false)
            #expect(try bench.agent?.exit() == 75)
            let log = bench.agentLog
            #expect(
                log.contains("cannot listen on 127.0.0.1:\(bench.receiverPort): another program has it"),
                "\(log)")
            #expect(log.contains("stats.listen"), "\(log)")
            bench.settings["stats.listen"] = right
            try bench.startAgent()
            try bench.waitUntilDelivered(60)
            try bench.expectOnce(Set((0..<60).map { "e\($0)" }), member: "key")
        }

        @Test(
            "a state directory that is not writable ends the start with 77 and a remedy",
            arguments: [true, false])
        func stateDirectoryNotWritable(isThere: Bool) throws {
            let bench = try Workbench()
            let state = isThere ? bench.state : "\(bench.path)/closed/state"
            let closed = isThere ? state : "\(bench.path)/closed"
            if !isThere { try #require(mkdir(closed, 0o755) == 0) }
            try #require(chmod(closed, 0o555) == 0 && chmod(bench.path, 0o755) == 0)
            bench.settings["agent.state_directory"] = "\"\(state)\""
            try bench.configure()
            var words = ["\(bench.path)/spoolship", "run", "--config", bench.configuration]
            // The build may lie where nobody else may go.
            try #require(try run("cp", [spoolship, words[0]]).code == 0)
            if getuid() == 0 {
                words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] + words
            }
            let (code, text) = try run(words[0], Array(words.dropFirst()))
            #expect(code == 77, "\(text)")
            #expect(text.contains(state) && text.contains("Permission denied"), "\(text)")
            #expect(text.contains("run this as the agent's user"), "\(text)")
        }

        @Test(
            "a second agent with the same state directory or spool ends with 75 and the reason; the first continues"
        )
        func secondAgent() throws {
            let bench = try Workbench()
            try bench.startReceiver()
            try bench.startAgent()
            let second = try Workbench()
            second.settings["agent.state_directory"] = "\"\(bench.state)\""
            try second.startAgent(waits: false)
            #expect(try second.agent?.exit() == 75)
            let first = try #require(bench.agent?.process)
            #expect(second.agentLog.contains("(pid \(first)) uses \(bench.state)"), "\(second.agentLog)")
            // The same spool with a state directory of its own: it would ship the events elsewhere and remove them.
            let third = try Workbench()
            third.settings["spool.directory"] = "\"\(bench.spool)\""
            try third.startReceiver()
            try third.startAgent(waits: false)
            #expect(try third.agent?.exit() == 75)
            #expect(
                third.agentLog.contains("another agent reads the spool \(bench.spool)"), "\(third.agentLog)")
            // A group that is not there does not come by starting again, as systemd would.
            let fourth = try Workbench()
            fourth.settings["control.group"] = "\"no-such-group\""
            try fourth.startReceiver()
            try fourth.startAgent(waits: false)
            #expect(try fourth.agent?.exit() == 78)
            #expect(fourth.agentLog.contains("there is no group no-such-group"), "\(fourth.agentLog)")
            try bench.append(keyed(0..<5), to: "app.jsonl")
            try bench.waitUntilDelivered(5)
        }
    }
}

/// Events with keys of their own, a line each.
func keyed(_ numbers: Range<Int>) -> String {
    numbers.map { #"{"name":"load","properties":{"key":"e\#($0)"}}"# + "\n" }.joined()
}
