import EventLoops
import Glibc
import TestKit
import Testing

extension EndToEnd {
    @Suite("Operations")
    struct OperatorTests {
        @Test("ac16: a pause survives a kill, drain names it as an obstacle, and after resume all arrives")
        func ac16_pauseAndDrain() throws {
            let bench = try Workbench()
            try bench.startReceiver()
            try bench.startAgent()
            #expect(try bench.command("pause").code == 0)
            try bench.append(keyed(0..<200), to: "app.jsonl")
            try wait(.seconds(30), "the events in the queue") {
                try bench.figures().total("spoolship_deliveries_queued") == 200
            }
            bench.killAgent()
            try bench.startAgent()
            let status = try bench.command("status").text
            #expect(status.contains("paused") && status.contains("200 waiting"), "\(status)")
            let refused = try bench.command("drain", "--timeout", "5s")
            #expect(refused.code == 75 && refused.text.contains("pause"), "\(refused)")
            #expect(bench.receiverFigure("events") == 0)
            #expect(try bench.command("resume").code == 0)
            let drained = try bench.command("drain", "--timeout", "30s")
            #expect(drained.code == 0, "\(drained)")
            #expect(bench.receiverFigure("events") == 200)
            try bench.waitUntilDelivered(200)
        }

        @Test("of files removed while the agent is stopped those are named that were not read to their ends")
        func removedWhileStopped() throws {
            let bench = try Workbench()
            try bench.startReceiver()
            try bench.startAgent()
            // Open files stay where they are: the agent waits for the end of the last line.
            let writers = ["half.jsonl", "whole.jsonl"].map {
                open("\(bench.spool)/\($0)", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o640)
            }
            let half = #"{"name":"Sold","#
            try bench.append(keyed(0..<20), to: "half.jsonl")
            try bench.append(half, to: "half.jsonl")
            try bench.append(keyed(20..<40), to: "whole.jsonl")
            try bench.waitUntilDelivered(40)
            try wait(.seconds(30), "the half line to be seen") {
                try bench.figures().value("spoolship_spool_lag_bytes") == half.utf8.count
            }
            #expect(try bench.stopAgent() == 0)
            for writer in writers { close(writer) }
            for name in ["half.jsonl", "whole.jsonl"] { #expect(unlink("\(bench.spool)/\(name)") == 0) }
            try bench.startAgent()
            // A copy of it, or another name, is waited for.
            try wait(.seconds(120), "the loss to be counted; \(bench.agentLog)") {
                try bench.figures().value("spoolship_spool_given_up_bytes_total") > 0
            }
            #expect(try bench.figures().value("spoolship_spool_given_up_bytes_total") == half.utf8.count)
            let lost = "\(half.utf8.count) B of \(bench.spool)/half.jsonl are lost"
            try wait(.seconds(30), "status to name the file") {
                try bench.command("status").text.contains(lost)
            }
            let status = try bench.command("status").text
            #expect(status.contains("while the agent was stopped"), "\(status)")
            #expect(!status.contains("whole.jsonl"), "\(status)")
            let log = bench.agentLog
            #expect(log.contains("file vanished while the agent was stopped, before it was read"), "\(log)")
            #expect(!log.contains("path=whole.jsonl"), "\(log)")
        }

        @Test("SIGHUP applies a repaired file without a restart, and a broken one not at all")
        func fault23_reload() throws {
            let bench = try Workbench()
            try bench.startReceiver()
            let right = bench.settings["destination.url"]
            let nobody = try freePort()
            bench.settings["destination.url"] = "\"https://127.0.0.1:\(nobody)/\""
            bench.settings["retry.intervals"] = #"["500ms"]"#
            bench.settings["retry.probe_interval"] = "\"1s\""
            try bench.startAgent()
            try bench.append(keyed(0..<120), to: "app.jsonl")
            try wait(.seconds(30), "a failed delivery") { bench.agentLog.contains("delivery failed") }

            bench.settings["destination.url"] = right
            bench.settings["dispatch.batch_events"] = "\"many\""
            try bench.configure()
            bench.agent?.send(SIGHUP)
            try wait(.seconds(30), "the refusal: \(bench.agentLog)") {
                bench.agentLog.contains("reload failed")
            }
            #expect(try bench.figures().value("spoolship_config_last_reload_successful") == 0)
            #expect(bench.receiverFigure("requests") == 0)

            bench.settings["dispatch.batch_events"] = "10"
            try bench.configure()
            bench.agent?.send(SIGHUP)
            try bench.waitUntilDelivered(120)
            #expect(bench.agentLog.contains("configuration reloaded"))
            try bench.expectOnce(Set((0..<120).map { "e\($0)" }), member: "key")
            #expect(try bench.stopAgent() == 0)
        }

        @Test(
            "with a spool that may not be mounted, an agent that has read before is not ready until it is read"
        )
        func newSpool() throws {
            let bench = try Workbench()
            try bench.startReceiver()
            try bench.startAgent()
            try bench.append(keyed(0..<10), to: "app.jsonl")
            try bench.waitUntilDelivered(10)
            #expect(try bench.stopAgent() == 0)
            let other = "\(bench.path)/other"
            try #require(mkdir(other, 0o755) == 0)
            bench.settings["spool.directory"] = "\"\(other)\""
            for _ in 0..<2 {
                try bench.startAgent()
                let status = try bench.command("status").text
                #expect(
                    status.contains(".spoolship is missing in it: is its file system mounted?"), "\(status)")
                #expect(try fetch("http://127.0.0.1:\(bench.statsPort)/readyz").status == 503)
                #expect(try bench.figures().value(#"spoolship_obstacles{of="agent"}"#) == 1)
                #expect(bench.agentLog.contains("the spool has no .spoolship"))
                #expect(access("\(other)/.spoolship", F_OK) != 0)
                bench.killAgent()
            }
            try bench.startAgent()
            try write(keyed(10..<20), to: "\(other)/app.jsonl")
            try bench.waitUntilDelivered(20)
            try wait(.seconds(30), "the agent to be ready") {
                try fetch("http://127.0.0.1:\(bench.statsPort)/readyz").status == 200
                    && access("\(other)/.spoolship/lock", F_OK) == 0
            }
        }

