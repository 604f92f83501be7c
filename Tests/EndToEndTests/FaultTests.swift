import EventLoops
import Glibc
import TestKit
import Testing

extension EndToEnd {
    @Suite("Faults known from other agents")
    struct FaultTests {
        @Test("rejected events become dead letters, and all their neighbours arrive")
        func fault11_poisonedBatch() throws {
            let bench = try Workbench()
            try bench.startReceiver("--marker", "POISON")
            try bench.startAgent()
            // A destination that has acknowledged nothing yet is held instead: its settings may be wrong.
            try bench.append(keyed(0..<200), to: "app.jsonl")
            try bench.waitUntilDelivered(200)
            let poison = #"{"name":"POISON","properties":{"text":"no"}}"# + "\n"
            try bench.append(
                keyed(200..<225) + poison + keyed(225..<390) + poison + keyed(390..<400), to: "app.jsonl")
            try wait(.seconds(60), "two dead letters: \(bench.agentLog)", every: .milliseconds(100)) {
                let figures = try bench.figures()
                return figures.total("spoolship_deliveries_dead_lettered_total") == 2
                    && figures.total("spoolship_deliveries_queued") == 0
            }
            try bench.expectBalance()
            try bench.expectOnce(Set((0..<400).map { "e\($0)" }), member: "key")
            #expect(try bench.command("status").text.contains("2 dead letters"))
        }

        @Test("a receiver that accepts only small bodies gets everything in small bodies")
        func fault12_smallBodies() throws {
            let bench = try Workbench()
            try bench.startReceiver("--largest-body", "1KiB")
            try bench.startAgent()
            var random = SplitMix64(seed: 12)
            // Numbers that no compression makes small.
            let lines = (0..<300).map { number in
                let text = (0..<6).map { _ in String(random.next(), radix: 36) }.joined()
                return #"{"name":"load","properties":{"key":"e\#(number)","text":"\#(text)"}}"# + "\n"
            }
            try bench.append(lines.joined(), to: "app.jsonl")
            try bench.waitUntilDelivered(300)
            try bench.expectOnce(Set((0..<300).map { "e\($0)" }), member: "key")
            #expect(
                bench.receiverFigure("requests") > bench.receiverFigure("batches"), "nothing was too large")
        }

        @Test("a full queue makes the spool wait, through a kill -9, and evicts nothing")
        func fault15_fullQueueWaits() throws {
            let bench = try Workbench()
            bench.settings["queue.max_size"] = "\"64KiB\""
            bench.settings["retry.intervals"] = #"["300ms"]"#
            bench.settings["retry.probe_interval"] = "\"1s\""
            try bench.startReceiver()
            try bench.stopReceiver()
            try bench.startAgent()
            try bench.append(keyed(0..<20_000), to: "app.jsonl")
            for _ in 0..<2 {
                try wait(.seconds(60), "a full queue") {
                    try bench.figures().value("spoolship_queue_backpressure") == 1
                }
                try bench.expectBalance()
                #expect(try bench.command("status").text.contains("reading waits"))
                bench.killAgent()
                try bench.startAgent()
            }
            #expect(try bench.figures().total("spoolship_events_read_total") < 20_000)
            try bench.startReceiver()
            try bench.waitUntilDelivered(20_000)
            #expect(try bench.figures().total("spoolship_deliveries_evicted_total") == 0)
            try bench.expectOnce(Set((0..<20_000).map { "e\($0)" }), member: "key")
        }

