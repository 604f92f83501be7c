import EventLoops
import Glibc
import Model
import Testing

extension EndToEnd {
    @Suite("Stored records, with and without an agent")
    struct StoredRecordsTests {
        /// A bench with 120 queued events, ten of them critical, and two quarantined lines.
        private func filled() throws -> Workbench {
            let bench = try Workbench()
            bench.settings["dispatch.interval"] = "\"off\""
            try bench.startReceiver()
            try bench.startAgent()
            let critical = (0..<10).map {
                #"{"name":"alarm","priority":"critical","properties":{"key":"c\#($0)"}}"# + "\n"
            }
            try bench.append(critical.joined() + keyed(0..<110) + "no event\n[]\n", to: "app.jsonl")
            try wait(.seconds(30), "the events in the queue", every: .milliseconds(100)) {
                let figures = try bench.figures()
                return figures.total("spoolship_deliveries_queued") == 120
                    && figures.total("spoolship_events_quarantined_total") == 2
            }
            return bench
        }

        /// Looks at everything; gives what was printed.
        private func look(_ bench: Workbench) throws -> [String] {
            var printed: [String] = []
            for words in [
                ["queue", "list"], ["queue", "list", "--priority", "critical", "--json"],
                ["queue", "export"],
                ["dead-letters", "list"], ["quarantine", "list"],
                ["quarantine", "export", "--reason", "not_json"],
            ] {
                let answer = try run(spoolship, words + ["--config", bench.configuration])
                #expect(answer.code == 0, "\(words) \(answer)")
                printed.append(answer.text)
            }
            let id = String(printed[0].prefix { $0 != " " })
            let shown = try bench.command("queue", "show", id)
            #expect(shown.code == 0 && shown.text.contains("\"alarm\""), "\(shown)")
            return printed + [shown.text]
        }

        @Test("what is left names the queue and the files that were not read, with and without an agent")
        func left() throws {
            let bench = try filled()
            #expect(try bench.command("queue", "left").text == "120 events are not sent\n")
            #expect(try bench.stopAgent() == 0)
            #expect(try bench.command("queue", "left").text == "120 events are not sent\n")
            try bench.append(keyed(110..<112), to: "app.jsonl")
            try bench.append("{\"name\":\"a\"}\n", to: "other.jsonl")
            let bytes = keyed(110..<112).utf8.count + 13
            let more = ", and 2 files with \(bytes) B were not read yet\n"
            #expect(try bench.command("queue", "left").text == "120 events are not sent" + more)
            let json = try JSONValue(parsing: try bench.command("queue", "left", "--json").text)
            #expect(json == ["events": 120, "files": 2, "bytes": .integer(bytes), "whole": true])
            try bench.startAgent()
            try wait(.seconds(30), "the rest to be read and sent", every: .milliseconds(100)) {
                try bench.command("drain").code == 0 && bench.command("queue", "left").text.isEmpty
            }
        }

        @Test("the commands print the same from the agent's answers and from the file")
        func sameWithAndWithoutAgent() throws {
            let bench = try filled()
            let asked = try look(bench)
            #expect(asked[2].split(separator: "\n").count == 120)
            #expect(asked[4].contains("not_json") && asked[4].contains("app.jsonl"))
            let critical = try JSONValue(
                parsing: asked[1].split(separator: "\n").first.map(String.init) ?? "")
            #expect(critical["priority"] == "critical")
            #expect(try bench.stopAgent() == 0)
            #expect(try look(bench) == asked)
            // A position and a figure changed by nobody: the agent goes on as before.
            try bench.startAgent()
            try bench.expectBalance()
            #expect(try bench.command("drain").code == 0)
            try bench.expectOnce(
                Set((0..<110).map { "e\($0)" } + (0..<10).map { "c\($0)" }), member: "key")
        }

        @Test("without an agent queued events are purged, quarantined ones removed; the agent does the rest")
        func purgeWithoutAgent() throws {
            let bench = try filled()
            #expect(try bench.stopAgent() == 0)
            let unconfirmed = try bench.command("queue", "purge")
            #expect(unconfirmed.code == 64, "\(unconfirmed)")
            let purged = try bench.command("queue", "purge", "--priority", "critical", "--yes")
            #expect(purged.code == 0 && purged.text == "10 removed\n", "\(purged)")
            #expect(try bench.command("quarantine", "purge", "--yes").text == "2 removed\n")
            let again = try bench.command("quarantine", "retry")
            #expect(again.code == 75 && again.text.contains("start it first"), "\(again)")
            try bench.startAgent()
            let figures = try bench.figures()
            #expect(figures.total("spoolship_deliveries_discarded_total") == 10)
            #expect(figures.total("spoolship_quarantine_records") == 0)
            #expect(figures.imbalances == [])
            #expect(try bench.command("drain").code == 0)
            try bench.expectOnce(Set((0..<110).map { "e\($0)" }), member: "key")
        }

        @Test("ac05: events that waited before a kill are sent after the start, although no new ones arrive")
        func ac05_waitGoesOn() throws {
            let bench = try filled()
            bench.killAgent()
            bench.settings["dispatch.interval"] = "\"1s\""
            try bench.startAgent()
            try wait(
                .seconds(30), "the events to be sent: \(bench.agentLog.suffix(2000))",
                every: .milliseconds(100)
            ) {
                try bench.figures().total("spoolship_deliveries_acknowledged_total") == 120
            }
            try bench.expectBalance()
        }

