import Glibc
import TestKit
import Testing

extension EndToEnd {
    @Suite("The README's tour")
    struct TourTests {
        /// A block of the tour: commands, or what the block before prints.
        private struct Block {
            let isCommands: Bool
            let text: String
        }

        private func blocks() throws -> [Block] {
            let readme = try contents(of: "\(GoldenFile.root)/README.md")
            let tour = try #require(readme.split(separator: "\n## ").first { $0.hasPrefix("A quick tour") })
            let parts = tour.split(separator: "```", omittingEmptySubsequences: false)
            return stride(from: 1, to: parts.count, by: 2).map { index in
                let kind = parts[index].prefix { $0 != "\n" }
                return Block(isCommands: kind == "sh", text: String(parts[index].dropFirst(kind.count + 1)))
            }
        }

        /// What differs from machine to machine and from run to run, out.
        private func steady(_ line: Substring) throws -> String {
            var text = String(line)
            let volatile: [(Regex<AnyRegexOutput>, String)] = [
                (try Regex("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}"), "ID"),
                (try Regex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z"), "TIME"),
                (try Regex("on [^ ]+, process [0-9]+, up [^:]+"), "on HOST"),
                (try Regex("acknowledged [0-9hms]+ ago"), "acknowledged AGO"),
                (try Regex("[0-9.]+ [KM]iB on disk"), "SIZE on disk"),
                (
                    try Regex(
                        "\"(host_name|os_name|os_version|kernel|time_zone_offset)\":(\"[^\"]*\"|[0-9-]+)"),
                    "FACT"
                ),
            ]
            for (pattern, word) in volatile { text = text.replacing(pattern, with: word) }
            return text
        }

        @Test(
            "pasted block by block, it prints what the README shows, line by line, and leaves nothing behind")
        func asPrinted() throws {
            let directory = try TemporaryDirectory()
            let tour = "\(directory.path)/tour"
            let (port, stats) = (try freePort(), try freePort())
            func moved(_ text: String) -> String {
                text.replacing("/tmp/tour", with: tour).replacing("8443", with: "\(port)")
                    .replacing("9465", with: "\(stats)")
            }
            let config = "--config \(tour)/spoolship.toml"
            // The tour sleeps; here a loaded machine gets the time that it needs.
            func until(_ condition: String) -> String {
                "for n in $(seq 600); do if \(condition); then break; fi; sleep 0.1; done"
            }
            let waits = [
                until("curl -s --cacert \(tour)/ca.pem https://127.0.0.1:\(port)/stats >/dev/null"),
                until("spoolship status \(config) >/dev/null 2>&1"),
                until(
                    "spoolship status \(config) | grep -q '5 read' && [ $(wc -l <\(tour)/events.ndjson) -eq 4 ]"
                )
                    + "\n" + until("spoolship status \(config) | grep -q 'nothing waits'"),
            ]
            let blocks = try blocks()
            #expect(blocks.count { $0.isCommands } >= 6 && blocks.count { !$0.isCommands } >= 5)
            var script = "mkdir \(directory.path)/bin; ln -s \(spoolship) \(directory.path)/bin/spoolship\n"
            script += "PATH=\(directory.path)/bin:$PATH\n"
            var pauses = 0
            for (index, block) in blocks.enumerated() where block.isCommands {
                script += "echo '### \(index)'\n"
                for line in moved(block.text).split(separator: "\n", omittingEmptySubsequences: false) {
                    // The program under test is built already.
                    if line == "make build" || line.hasPrefix("PATH=") { continue }
                    guard line.hasPrefix("sleep ") else {
                        script += "\(line)\n"
                        continue
                    }
                    try #require(pauses < waits.count, "the tour sleeps more often than before")
                    script += "\(waits[pauses])\n"
                    pauses += 1
                }
            }
            try write(script, to: "\(directory.path)/tour.sh")
            let program = try RunningProgram(
                "bash", ["\(directory.path)/tour.sh"], output: "\(directory.path)/printed")
            let code = try program.exit(within: .seconds(200))
            let printed = program.printed
            #expect(code == 0, "\(printed)")
            for (index, block) in blocks.enumerated() where !block.isCommands {
                let begin = try #require(printed.firstRange(of: "### \(index - 1)\n"), "\(printed)")
                let rest = printed[begin.upperBound...]
                let part = rest[..<(rest.firstRange(of: "### ")?.lowerBound ?? rest.endIndex)]
                let said = try part.split(separator: "\n", omittingEmptySubsequences: false).map(steady)
                for line in moved(block.text).split(separator: "\n") {
                    let wanted = try steady(line)
                    #expect(said.contains(wanted), "the README says: \(line)\nprinted was: \(part)")
                }
            }
            #expect(access(tour, F_OK) != 0)
        }
    }
}