        @Test("without a destination the spool is not read; a reload with one delivers what waited")
        func noDestination() throws {
            let bench = try Workbench()
            try bench.startReceiver()
            let destination = bench.settings.filter { $0.key.hasPrefix("destination") }
            for key in destination.keys { bench.settings[key] = nil }
            try bench.append(keyed(0..<60), to: "app.jsonl")
            try bench.startAgent()
            #expect(bench.agentLog.contains("the spool is not read"), "\(bench.agentLog)")
            #expect(try bench.figures().value("spoolship_events_read_total") == 0)

            bench.settings.merge(destination) { $1 }
            try bench.configure()
            bench.agent?.send(SIGHUP)
            try bench.waitUntilDelivered(60)

            for key in destination.keys { bench.settings[key] = nil }
            try bench.configure()
            bench.agent?.send(SIGHUP)
            try wait(.seconds(30), "the refusal: \(bench.agentLog)") {
                bench.agentLog.contains("reload failed")
            }
            #expect(try bench.stopAgent() == 0)
        }

        @Test("a dead letter has its reason, and arrives when it is sent again to a repaired receiver")
        func deadLettersAreSentAgain() throws {
            let bench = try Workbench()
            // Quoted: an id of the agent's may have these three digits in it.
            try bench.startReceiver("--marker", #""e55""#)
            try bench.startAgent()
            try bench.append(keyed(0..<50), to: "app.jsonl")
            try bench.waitUntilDelivered(50)
            try bench.append(keyed(50..<100), to: "app.jsonl")
            try wait(.seconds(30), "a dead letter", every: .milliseconds(100)) {
                try bench.figures().total("spoolship_deliveries_dead_lettered_total") == 1
            }
            let list = try bench.command("dead-letters", "list")
            #expect(list.code == 0 && list.text.contains("400"), "\(list)")
            let show = try bench.command("dead-letters", "export")
            #expect(show.code == 0 && show.text.contains("\"e55\""), "\(show)")
            try bench.stopReceiver()
            try bench.startReceiver()
            let again = try bench.command("dead-letters", "retry")
            #expect(again.code == 0, "\(again)")
            try wait(.seconds(30), "the last event", every: .milliseconds(100)) {
                try bench.figures().total("spoolship_deliveries_acknowledged_total") == 100
            }
            try bench.expectBalance()
            #expect(try bench.figures().total("spoolship_deliveries_retried_total") == 1)
            try bench.expectOnce(Set((0..<100).map { "e\($0)" }), member: "key")
        }

        @Test("401 holds the destination until token_file is rotated, and the default log level reports both")
        func rotatedToken() throws {
            let bench = try Workbench()
            let token = "\(bench.path)/token"
            try write("old\n", to: token)
            bench.settings["agent.log"] = nil
            bench.settings["destination.token_file"] = "\"\(token)\""
            bench.settings["retry.probe_interval"] = "\"1h\""
            try bench.startReceiver("--fail", "401")
            try bench.startAgent()
            try bench.append(keyed(0..<20), to: "app.jsonl")
            try wait(.seconds(30), "the hold") { bench.agentLog.contains("destination is held") }
            try bench.stopReceiver()
            try bench.startReceiver()
            #expect(try bench.command("status").text.contains("held"))
            // As tools that rotate secrets do it: a new file under the old name.
            try write("new\n", to: "\(token).next")
            try #require(rename("\(token).next", token) == 0)
            try bench.waitUntilDelivered(20)
            #expect(bench.agentLog.contains("credentials have changed: trying the destination again"))
            #expect(bench.agentLog.contains("destination is no longer held"))
        }

        @Test("for a renamed destination status shows the command that moves its events, which works")
        func orphansMove() throws {
            let bench = try Workbench()
            try bench.startReceiver()
            try bench.startAgent()
            #expect(try bench.command("pause").code == 0)
            try bench.append(keyed(0..<30), to: "app.jsonl")
            try wait(.seconds(30), "the events in the queue") {
                try bench.figures().total("spoolship_deliveries_queued") == 30
            }
            bench.settings["destination.name"] = "\"other\""
            try bench.configure()
            let words = ["queue", "move", "--destination", "main", "--to", "other"]
            let command = "`spoolship \(words.joined(separator: " "))`"
            #expect(try bench.command("check").text.contains(command))
            #expect(try bench.command("reload").text.contains(command))
            #expect(try bench.command("status").text.contains(command))
            let drained = try bench.command("drain")
            #expect(drained.code == 75 && drained.text.contains("main: orphaned"), "\(drained)")
            let wrong = try run(
                spoolship, Array(words.dropLast()) + ["nowhere", "--config", bench.configuration])
            #expect(
                wrong.code == 65 && wrong.text.contains("there is no destination \"nowhere\""), "\(wrong)")
            // Without an agent it is done on the queue's file.
            #expect(try bench.stopAgent() == 0)
            let moved = try run(spoolship, words + ["--config", bench.configuration])
            #expect(moved.code == 0 && moved.text == "30 moved\n", "\(moved)")
            try bench.startAgent()
            #expect(try bench.command("resume").code == 0)
            try wait(.seconds(30), "the events") { bench.receiverFigure("events") == 30 }
            try wait(.seconds(10), "the line to go") { try !bench.command("status").text.contains("main") }
            try bench.expectOnce(Set((0..<30).map { "e\($0)" }), member: "key")
            try bench.expectBalance()
        }

