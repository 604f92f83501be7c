import EventLoops
import Glibc
import TestKit
import Testing

extension EndToEnd {
    /// What the spool promises, with the whole agent behind it.
    @Suite("The spool, end to end")
    struct SpoolPromises {
        @Test("idle with 1,000 directories, no thread makes a system call in ten seconds")
        func idleMakesNoSystemCall() throws {
            let bench = try Workbench()
            for number in 0..<1000 { try #require(mkdir("\(bench.spool)/app\(number)", 0o755) == 0) }
            try bench.startReceiver()
            try bench.startAgent()
            try bench.drop(keyed(0..<1), as: "app7/one.json")
            try bench.waitUntilDelivered(1)
            try wait(.seconds(60), "all directories to be watched") {
                try bench.figures().value("spoolship_spool_polling") == 0
            }
            let process = try #require(bench.agent).process
            // What follows a delivery (the connection's end, removals, the database's log) may take its time.
            var calls = 1
            for _ in 0..<8 where calls > 0 { calls = try systemCalls(of: process, in: bench) }
            #expect(calls == 0)
            // It was not dead, and strace not blind.
            try bench.drop(keyed(1..<2), as: "app999/two.json")
            try bench.waitUntilDelivered(2)
        }

        /// How many system calls a process begins in ten seconds, those that strace itself interrupts left out.
        private func systemCalls(of process: pid_t, in bench: Workbench) throws -> Int {
            let trace = "\(bench.path)/trace"
            unlink(trace)
            let strace = try RunningProgram(
                "strace", ["-f", "-ttt", "-o", trace, "-p", "\(process)"], output: "\(bench.path)/strace.log")
            try wait(.seconds(30), "strace to attach: \(strace.printed)") {
                strace.printed.contains("attached")
            }
            let begin = now() + 1
            let end = begin + 10
            try wait(.seconds(60), "ten seconds", every: .milliseconds(200)) { now() >= end }
            strace.send(SIGINT)
            _ = try strace.exit()
            return try contents(of: trace).split(separator: "\n").count { line in
                let parts = line.split(separator: " ", maxSplits: 2)
                guard parts.count == 3, let time = Double(parts[1]), parts[2].contains("(") else {
                    return false
                }
                return time >= begin && time < end
            }
        }

        private func now() -> Double {
            var time = timespec()
            clock_gettime(CLOCK_REALTIME, &time)
            return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
        }

        @Test(
            "max_unread: without acknowledgements the oldest events are evicted, and the spool stays bounded"
        )
        func unreadBytesAreBounded() throws {
            let bench = try Workbench()
            bench.settings["queue.max_size"] = "\"64KiB\""
            bench.settings["spool.when_full.max_unread"] = "\"1MiB\""
            bench.settings["retry.intervals"] = #"["300ms"]"#
            bench.settings["retry.probe_interval"] = "\"1s\""
            try bench.startReceiver()
            try bench.stopReceiver()
            try bench.startAgent()
            // Below the bound it waits, however long.
            try bench.append(keyed(0..<5000), to: "app.jsonl")
            try wait(.seconds(60), "a full queue", every: .milliseconds(100)) {
                try bench.figures().value("spoolship_queue_backpressure") == 1
            }
            #expect(try bench.figures().value("spoolship_spool_unread_bound_passed") == 0)
            var written = 5000
            for file in 0..<4 {
                try bench.append(keyed(written..<written + 15_000), to: "more-\(file).jsonl")
                written += 15_000
            }
            try wait(.seconds(120), "evictions: \(bench.agentLog.suffix(1000))", every: .milliseconds(100)) {
                let figures = try bench.figures()
                return figures.total("spoolship_deliveries_evicted_total") > 0
                    && figures.value("spoolship_spool_lag_bytes") <= 1 << 20
            }
            try bench.expectBalance()
            #expect(bench.agentLog.contains("unread bytes exceed the bound"))
            // The destination is back: nothing more is evicted, and the newest of all arrive.
            try bench.startReceiver()
            try wait(.seconds(120), "the rest to arrive", every: .milliseconds(100)) {
                let figures = try bench.figures()
                return figures.total("spoolship_events_read_total") == written
                    && figures.total("spoolship_deliveries_queued") == 0
            }
            let figures = try bench.figures()
            #expect(figures.imbalances == [])
            #expect(figures.value("spoolship_spool_unread_bound_passed") == 0)
            let evicted = figures.total("spoolship_deliveries_evicted_total")
            #expect(evicted > 0)
            #expect(figures.total("spoolship_deliveries_acknowledged_total") == written - evicted)
            let arrived = values(of: "key", in: try bytes(of: bench.events))
            #expect(Set(arrived).count == arrived.count && arrived.contains("e\(written - 1)"))
        }

        @Test("max_unread: a dead destination loses events, a healthy one gets all that is read")
        func unreadBytesCostTheDeadOne() throws {
            let bench = try Workbench()
            bench.settings["queue.max_size"] = "\"64KiB\""
            bench.settings["spool.when_full.max_unread"] = "\"1MiB\""
            bench.settings["destination2.name"] = "\"dead\""
            bench.settings["destination2.type"] = "\"http\""
            bench.settings["destination2.url"] = "\"http://127.0.0.1:\(try freePort())/\""
            bench.settings["retry.intervals"] = #"["300ms"]"#
            try bench.startReceiver()
            try bench.startAgent()
            for file in 0..<4 {
                try bench.append(keyed(file * 15_000..<file * 15_000 + 15_000), to: "\(file).jsonl")
            }
            let dead = #"{destination="dead",priority="normal"}"#
            var said = ""
            try wait(.seconds(120), "evictions: \(bench.agentLog.suffix(1000))", every: .milliseconds(100)) {
                let figures = try bench.figures()
                if figures.value("spoolship_spool_unread_bound_passed") == 1 {
                    said += try bench.command("status").text
                }
                return figures.value("spoolship_deliveries_evicted_total" + dead) > 0
                    && figures.value("spoolship_spool_unread_bound_passed") == 0
            }
            #expect(said.contains("the oldest events for dead,"))
            #expect(bench.agentLog.contains("destinations=dead"))
            let figures = try bench.figures()
            #expect(figures.value("spoolship_spool_lag_bytes") <= 1 << 20)
            #expect(figures.imbalances == [])
            let main = #"{destination="main",priority="normal"}"#
            #expect(figures.value("spoolship_deliveries_evicted_total" + main) == 0)
            let read = figures.total("spoolship_events_read_total")
            try wait(.seconds(60), "all that was read to arrive", every: .milliseconds(100)) {
                try bench.figures().value("spoolship_deliveries_acknowledged_total" + main) >= read
            }
        }

        @Test(
            "without free inotify watches the spool is polled; status, metrics and the log say so with a remedy",
            .enabled(if: getuid() == 0))
        func fault17_exhaustedWatches() throws {
            let bench = try Workbench()
            for number in 0..<5 { try #require(mkdir("\(bench.spool)/app\(number)", 0o755) == 0) }
            bench.settings["spool.poll_interval"] = "\"200ms\""
            try bench.startReceiver()
            try bench.configure()
            // In a namespace of its own the agent's user has three watches.
            let limited = "echo 3 > /proc/sys/user/max_inotify_watches && exec \"$0\" run --config \"$1\""
            guard try run("unshare", ["--user", "--map-root-user", "true"]).code == 0 else { return }
            let agent = try RunningProgram(
                "unshare",
                ["--user", "--map-root-user", "sh", "-c", limited, spoolship, bench.configuration],
                output: "\(bench.path)/agent.log")
            try bench.waitForAgent()
            for number in 0..<5 {
                try bench.append(keyed(number * 10..<number * 10 + 10), to: "app\(number)/app.jsonl")
            }
            try bench.waitUntilDelivered(50)
            #expect(try bench.figures().value("spoolship_spool_polling") == 1)
            #expect(
                bench.agentLog.contains("directories are polled")
                    && bench.agentLog.contains("max_user_watches"))
            #expect(try bench.command("status").text.contains("directories that are polled"))
            agent.send(SIGTERM)
            #expect(try agent.exit() == 0)
        }

        @Test(
            "events of the spool are counted in metrics: rotation, truncation, long lines, removals, leases"
        )
        func countersAreSet() throws {
            let bench = try Workbench()
            bench.settings["spool.max_event_size"] = "\"1KiB\""
            try bench.startReceiver()
            try bench.startAgent()
            try bench.append(keyed(0..<3) + String(repeating: "x", count: 2000) + "\n", to: "app.jsonl")
            try bench.append(keyed(3..<4), to: "cut.jsonl")
            try bench.drop(keyed(4..<5), as: "one.json")
            // Somebody's file lease is in the way of opening.
            let hidden = "\(bench.spool)/.leased"
            let leased = Descriptor(open(hidden, O_RDWR | O_CREAT | O_CLOEXEC, 0o644))
            signal(SIGIO, SIG_IGN)
            // Under a name that the agent does not open: else it may be first.
            try #require(fcntl(leased.raw, 1024, F_WRLCK) == 0)
            try #require(rename(hidden, "\(bench.spool)/leased.jsonl") == 0)
            try bench.waitUntilDelivered(6, quarantined: 1)
            try #require(rename("\(bench.spool)/app.jsonl", "\(bench.spool)/app.jsonl.1") == 0)
            try bench.append(keyed(5..<6), to: "app.jsonl")
            try #require(truncate("\(bench.spool)/cut.jsonl", 0) == 0)
            try bench.append(keyed(6..<7), to: "cut.jsonl")
            try bench.waitUntilDelivered(8, quarantined: 1)
            unlink("\(bench.spool)/app.jsonl")
            let wanted = [
                "spoolship_spool_lines_too_long_total": 1, "spoolship_spool_truncations_total": 1,
                "spoolship_spool_rotations_total": 1, "spoolship_spool_files_removed_total": 2,
                #"spoolship_spool_files_finished_total{kind="drop"}"#: 1,
                #"spoolship_spool_files_finished_total{kind="append"}"#: 2,
                "spoolship_spool_lease_waits_total": 1,
            ]
            var figures = Figures("")
            try wait(
                .seconds(60),
                "the counters; \(figures.samples.filter { $0.key.hasPrefix("spoolship_spool_") })",
                every: .milliseconds(100)
            ) {
                figures = try bench.figures()
                return wanted.allSatisfy { name, least in
                    (name.contains("{") ? figures.value(name) : figures.total(name)) >= least
                }
            }
            #expect(try bench.figures().total("spoolship_spool_errors_total") == 0)
            #expect(try bench.figures().total("spoolship_spool_watch_overflows_total") == 0)
        }
    }
}
