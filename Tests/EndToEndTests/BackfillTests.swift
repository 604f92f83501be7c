import EventLoops
import Glibc
import TestKit
import Testing

extension EndToEnd {
    @Suite("Old files: run --once")
    struct BackfillTests {
        /// Events of long ago, a line each.
        private func old(_ numbers: Range<Int>) -> String {
            numbers.map {
                #"{"name":"old","timestamp":"2020-02-29T12:00:00Z","priority":"critical","properties":{"key":"o\#($0)"}}"#
                    + "\n"
            }.joined()
        }

        private func keys(_ letter: Character, _ numbers: Range<Int>) -> [String] {
            numbers.map { "\(letter)\($0)" }
        }

        @Test(
            "through a running agent all events arrive once and never expire, files stay, a second run does nothing"
        )
        func throughAgent() throws {
            let bench = try Workbench()
            try bench.startReceiver()
            try bench.startAgent()
            let lines = "\(bench.path)/old.jsonl"
            let text = "\(bench.path)/old.json"
            try write(old(0..<6000), to: lines)
            let objects = old(6000..<7000).split(separator: "\n").joined(separator: ",\n")
            try write("[\n\(objects)\n]\n", to: text)
            #expect(try run("gzip", ["-k", text]).code == 0)
            let packed = text + ".gz"
            let done = try bench.command("run", "--once", lines, packed, "--app", "shop")
            #expect(done.code == 0, "\(done)")
            #expect(
                done.text.contains("\(lines): taken, 6,000 events")
                    && done.text.contains("7,000 events queued"))
            try bench.append(keyed(0..<10), to: "app.jsonl")
            try bench.waitUntilDelivered(7010)
            try bench.expectOnce(Set(keys("o", 0..<7000) + keys("e", 0..<10)), member: "key")
            #expect(try bench.figures().total("spoolship_deliveries_expired_total") == 0)
            let apps = values(of: "app", in: try bytes(of: bench.events))
            #expect(apps.count { $0 == "shop" } == 7000 && apps.count { $0 == "default" } == 10)
            // Old events never go before new ones: not even critical ones.
            let lanes = try bench.figures()
            #expect(
                lanes.value(#"spoolship_deliveries_accepted_total{destination="main",priority="critical"}"#)
                    == 0)
            #expect(try contents(of: lines) == old(0..<6000))
            let again = try bench.command("run", "--once", lines, packed, "--app", "shop")
            #expect(again.code == 0 && again.text.contains("was read before, nothing to do"), "\(again)")
            #expect(try bench.figures().total("spoolship_events_read_total") == 7010)
        }