        @Test("ac21: a producer's session continues through a kill, and its start is reported once")
        func ac21_sessionsSurvive() throws {
            let bench = try Workbench()
            bench.settings["session.mode"] = "\"automatic\""
            try bench.startReceiver()
            // An app that keeps its file open.
            let file = try Descriptor(
                checking: open("\(bench.spool)/app.jsonl", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o644),
                "open")
            for round in 0..<4 {
                try bench.startAgent()
                let lines = Array(keyed(round * 10..<round * 10 + 10).utf8)
                try #require(Glibc.write(file.raw, lines, lines.count) == lines.count)
                try wait(.seconds(30), "round \(round)") { bench.receiverFigure("events") == 11 + round * 10 }
                bench.killAgent()
            }
            try bench.startAgent()
            try bench.waitUntilDelivered(41)
            try bench.expectOnce(Set((0..<40).map { "e\($0)" }), member: "key")
            let stored = try bytes(of: bench.events)
            let sessions = values(of: "session_id", in: stored)
            #expect(sessions.count == 41 && Set(sessions).count == 1, "\(Set(sessions))")
            #expect(values(of: "type", in: stored).filter { $0 == "start_session" }.count == 1)
        }

        @Test(
            "ac17: disable discards waiting and new events, counted, across a restart; enable starts afresh"
        )
        func ac17_disable() throws {
            let bench = try Workbench()
            bench.settings["dispatch.interval"] = "\"off\""
            try bench.startReceiver()
            try bench.startAgent()
            try bench.append(keyed(0..<30), to: "app.jsonl")
            try wait(.seconds(30), "the events in the queue") {
                try bench.figures().total("spoolship_deliveries_queued") == 30
            }
            let answer = try bench.command("disable", "--yes")
            #expect(answer.code == 0, "\(answer)")
            bench.killAgent()
            try bench.startAgent()
            try bench.append(keyed(30..<50), to: "app.jsonl")
            try wait(.seconds(30), "the events to be read", every: .milliseconds(100)) {
                try bench.figures().total("spoolship_events_read_total") == 50
            }
            let figures = try bench.figures()
            #expect(figures.total("spoolship_deliveries_discarded_total") == 50)
            #expect(figures.total("spoolship_deliveries_queued") == 0)
            #expect(figures.value("spoolship_collection_enabled") == 0)
            #expect(figures.imbalances == [])
            #expect(try bench.command("enable").code == 0)
            try bench.append(keyed(50..<60), to: "app.jsonl")
            try wait(.seconds(30), "the new events in the queue") {
                try bench.figures().total("spoolship_deliveries_queued") == 10
            }
            #expect(try bench.command("drain").code == 0)
            try bench.expectOnce(Set((50..<60).map { "e\($0)" }), member: "key")
            try bench.expectBalance()
        }