        @Test("with when_full = evict the oldest normal events go, counted, and critical ones stay")
        func fault15_evictsInOrder() throws {
            let bench = try Workbench()
            bench.settings["queue.max_size"] = "\"64KiB\""
            bench.settings["spool.when_full"] = "\"evict\""
            bench.settings["retry.intervals"] = #"["300ms"]"#
            bench.settings["retry.probe_interval"] = "\"1s\""
            try bench.startReceiver()
            try bench.stopReceiver()
            try bench.startAgent()
            let critical = (0..<20).map {
                #"{"name":"alarm","priority":"critical","properties":{"key":"c\#($0)"}}"# + "\n"
            }
            try bench.append(critical.joined() + keyed(0..<20_000), to: "app.jsonl")
            try wait(.seconds(60), "all to be read", every: .milliseconds(100)) {
                try bench.figures().total("spoolship_events_read_total") == 20_020
            }
            try bench.startReceiver()
            try wait(.seconds(60), "the rest to arrive", every: .milliseconds(100)) {
                try bench.figures().total("spoolship_deliveries_queued") == 0
            }
            let figures = try bench.figures()
            #expect(figures.imbalances == [])
            let evicted = figures.value(
                #"spoolship_deliveries_evicted_total{destination="main",priority="normal"}"#)
            #expect(evicted > 0)
            #expect(figures.total("spoolship_deliveries_acknowledged_total") == 20_020 - evicted)
            let arrived = values(of: "key", in: try bytes(of: bench.events))
            #expect(Set(arrived).count == arrived.count && arrived.count == 20_020 - evicted)
            #expect(arrived.filter { $0.hasPrefix("c") }.count == 20)
            #expect(Set(arrived).contains("e19999"), "the newest stays")
            #expect(bench.agentLog.contains("queue is full, evicting"))
        }

        @Test("a dead destination with when_behind = skip drops its oldest events, the other gets all")
        func fault15_oneDeadSkips() throws {
            let bench = try Workbench()
            bench.settings["queue.max_size"] = "\"64KiB\""
            bench.settings["destination2.name"] = "\"dead\""
            bench.settings["destination2.type"] = "\"http\""
            bench.settings["destination2.url"] = "\"http://127.0.0.1:\(try freePort())/\""
            bench.settings["destination2.when_behind"] = "\"skip\""
            bench.settings["retry.intervals"] = #"["300ms"]"#
            try bench.startReceiver()
            try bench.startAgent()
            let main = #"{destination="main",priority="normal"}"#
            let dead = #"{destination="dead",priority="normal"}"#
            for round in 1...2 {
                try bench.append(keyed((round - 1) * 10_000..<round * 10_000), to: "app.jsonl")
                try wait(.seconds(120), "all to arrive: \(bench.agentLog)", every: .milliseconds(100)) {
                    try bench.figures().value("spoolship_deliveries_acknowledged_total" + main) == round
                        * 10_000
                }
                if round == 1 {
                    bench.killAgent()
                    try bench.startAgent()
                }
            }
            let figures = try bench.figures()
            #expect(figures.imbalances == [])
            #expect(figures.value("spoolship_deliveries_evicted_total" + main) == 0)
            let evicted = figures.value("spoolship_deliveries_evicted_total" + dead)
            #expect(evicted > 0 && evicted + figures.value("spoolship_deliveries_queued" + dead) == 20_000)
            try bench.expectOnce(Set((0..<20_000).map { "e\($0)" }), member: "key")
        }

        @Test(
            "a full disk stops reading and readiness, loses nothing, and the agent recovers by itself",
            .enabled(if: getuid() == 0))
        func fault08_fullDisk() throws {
            let bench = try Workbench()
            let mounted = try run("mount", ["-t", "tmpfs", "-o", "size=24m", "tmpfs", bench.state])
            // In a container without the right to mount there is no small disk to fill.
            guard mounted.code == 0 else { return }
            defer {
                bench.killAgent()
                _ = try? run("umount", [bench.state])
            }
            bench.settings["queue.max_size"] = "\"1MiB\""
            bench.settings["spool.quarantine_max_size"] = "\"64KiB\""
            try bench.startReceiver()
            try bench.startAgent()
            try bench.append(keyed(0..<500), to: "app.jsonl")
            try bench.waitUntilDelivered(500)
            let filler = try run("dd", ["if=/dev/zero", "of=\(bench.state)/filler", "bs=64k"])
            try #require(filler.code != 0, "the disk is not full")
            let ready = "http://127.0.0.1:\(bench.statsPort)/readyz"
            var written = 500
            try wait(.seconds(60), "the agent to notice: \(bench.agentLog)", every: .milliseconds(100)) {
                try bench.append(keyed(written..<written + 500), to: "app.jsonl")
                written += 500
                // The ballast is given up first.
                _ = try run("dd", ["if=/dev/zero", "of=\(bench.state)/more-\(written)", "bs=4k"])
                return try fetch(ready).status == 503
            }
            #expect(try fetch(ready).body.contains("full"))
            try bench.expectBalance()
            for file in try run("find", [bench.state, "-name", "filler", "-o", "-name", "more-*"]).text.split(
                separator: "\n")
            {
                unlink(String(file))
            }
            try bench.waitUntilDelivered(written)
            try bench.expectOnce(Set((0..<written).map { "e\($0)" }), member: "key")
            #expect(try fetch(ready).status == 200)
        }

        @Test("links, pipes and sockets in the spool are not read, and block nothing")
        func fault26_hostileSpool() throws {
            let bench = try Workbench()
            try bench.startReceiver()
            let secret = "\(bench.path)/secret"
            try write(#"{"name":"secret","properties":{"key":"stolen"}}"# + "\n", to: secret)
            try #require(symlink(secret, "\(bench.spool)/link.jsonl") == 0)
            try #require(symlink(bench.path, "\(bench.spool)/elsewhere") == 0)
            try #require(mkfifo("\(bench.spool)/pipe.jsonl", 0o644) == 0)
            try bench.startAgent()
            try #require(symlink(secret, "\(bench.spool)/link.json") == 0)
            try #require(mkfifo("\(bench.spool)/pipe.json", 0o644) == 0)
            try bench.append(keyed(0..<10), to: "app.jsonl")
            try bench.waitUntilDelivered(10)
            try bench.expectOnce(Set((0..<10).map { "e\($0)" }), member: "key")
            #expect(try bench.figures().total("spoolship_spool_refused_files") >= 4)
            #expect(access(secret, F_OK) == 0)
        }

        @Test("3,000 drop files are sent once and removed")
        func manyDropFiles() throws {
            let bench = try Workbench()
            try bench.startReceiver()
            for number in 0..<1500 { try bench.drop(keyed(number..<number + 1), as: "before-\(number).json") }
            try bench.startAgent()
            for number in 1500..<3000 {
                try bench.drop(keyed(number..<number + 1), as: "after-\(number).json")
            }
            try bench.waitUntilDelivered(3000)
            try bench.expectOnce(Set((0..<3000).map { "e\($0)" }), member: "key")
            try wait(.seconds(30), "the files to go") {
                try run("find", [bench.spool, "-name", "*.json"]).text.isEmpty
            }
        }

        @Test(
            "a token file that does not answer, at a start or later, stops only its destination",
            .enabled(if: SilentFileSystem.isPossible), arguments: [true, false])
        func fault10_silentFiles(fromTheStart: Bool) throws {
            let bench = try Workbench()
            try bench.startReceiver()
            let (directory, file) = ("\(bench.path)/nas", "\(bench.path)/nas.ndjson")
            try #require(mkdir(directory, 0o700) == 0)
            try write("secret\n", to: "\(directory)/token")
            try #require(chmod("\(directory)/token", 0o600) == 0)
            for (name, value) in [
                ("name", "nas"), ("type", "http"), ("token_file", "\(directory)/token"),
                ("url", "http://127.0.0.1:\(try freePort())/"),
            ] {
                bench.settings["destination2.\(name)"] = "\"\(value)\""
            }
            bench.settings["destination3.name"] = "\"local\""
            bench.settings["destination3.type"] = "\"file\""
            bench.settings["destination3.path"] = "\"\(file)\""
            bench.settings["retry.intervals"] = #"["300ms"]"#
            var silent = fromTheStart ? SilentFileSystem(over: directory) : nil
            try bench.startAgent()
            try bench.append(keyed(0..<5), to: "app.jsonl")
            try wait(.seconds(30), "what the file got") {
                ((try? values(of: "key", in: bytes(of: file))) ?? []).count == 5
            }
            silent = silent ?? SilentFileSystem(over: directory)
            defer { silent?.end() }
            try #require(silent != nil)
            try bench.append(keyed(5..<10), to: "app.jsonl")
            try wait(.seconds(30), "what the healthy ones get: \(bench.agentLog)") {
                try values(of: "key", in: bytes(of: file)).count == 10 && bench.receiverFigure("events") == 10
            }
            try wait(.seconds(30), "the log to say why: \(bench.agentLog)") {
                bench.agentLog.contains("\(directory)/token cannot be read: its file system does not answer")
            }
            guard fromTheStart else { return }
            /// Whether `status` says that the destination fails, and this reason.
            func isFailing(_ reason: String) throws -> Bool {
                try bench.command("status").text.split(separator: "\n").contains {
                    $0.hasPrefix("nas: failing") && $0.contains(reason)
                }
            }
            // The log says so at the start, `status` once the first attempt has failed.
            try wait(.seconds(30), "status to say why") {
                try isFailing("\(directory)/token cannot be read")
            }
            #expect(
                try bench.command("check").text.contains(
                    "\(directory)/token: its file system does not answer"))
            silent?.end()
            try wait(.seconds(30), "the destination to be tried") {
                try isFailing("no connection to 127.0.0.1")
            }
        }
    }
}