        @Test(
            "root follows no user's link to a file that the user may not read", .enabled(if: geteuid() == 0),
            arguments: [true, false])
        func usersLinks(isDirectoryLinked: Bool) throws {
            let bench = try Workbench()
            try bench.startReceiver()
            let (home, secret) = ("\(bench.path)/home", "\(bench.path)/secret")
            for directory in [home, secret] { try #require(mkdir(directory, 0o755) == 0) }
            try write(old(0..<5), to: "\(secret)/a.jsonl")
            try #require(chmod("\(secret)/a.jsonl", 0o600) == 0 && chmod(bench.path, 0o755) == 0)
            try write(old(5..<10), to: "\(home)/b.jsonl")
            try #require(chown("\(home)/b.jsonl", 65_001, 65_001) == 0 && chown(home, 65_001, 65_001) == 0)
            let link = isDirectoryLinked ? "\(home)/logs" : "\(home)/a.jsonl"
            try #require(symlink(isDirectoryLinked ? secret : "\(secret)/a.jsonl", link) == 0)
            try bench.startAgent()
            let refused = try bench.command(
                "run", "--once", isDirectoryLinked ? "\(link)/a.jsonl" : link, "--app", "shop")
            #expect(refused.code == 77 && refused.text.contains("with the rights of"), "\(refused)")
            let taken = try bench.command("run", "--once", "\(home)/b.jsonl", "--app", "shop")
            #expect(taken.code == 0, "\(taken)")
            try bench.waitUntilDelivered(5)
        }

        @Test("a backfill waits while other events wait, and says so")
        func afterEverythingElse() throws {
            let bench = try Workbench()
            bench.settings["dispatch.batch_most_events"] = "50"
            try bench.startReceiver()
            try bench.startAgent()
            #expect(try bench.command("pause").code == 0)
            try bench.append(keyed(0..<2000), to: "app.jsonl")
            try wait(.seconds(30), "the events in the queue") {
                try bench.figures().total("spoolship_deliveries_queued") == 2000
            }
            let file = "\(bench.path)/old.jsonl"
            try write(old(0..<1000), to: file)
            let late = try bench.command("run", "--once", file, "--timeout", "1s")
            #expect(late.code == 124 && late.text.contains("2000 events wait for main"), "\(late)")
            #expect(try bench.figures().total("spoolship_events_read_total") == 2000)
            let backfill = try RunningProgram(
                spoolship, ["run", "--once", file, "--config", bench.configuration],
                output: "\(bench.path)/once.log")
            #expect(try bench.command("resume").code == 0)
            #expect(try backfill.exit(within: .seconds(60)) == 0, "\(backfill.printed)")
            try bench.waitUntilDelivered(3000)
            let order = values(of: "key", in: try bytes(of: bench.events))
            let first = try #require(order.firstIndex { $0.hasPrefix("o") })
            // What a destination has in hand and about to go may still be on its way: twice three batches of fifty.
            #expect(order[..<first].count { $0.hasPrefix("e") } >= 2000 - 300)
            try bench.expectOnce(Set(keys("e", 0..<2000) + keys("o", 0..<1000)), member: "key")
        }

        @Test("killed at random moments, command and agent continue where they were, and repeat nothing")
        func interruptedThroughAgent() throws {
            let seed = Seeds.one(10)
            print("backfill through an agent: seed \(seed)")
            var random = SplitMix64(seed: seed)
            let bench = try Workbench()
            try bench.startReceiver()
            try bench.startAgent()
            let file = "\(bench.path)/old.jsonl"
            try write(old(0..<40_000), to: file)
            #expect(try run("zstd", ["-q", file]).code == 0)
            for round in 0..<6 {
                let backfill = try RunningProgram(
                    spoolship, ["run", "--once", file + ".zst", "--config", bench.configuration],
                    output: "\(bench.path)/once.log")
                usleep(UInt32.random(in: 0...400_000, using: &random))
                guard round.isMultiple(of: 2) else {
                    backfill.kill9()
                    continue
                }
                bench.killAgent()
                let code = try backfill.exit()
                #expect(code == 75 || code == 0, "\(backfill.printed)")
                try bench.startAgent()
            }
            let last = try bench.command("run", "--once", file + ".zst")
            #expect(last.code == 0, "\(last)")
            try bench.waitUntilDelivered(40_000, within: .seconds(120))
            try bench.expectOnce(Set(keys("o", 0..<40_000)), member: "key")
        }

        @Test(
            "run by root without an agent it reads root's files; what it creates belongs to the agent's user",
            .enabled(if: getuid() == 0))
        func asRoot() throws {
            let bench = try Workbench()
            try bench.configure()
            try bench.startReceiver()
            let file = "\(bench.path)/old.jsonl"
            try write(old(0..<100), to: file)
            try #require(try run("chown", ["-R", "65534:0", bench.path]).code == 0)
            try #require(chown(file, 0, 0) == 0 && chmod(file, 0o600) == 0)
            let done = try bench.command("run", "--once", file)
            #expect(done.code == 0 && done.text.contains("100 events delivered"), "\(done)")
            #expect(access("\(bench.state)/queue.sqlite", F_OK) == 0)
            #expect(try run("find", [bench.state, "!", "-user", "65534"]).text == "")
            // By the owner's own group, not the directory's.
            #expect(try run("find", [bench.state, "-name", "queue*", "!", "-group", "65534"]).text == "")
            try bench.startAgent(under: ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"])
            try bench.append(keyed(0..<10), to: "app.jsonl")
            try bench.waitUntilDelivered(110)
            try bench.expectOnce(Set(keys("o", 0..<100) + keys("e", 0..<10)), member: "key")
            #expect(try bench.stopAgent() == 0)
        }

        @Test(
            "without an agent it runs its own, which ignores the spool, survives kills, and ends when all is sent"
        )
        func withoutAgent() throws {
            let seed = Seeds.one(10)
            print("backfill without an agent: seed \(seed)")
            var random = SplitMix64(seed: seed)
            let bench = try Workbench()
            // Only the command sends.
            bench.settings["dispatch.interval"] = "\"off\""
            try bench.configure()
            try bench.startReceiver()
            try bench.append(keyed(0..<10), to: "app.jsonl")
            let file = "\(bench.path)/old.jsonl"
            try write(old(0..<30_000), to: file)
            for _ in 0..<4 {
                let backfill = try RunningProgram(
                    spoolship, ["run", "--once", file, "--config", bench.configuration],
                    output: "\(bench.path)/once.log")
                usleep(UInt32.random(in: 50_000...600_000, using: &random))
                backfill.kill9()
            }
            let interrupted = try RunningProgram(
                spoolship, ["run", "--once", file, "--config", bench.configuration],
                output: "\(bench.path)/term.log")
            try wait(.seconds(30), "an agent: \(interrupted.printed)") {
                try interrupted.exitStatus() != nil || bench.command("status").code != 69
            }
            interrupted.send(SIGTERM)
            let code = try interrupted.exit(within: .seconds(60))
            // It was still reading, or sent what it had read, or was done.
            let words = ["the same command resumes", "the next agent sends the events that still wait"]
            #expect(
                code == 75 && words.contains { interrupted.printed.contains($0) } || code == 0,
                "\(code): \(interrupted.printed)")
            let last = try bench.command("run", "--once", file)
            #expect(last.code == 0 && last.text.contains("delivered"), "\(last)")
            #expect(bench.receiverFigure("events") == 30_000)
            try bench.expectOnce(Set(keys("o", 0..<30_000)), member: "key")
            #expect(try contents(of: "\(bench.spool)/app.jsonl") == keyed(0..<10))
            try bench.startAgent()
            try wait(.seconds(30), "the agent to read the spool") {
                try bench.figures().total("spoolship_events_read_total") == 30_010
            }
            try bench.expectBalance()
        }

        @Test(
            "the exit code says how it ended: no event, no destination reached, no file, a file in the spool"
        )
        func exitCodes() throws {
            let bench = try Workbench()
            bench.settings["retry.intervals"] = #"["100ms"]"#
            try bench.configure()
            try bench.startReceiver()
            try bench.stopReceiver()
            let file = "\(bench.path)/old.jsonl"
            try write(old(0..<3000), to: file)
            // Nobody listens: what is queued waits for the next agent.
            let small = "\(bench.path)/small.jsonl"
            try write(old(3010..<3011), to: small)
            let waits = try bench.command("run", "--once", small, "--timeout", "5s")
            #expect(waits.code == 124 || waits.code == 75, "\(waits)")
            #expect(
                waits.text.contains(", 1 waiting\n") && waits.text.contains("the next agent sends"),
                "\(waits)")
            let alone = try bench.command("run", "--once", file, "--timeout", "2s")
            #expect(alone.code == 124 || alone.code == 75, "\(alone)")
            try bench.startReceiver()
            let done = try bench.command("run", "--once", file)
            #expect(done.code == 0, "\(done)")
            let mixed = "\(bench.path)/mixed.log"
            try write(old(3000..<3005) + "no event\n" + old(3005..<3010), to: mixed)
            let bad = try bench.command("run", "--once", mixed)
            #expect(bad.code == 65 && bad.text.contains("1 line quarantined"), "\(bad)")
            #expect(bad.text.contains("\(mixed): taken, 10 events"), "\(bad)")
            try bench.expectOnce(Set(keys("o", 0..<3011)), member: "key")
            #expect(try bench.command("run", "--once", "\(bench.path)/none").code == 74)
            let directory = try bench.command("run", "--once", bench.path)
            #expect(directory.code == 74 && directory.text.contains("Is a directory"), "\(directory)")
            #expect(try bench.command("run", "--once").code == 64)
            #expect(try bench.command("run", file).code == 64)
            try bench.append(keyed(0..<1), to: "app.jsonl")
            let inside = try bench.command("run", "--once", "\(bench.spool)/app.jsonl")
            #expect(inside.code == 64 && inside.text.contains("is in the spool"), "\(inside)")
        }
    }
}