        @Test("ac17: an agent that ended during a disable completes the deletion after its start")
        func ac17_interruptedDisable() throws {
            let bench = try Workbench()
            bench.settings["dispatch.interval"] = "\"off\""
            try bench.startReceiver()
            try bench.startAgent()
            try bench.append(keyed(0..<30), to: "app.jsonl")
            try wait(.seconds(30), "the events in the queue") {
                try bench.figures().total("spoolship_deliveries_queued") == 30
            }
            bench.killAgent()
            // As it stands after the first step of `disable`, before the events are deleted.
            let script = """
                import sqlite3, sys
                database = sqlite3.connect(sys.argv[1])
                database.execute("INSERT INTO switch (name, value) VALUES ('agent.collecting', 'off')")
                database.commit()
                """
            try #require(try run("python3", ["-c", script, "\(bench.state)/queue.sqlite"]).code == 0)
            try bench.startAgent()
            try wait(.seconds(30), "the queue to be empty") {
                try bench.figures().total("spoolship_deliveries_queued") == 0
            }
            #expect(try bench.figures().total("spoolship_deliveries_discarded_total") == 30)
            #expect(try bench.figures().imbalances == [])
            try wait(.seconds(30), "enable to be taken") { try bench.command("enable").code == 0 }
            try bench.append(keyed(30..<40), to: "app.jsonl")
            try wait(.seconds(30), "the new events in the queue") {
                try bench.figures().total("spoolship_deliveries_queued") == 10
            }
            #expect(try bench.command("drain").code == 0)
            try bench.expectOnce(Set((30..<40).map { "e\($0)" }), member: "key")
            try bench.expectBalance()
        }
    }
}