        @Test(
            "dead letters are listed, shown, exported, retried and purged in the file; the agent then sends them"
        )
        func deadLettersWithoutAgent() throws {
            let bench = try Workbench()
            try bench.startReceiver("--marker", "POISON")
            try bench.startAgent()
            try bench.append(keyed(0..<200), to: "app.jsonl")
            try bench.waitUntilDelivered(200)
            let poison = (0..<2).map { #"{"name":"POISON","properties":{"key":"p\#($0)"}}"# + "\n" }
            try bench.append(keyed(200..<220) + poison[0] + keyed(220..<240) + poison[1], to: "app.jsonl")
            try wait(.seconds(60), "two dead letters: \(bench.agentLog)", every: .milliseconds(100)) {
                let figures = try bench.figures()
                return figures.total("spoolship_deliveries_dead_lettered_total") == 2
                    && figures.total("spoolship_deliveries_queued") == 0
            }
            try bench.stopReceiver()
            #expect(try bench.stopAgent() == 0)
            let list = try bench.command("dead-letters", "list", "--destination", "main")
            let ids = list.text.split(separator: "\n").map { String($0.prefix { $0 != " " }) }
            try #require(list.code == 0 && ids.count == 2, "\(list)")
            #expect(list.text.contains("status=400"))
            // Their batches may be under way together: the first one to be refused is the first in the list.
            let keys = values(of: "key", in: Array(try bench.command("dead-letters", "export").text.utf8))
            try #require(Set(keys) == ["p0", "p1"] && keys.count == 2, "\(keys)")
            #expect(try bench.command("dead-letters", "show", ids[0]).text.contains("\"\(keys[0])\""))
            #expect(try bench.command("dead-letters", "show", "99").code == 65)
            #expect(try bench.command("dead-letters", "retry", ids[0]).text == "1 retried\n")
            #expect(try bench.command("dead-letters", "purge", ids[1], "--yes").text == "1 removed\n")
            #expect(try bench.command("dead-letters", "list").text == "")
            try bench.startReceiver()
            try bench.startAgent()
            try wait(
                .seconds(30), "the event that was sent again: \(bench.agentLog.suffix(2000))",
                every: .milliseconds(100)
            ) {
                try bench.figures().total("spoolship_deliveries_queued") == 0
            }
            try bench.expectBalance()
            #expect(try bench.figures().total("spoolship_deliveries_retried_total") == 1)
            try bench.expectOnce(Set((0..<240).map { "e\($0)" } + [keys[0]]), member: "key")
        }

        @Test(
            "other users get 77 and the command for root; root becomes the agent's user, whose files stay its own"
        )
        func whoMay() throws {
            try #require(getuid() == 0, "changing users takes root")
            let bench = try filled()
            #expect(try bench.stopAgent() == 0)
            let nobody = ["--reuid", "65534", "--regid", "65534", "--clear-groups"]
            let words = ["dead-letters", "list", "--destination", "it's", "--config", bench.configuration]
            let line =
                "run: sudo spoolship dead-letters list --destination 'it'\\''s' --config \(bench.configuration)"
            // First the configuration cannot be read, then the directory is another's.
            for mode: mode_t in [0o700, 0o755] {
                try #require(chmod(bench.path, mode) == 0)
                let refused = try run("setpriv", nobody + [spoolship] + words)
                #expect(refused.code == 77 && refused.text.contains(line), "\(refused)")
            }
            try #require(try run("chown", ["-R", "65534:65534", bench.state]).code == 0)
            let own = try run(
                "setpriv", nobody + [spoolship, "queue", "list", "--config", bench.configuration])
            #expect(own.code == 0 && own.text.contains("critical"), "\(own)")
            #expect(
                try bench.command("queue", "purge", "--priority", "critical", "--yes").text == "10 removed\n")
            #expect(try run("find", [bench.state, "!", "-user", "65534"]).text == "")
        }

        @Test(
            "while an agent owns the queue and does not answer, nothing is changed; without a queue the code is 69"
        )
        func noAnswer() throws {
            let bench = try filled()
            let socket = bench.settings["control.socket"]
            bench.settings["control.socket"] = "\"\(bench.path)/nobody.sock\""
            try bench.configure()
            let locked = try bench.command("queue", "purge", "--yes")
            #expect(
                locked.code == 69 && locked.text.hasSuffix("; an agent uses \(bench.state)\n"), "\(locked)")
            bench.settings["control.socket"] = socket
            try bench.configure()
            #expect(try bench.figures().total("spoolship_deliveries_queued") == 120)
            #expect(try bench.stopAgent() == 0)
            bench.settings["agent.state_directory"] = "\"\(bench.path)/elsewhere\""
            try bench.configure()
            let missing = try bench.command("queue", "list")
            #expect(missing.code == 69 && missing.text.contains("there is no queue in"), "\(missing)")
            #expect(access("\(bench.path)/elsewhere", F_OK) != 0)
        }
    }
}
