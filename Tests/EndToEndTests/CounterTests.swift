import Glibc
import TestKit
import Testing

extension EndToEnd {
    /// Counters never fall within one life of the agent, whatever is done to it (32).
    @Suite("Counters never fall")
    struct CounterTests {
        /// What may happen between two scrapes.
        private enum Happening: CaseIterable {
            case events, badLines, markedEvents, receiverGoes, receiverComes, kill, stop
            case quarantineRetry, quarantinePurge, deadLettersRetry, deadLettersPurge, queuePurge
            case pause, resume, networkOff, networkOn, disable, enable, reload, dispatch, logLevel, interval
        }

        private static let steps = getenv("SPOOLSHIP_STEPS").flatMap { Int(String(cString: $0)) } ?? 60

        @Test("through random commands, kills and restarts no exported counter decreases within a process")
        func neverFall() throws {
            let seed = Seeds.one(32)
            var random = SplitMix64(seed: seed)
            let bench = try Workbench()
            bench.settings["queue.max_size"] = "\"256KiB\""
            bench.settings["spool.when_full"] = "\"evict\""
            bench.settings["retry.intervals"] = "[\"100ms\", \"200ms\"]"
            try bench.startReceiver("--marker", "BAD")
            try bench.startAgent()
            var last: [Substring: Double] = [:]
            var (isUp, lives, compared, happened) = (true, 1, 0, [Happening]())
            for _ in 0..<CounterTests.steps {
                let what = Happening.allCases.randomElement(using: &random) ?? .events
                happened.append(what)
                if what == .kill || what == .stop { (last, lives) = ([:], lives + 1) }
                try happen(what, bench, &isUp, &random)
                let answer = try fetch("http://127.0.0.1:\(bench.statsPort)/metrics")
                try #require(answer.status == 200)
                let counters = CounterTests.counters(answer.body)
                for (series, value) in counters {
                    let before = last[series] ?? 0
                    #expect(
                        value >= before,
                        "\(series) was \(before), is \(value); \(Seeds.again(seed)) \(happened)")
                    compared += 1
                }
                last.merge(counters) { $1 }
                // The two ledgers are right at every moment.
                #expect(Figures(answer.body).imbalances.isEmpty, "\(Seeds.again(seed)) \(happened.suffix(5))")
            }
            #expect(compared > CounterTests.steps * 50 && lives > 2, "\(compared) in \(lives) lives")
        }

        /// The samples of all counters, and those of histograms, which are counters as well.
        private static func counters(_ exposition: String) -> [Substring: Double] {
            var kinds: [Substring: Substring] = [:]
            var found: [Substring: Double] = [:]
            for line in exposition.split(separator: "\n") {
                let words = line.split(separator: " ")
                if words.count == 4, words[1] == "TYPE" { kinds[words[2]] = words[3] }
                guard !line.hasPrefix("#"), let space = line.lastIndex(of: " "),
                    let value = Double(line[line.index(after: space)...])
                else { continue }
                let name = line.prefix { $0 != "{" && $0 != " " }
                let ending = ["_bucket", "_count", "_sum"].first { name.hasSuffix($0) }
                let family = ending.map { name.dropLast($0.count) } ?? name
                if kinds[name] == "counter" || kinds[family] == "histogram" { found[line[..<space]] = value }
            }
            return found
        }

        private func happen(
            _ what: Happening, _ bench: Workbench, _ isUp: inout Bool, _ random: inout SplitMix64
        ) throws {
            let number = Int.random(in: 1...300, using: &random)
            switch what {
            case .events: try bench.append(lines(number, #"{"name":"a","p":"#, "}"), to: "a.jsonl")
            case .badLines: try bench.append(lines(number, "no JSON ", ""), to: "b.jsonl")
            case .markedEvents:
                try bench.append(lines(number % 7 + 1, #"{"name":"BAD","p":"#, "}"), to: "c.jsonl")
            case .receiverGoes:
                if isUp { try bench.stopReceiver() }
                isUp = false
            case .receiverComes:
                if !isUp { try bench.startReceiver("--marker", "BAD") }
                isUp = true
            case .kill:
                bench.killAgent()
                try bench.startAgent()
            case .stop:
                _ = try bench.stopAgent()
                try bench.startAgent()
            case .quarantineRetry: _ = try bench.command("quarantine", "retry")
            case .quarantinePurge: _ = try bench.command("quarantine", "purge", "--yes")
            case .deadLettersRetry: _ = try bench.command("dead-letters", "retry")
            case .deadLettersPurge: _ = try bench.command("dead-letters", "purge", "--yes")
            case .queuePurge: _ = try bench.command("queue", "purge", "--yes")
            case .pause: _ = try bench.command("pause")
            case .resume: _ = try bench.command("resume")
            case .networkOff: _ = try bench.command("network", "off")
            case .networkOn: _ = try bench.command("network", "on")
            case .disable: _ = try bench.command("disable", "--yes")
            case .enable: _ = try bench.command("enable")
            case .reload:
                bench.settings["queue.max_size"] = number % 2 == 0 ? "\"256KiB\"" : "\"512KiB\""
                try bench.configure()
                _ = try bench.command("reload")
            case .dispatch: _ = try bench.command("dispatch")
            case .logLevel: _ = try bench.command("log-level", number % 2 == 0 ? "info" : "debug")
            case .interval: _ = try bench.command("interval", number % 2 == 0 ? "1s" : "off")
            }
        }

        private func lines(_ count: Int, _ before: String, _ after: String) -> String {
            (0..<count).map { "\(before)\($0)\(after)\n" }.joined()
        }
    }
}
