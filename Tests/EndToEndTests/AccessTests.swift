import Glibc
import Testing

extension EndToEnd {
    @Suite("Unreadable files")
    struct AccessTests {
        /// An agent that is no superuser: `nobody`, where the tests are root's.
        private func startUnprivileged(_ bench: Workbench) throws -> RunningProgram {
            // The receiver's directory is its own.
            let authority = "\(bench.path)/ca.pem"
            try #require(try run("cp", [bench.caFile, authority]).code == 0 && chmod(authority, 0o644) == 0)
            bench.settings["destination.tls.ca_file"] = "\"\(authority)\""
            try bench.configure()
            // The build may lie where nobody else may go.
            var words = ["\(bench.path)/spoolship", "run", "--config", bench.configuration]
            try #require(try run("cp", [spoolship, words[0]]).code == 0)
            if getuid() == 0 {
                for path in [bench.path, bench.state] { try #require(chown(path, 65_534, 65_534) == 0) }
                words = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] + words
            }
            try #require(chmod(bench.path, 0o755) == 0 && chmod(bench.spool, 0o777) == 0)
            let agent = try RunningProgram(
                words[0], Array(words.dropFirst()), output: "\(bench.path)/agent.log")
            try bench.waitForAgent()
            return agent
        }

        @Test(
            "status, a metric and one log line name unreadable files, owner and remedy; once repaired all arrive"
        )
        func unreadableFilesAreTold() throws {
            let bench = try Workbench()
            try bench.startReceiver()
            let owner = String(cString: try #require(getpwuid(getuid())).pointee.pw_name)
            try bench.append(keyed(0..<3), to: "closed.jsonl")
            try #require(chmod("\(bench.spool)/closed.jsonl", 0) == 0)
            let agent = try startUnprivileged(bench)
            let draft = "\(bench.spool)/.draft"
            try write(keyed(3..<4), to: draft)
            try #require(chmod(draft, 0) == 0 && rename(draft, "\(bench.spool)/closed.json") == 0)
            try bench.append(keyed(4..<6), to: "open.jsonl")
            try bench.waitUntilDelivered(2)

            let refused = #"spoolship_spool_refused_files{reason="permission"}"#
            try wait(.seconds(30), "both to be counted") { try bench.figures().value(refused) == 2 }
            let status = try bench.command("status").text
            let json = try bench.command("status", "--json").text
            for name in ["closed.jsonl", "closed.json"] {
                let line =
                    "\(name) (owner \(owner)): the agent may not read it: chmod g+r (0640 or 0660), group spoolship"
                #expect(status.contains(line), "\(status)")
                #expect(json.contains(line), "\(json)")
            }
            // More bytes in it are no reason to say it again.
            try bench.append(keyed(6..<7), to: "closed.jsonl")
            try bench.append(keyed(7..<8), to: "open.jsonl")
            try bench.waitUntilDelivered(3)
            let lines = bench.agentLog.split(separator: "\n").filter { $0.contains("cannot access") }
            #expect(lines.count == 2, "\(bench.agentLog)")
            #expect(
                lines.allSatisfy { $0.contains("owner=\(owner)") && $0.contains("chmod g+r") }, "\(lines)")

            for name in ["closed.jsonl", "closed.json"] {
                try #require(chmod("\(bench.spool)/\(name)", 0o666) == 0)
            }
            try bench.waitUntilDelivered(8)
            try bench.expectOnce(Set((0..<8).map { "e\($0)" }), member: "key")
            try wait(.seconds(30), "nothing left to mend") { try bench.figures().value(refused) == 0 }
            #expect(try !bench.command("status").text.contains("may not read"))
            agent.send(SIGTERM)
            #expect(try agent.exit() == 0)
        }
    }

    @Suite("Many known files")
    struct KnownFilesTests {
        /// Bytes of a process's memory that are its own.
        private func privateBytes(of process: pid_t) throws -> Int {
            let line = try contents(of: "/proc/\(process)/status").split(separator: "\n")
                .first { $0.hasPrefix("RssAnon") }
            let number = try #require(line?.split(whereSeparator: \.isWhitespace).dropFirst().first)
            return try #require(Int(number)) * 1024
        }

        @Test("20,000 append files that stay cost less than 1,000 bytes each, and a new line in one is found")
        func knownFilesAreCheap() throws {
            let bench = try Workbench()
            let count = 20_000
            bench.settings["spool.after_read"] = "\"keep\""
            try bench.startReceiver()
            try bench.startAgent()
            try bench.append(keyed(0..<1), to: "first.jsonl")
            try bench.waitUntilDelivered(1)
            let before = try privateBytes(of: try #require(bench.agent).process)
            for folder in 0..<20 {
                try #require(mkdir("\(bench.spool)/app\(folder)", 0o755) == 0)
                for number in 0..<(count / 20) {
                    let serial = 1 + folder * (count / 20) + number
                    try bench.append(keyed(serial..<serial + 1), to: "app\(folder)/\(number).jsonl")
                }
            }
            try bench.waitUntilDelivered(1 + count, within: .seconds(240))
            let each = (try privateBytes(of: try #require(bench.agent).process) - before) / count
            print("\(each) bytes of private memory a known file")
            #expect(each < 1000)
            try bench.append(keyed(count + 1..<count + 2), to: "app7/77.jsonl")
            try bench.waitUntilDelivered(count + 2)
            // After a restart they are known still.
            #expect(try bench.stopAgent() == 0)
            try bench.startAgent()
            try bench.append(keyed(count + 2..<count + 3), to: "app19/999.jsonl")
            try bench.waitUntilDelivered(count + 3, within: .seconds(120))
            let again = (try privateBytes(of: try #require(bench.agent).process) - before) / count
            print("\(again) bytes after a restart")
            #expect(again < 1000, "what was kept of them is held twice")
            try bench.expectOnce(Set((0..<count + 3).map { "e\($0)" }), member: "key")
        }
    }
}
