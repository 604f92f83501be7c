import EventLoops
import Glibc
import TestKit
import Testing

extension EndToEnd {
    @Suite(
        "File systems that hang while they are in use", .enabled(if: SilentFileSystem.isPossible),
        .timeLimit(.minutes(10)))
    struct HangingMountTests {
        /// A bindfs mount whose process can be stopped, so that nothing in it answers.
        private final class StoppableMount {
            /// The directory that is shown at the mount.
            let back: String
            let path: String
            private let program: RunningProgram

            init(in directory: String) throws {
                (back, path) = ("\(directory)/back", "\(directory)/mnt")
                for name in [back, path] { try #require(mkdir(name, 0o755) == 0) }
                program = try RunningProgram("bindfs", ["-f", back, path], output: "\(directory)/bindfs.log")
                let path = path
                try wait(.seconds(30), "the mount") {
                    try contents(of: "/proc/self/mountinfo").contains(" \(path) ")
                }
            }

            func stop() { program.send(SIGSTOP) }
            func goOn() { program.send(SIGCONT) }

            deinit {
                program.send(SIGCONT)
                umount2(path, Int32(MNT_DETACH))
                program.kill9()
            }
        }

        /// All that must answer, and name the mount, while the agent's other files go on.
        private func expectNamed(_ bench: Workbench, _ mount: StoppableMount) throws {
            func isNamed(_ text: String) -> Bool {
                text.contains(mount.path) && text.contains("file system does not answer")
            }
            try wait(.seconds(60), "the log to name the mount: \(bench.agentLog)") {
                isNamed(bench.agentLog)
            }
            try wait(.seconds(60), "readiness to name the mount", every: .milliseconds(200)) {
                let ready = try fetch("http://127.0.0.1:\(bench.statsPort)/readyz")
                return ready.status == 503 && isNamed(ready.body)
            }
            try wait(.seconds(60), "status to name the mount", every: .milliseconds(200)) {
                isNamed(try bench.command("status").text)
            }
            try wait(.seconds(60), "the metric", every: .milliseconds(200)) {
                try bench.figures().value("spoolship_mount_answers{mount=\"\(mount.path)\"}") == 0
            }
            #expect(try fetch("http://127.0.0.1:\(bench.statsPort)/healthz").status == 200)
            #expect(try bench.command("reload").code == 0)
            _ = try run(spoolship, ["check", "--config", bench.configuration])
        }

        /// Stops the agent while the mount hangs. The agent comes to its end; the kernel keeps the process as long
        /// as it has files open there, because FUSE is asked about each close.
        private func stop(_ bench: Workbench, _ mount: StoppableMount) throws {
            let agent = try #require(bench.agent)
            agent.send(SIGTERM)
            try wait(.seconds(20), "the agent to stop: \(bench.agentLog)") {
                bench.agentLog.contains("agent stopped")
            }
            mount.goOn()
            #expect(try bench.stopAgent() == 0)
        }

        @Test(
            "a log directory that hangs before the start, while it is read or idle delays nothing else",
            arguments: [true, false])
        func logDirectory(fromTheStart: Bool) throws {
            let bench = try Workbench()
            let mount = try StoppableMount(in: bench.path)
            for directory in ["\(mount.back)/log", "\(bench.path)/log"] {
                try #require(mkdir(directory, 0o755) == 0)
            }
            bench.settings["apps.far.read"] = "[\"\(mount.path)/log/*.log\"]"
            bench.settings["apps.near.read"] = "[\"\(bench.path)/log/*.log\"]"
            try bench.startReceiver()
            var count = 0
            func append(_ more: Int, to path: String) throws {
                _ = try run("sh", ["-c", "cat >> '\(path)' <<'EOF'\n\(keyed(count..<count + more))EOF"])
                count += more
            }
            if fromTheStart {
                mount.stop()
            }
            try bench.startAgent()
            if !fromTheStart {
                try append(20, to: "\(mount.back)/log/a.log")
                try bench.waitUntilDelivered(20)
                mount.stop()
            }
            let before = count
            try append(20, to: "\(bench.path)/log/a.log")
            try bench.append(keyed(count..<count + 20), to: "app.jsonl")
            count += 20
            try bench.waitUntilDelivered(before + 40)
            try expectNamed(bench, mount)
            try append(20, to: "\(mount.back)/log/a.log")
            // It goes on by itself, and a stop waits for no file system.
            if fromTheStart {
                mount.goOn()
            } else {
                try stop(bench, mount)
                #expect(bench.agentLog.contains("a file system does not answer: the rest of its lines"))
                try bench.startAgent()
            }
            try bench.waitUntilDelivered(count)
            try bench.expectOnce(Set((0..<count).map { "e\($0)" }), member: "key")
            #expect(try bench.stopAgent() == 0)
        }

        @Test(
            "a spool that hangs delays neither log files elsewhere nor any answer", arguments: [true, false])
        func spool(fromTheStart: Bool) throws {
            let bench = try Workbench()
            let mount = try StoppableMount(in: bench.path)
            for directory in ["\(mount.back)/spool", "\(mount.back)/spool/.spoolship", "\(bench.path)/log"] {
                try #require(mkdir(directory, 0o755) == 0)
            }
            bench.settings["spool.directory"] = "\"\(mount.path)/spool\""
            bench.settings["apps.near.read"] = "[\"\(bench.path)/log/*.log\"]"
            try bench.startReceiver()
            if fromTheStart {
                mount.stop()
            }
            try bench.startAgent()
            var count = 0
            func append(_ more: Int, to path: String) throws {
                _ = try run("sh", ["-c", "cat >> '\(path)' <<'EOF'\n\(keyed(count..<count + more))EOF"])
                count += more
            }
            if !fromTheStart {
                try append(20, to: "\(mount.back)/spool/app.jsonl")
                try bench.waitUntilDelivered(20)
                mount.stop()
            }
            let before = count
            try append(20, to: "\(bench.path)/log/a.log")
            try bench.waitUntilDelivered(before + 20)
            try expectNamed(bench, mount)
            try append(20, to: "\(mount.back)/spool/app.jsonl")
            if fromTheStart {
                mount.goOn()
            } else {
                try stop(bench, mount)
                try bench.startAgent()
            }
            try bench.waitUntilDelivered(count)
            try bench.expectOnce(Set((0..<count).map { "e\($0)" }), member: "key")
            try wait(.seconds(60), "readiness") {
                try fetch("http://127.0.0.1:\(bench.statsPort)/readyz").status == 200
            }
            #expect(try bench.stopAgent() == 0)
        }
    }
}
