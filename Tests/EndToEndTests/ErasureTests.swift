import EventLoops
import Glibc
import Model
import TestKit
import Testing

extension EndToEnd {
    /// `erase` on a running agent and on the files of one that was stopped or killed.
    @Suite("Erasure")
    struct ErasureTests {
        private static let words = ["erase", "--yes", "--where", "properties.user == 'ann@example.com'"]

        /// Events of two users, every fifth of them Ann's, in spellings that the agent accepts.
        private func line(_ number: Int) -> String {
            let ann = ["ann@example.com", #"ann\u0040example.com"#, #"\u0061nn@example.com"#][number / 5 % 3]
            let user = number % 5 == 0 ? ann : "bob\(number)@example.com"
            return #"{"name":"a","key":"e\#(number)","properties":{"user":"\#(user)"}}"#
        }

        /// Files of the agent's state in which Ann is found, by their names.
        private func found(_ bench: Workbench) throws -> [String] {
            try WholeFile.names(in: bench.state).filter { name in
                guard let bytes = try WholeFile.bytes(of: "\(bench.state)/\(name)", atMost: 1 << 30) else {
                    return false
                }
                let text = String(decoding: bytes, as: UTF8.self)
                return ["ann@example.com", #"ann\u0040example.com"#, #"\u0061nn@example.com"#].contains(
                    where: text.contains)
            }
        }

        /// Forty ways to write an event of Ann's that mean the same; each has a marker of its own, `m0x` to
        /// `m39x`.
        private static func spellings(of name: String) -> [String] {
            /// A text with one character as an escape.
            func escaped(_ text: String, _ place: Int) -> String {
                let unit = Array(text.utf16)[place]
                let digits = String(unit, radix: 16, uppercase: place % 2 == 0)
                let before = text.prefix(place)
                return before + "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
                    + text.dropFirst(place + 1)
            }
            let ann = "ann@example.com"
            var bodies = (0..<15).map { #""properties":{"user":"\#(escaped(ann, $0))"}"# }
            bodies += (0..<10).map { #""\#(escaped("properties", $0))":{"user":"\#(ann)"}"# }
            bodies += (0..<4).map { #""properties":{"\#(escaped("user", $0))":"\#(ann)"}"# }
            let all = ann.utf16.map { "\\u00" + String($0, radix: 16) }.joined()
            bodies += [
                #""properties":{"user":"\#(all)"}"#,
                #""properties":{"user":"\#(all.replacing("6e", with: "6E"))"}"#,
                #""properties" : { "user" : "\#(ann)" } "#, "\"properties\":\t{\t\"user\":\t\"\(ann)\"\t}\t",
                #""properties":{"a":{"user":"bob"},"user":"\#(ann)"}"#,
                #""properties":{"user":"\#(ann)","b":["user","bob"]}"#,
                #""a":{"properties":{"user":"bob"}},"properties":{"user":"\#(ann)"}"#,
                #""properties":{"user":"\#(ann)"},"z":"\"properties\":{\"user\":\"bob\"}""#,
                #""properties":{"user.x":"bob","user":"\#(ann)"}"#,
                #""properties":{"":1,"user":"\#(ann)","é":"ü"}"#,
                #""properties":{"user":"\#(ann)","n":18446744073709551615}"#,
            ]
            return bodies.enumerated().map { #"{"name":"\#(name)","key":"m\#($0)x",\#($1)}"# }
        }

        @Test("a user is erased in forty spellings from queue and quarantine; what only looks alike stays")
        func manySpellings() throws {
            let bench = try Workbench()
            mkdir("\(bench.path)/schemas", 0o755)
            try WholeFile.replace(
                "\(bench.path)/schemas/bad.json", with: Array(#"{"required":["total"]}"#.utf8), mode: 0o644)
            bench.settings["schemas.directory"] = "\"\(bench.path)/schemas\""
            bench.settings["dispatch.interval"] = "\"1d\""
            try bench.startReceiver()
            try bench.startAgent()
            let (queued, bad) = (Self.spellings(of: "good"), Self.spellings(of: "bad"))
            #expect(queued.count == 40)
            let others = [
                #"{"name":"good","key":"o1","properties":{"user":"ann@example.co"}}"#,
                #"{"name":"good","key":"o2","user":"ann@example.com"}"#,
                #"{"name":"good","key":"o3","properties":{"User":"ann@example.com"}}"#,
                #"{"name":"good","key":"o4","properties":{"user":["ann@example.com"]}}"#,
                #"{"name":"good","key":"o5","properties":{"user":"ann\\u0040example.com"}}"#,
            ]
            try bench.append((queued + bad + others).map { $0 + "\n" }.joined(), to: "app.jsonl")
            try wait(.seconds(60), "all to be read; \(bench.agentLog)") {
                try bench.figures().total("spoolship_events_read_total") == 85
            }
            let receipt = try JSONValue(parsing: Array(try erase(bench).text.utf8))
            #expect(receipt["queue"]?["events"] == 40, "\(receipt)")
            #expect(receipt["quarantine"] == 40 && receipt["complete"] == true, "\(receipt)")
            #expect(try run(spoolship, ["dispatch", "--wait", "--config", bench.configuration]).code == 0)
            try bench.waitForOnce(Set((1...5).map { "o\($0)" }), member: "key", within: .seconds(60))
            bench.killAgent()
            // Events leave the queue compressed, so the quarantine's texts are what a search of files can find.
            let marks = try run("/usr/bin/grep", ["-raoE", "m([0-9]|[1-3][0-9])x", bench.state])
            // 1: nothing was found; 2: something could not be searched.
            #expect(marks.code == 1, "\(marks.code) \(marks.text)")
        }

        /// The marks of Ann's events, and her address whatever its first letter is written as, that are found in
        /// the files below a directory.
        private func leftovers(below directory: String) throws -> [String] {
            let found = try run("/usr/bin/grep", ["-raohE", "m[0-9]+x|nn@example", directory])
            return Set(found.text.split(separator: "\n").map(String.init)).sorted()
        }

        @Test("a user is erased in forty spellings from dead letters, data layer, sessions and archive")
        func everyPlace() throws {
            let bench = try Workbench()
            bench.settings["spool.after_read"] = "\"archive\""
            bench.settings["session.mode"] = nil
            bench.settings["retry.intervals"] = #"["100ms"]"#
            bench.settings["destination.compression"] = "\"none\""
            bench.settings["queue.compression"] = "\"none\""
            try bench.startReceiver("--marker", "\"dead\"")
            try bench.startAgent()
            // What the receiver takes shows that hers are refused for what they are.
            try bench.append(
                (0..<100).map { #"{"name":"o","key":"o\#($0)"}"# + "\n" }.joined(), to: "first.jsonl.1")
            try wait(.seconds(60), "the first ones; \(bench.agentLog)") {
                bench.receiverFigure("events") >= 100
            }
            let spelled = Self.spellings(of: "dead")
            // A session of a process with her name, and a layer with her address in forty members.
            let session = #"{"name":"s","process":"ann@example.com","key":"m40x"}"#
            let members = spelled.indices.map { #""k\#($0)":"\u0061nn@example.com""# }.joined(separator: ",")
            let push = #"{"type":"data_layer",\#(members)}"#
            // Between hers there is what the receiver takes: a destination that refuses all it gets is held, and then
            // asked once in ten seconds.
            let lines = spelled.flatMap { [$0, #"{"name":"o"}"#] } + [session, push]
            try bench.append(lines.map { $0 + "\n" }.joined(), to: "app.jsonl.1")
            try wait(.seconds(300), "hers to be refused; \(bench.agentLog.suffix(2000))") {
                try bench.figures().total("spoolship_deliveries_dead_lettered_total") == 40
                    && bench.figures().total("spoolship_deliveries_queued") == 0
            }
            let archive = "\(bench.spool)/.spoolship/archive"
            try wait(.seconds(60), "the file in the archive; \(bench.agentLog.suffix(2000))") {
                try leftovers(below: archive).count > 40
            }
            #expect(try leftovers(below: bench.state).count >= 40)
            let receipt = try JSONValue(parsing: Array(try erase(bench).text.utf8))
            #expect(receipt["dead_letters"]?["events"] == 40, "\(receipt)")
            #expect(receipt["data_layers"] == 1 && receipt["sessions"] == 1, "\(receipt)")
            // The push, too.
            #expect(receipt["archive"]?["events"] == 41 && receipt["complete"] == true, "\(receipt)")
            let again = try JSONValue(parsing: Array(try erase(bench).text.utf8))
            #expect(again["dead_letters"]?["events"] == 0 && again["data_layers"] == 0, "\(again)")
            // Her process is what another condition names.
            #expect(try leftovers(below: bench.spool) == ["m40x", "nn@example"])
            let rest = try run(
                spoolship,
                [
                    "erase", "--yes", "--where", "event.process == 'ann@example.com'", "--config",
                    bench.configuration,
                ])
            #expect(rest.code == 0, "\(rest)")
            bench.killAgent()
            #expect(try leftovers(below: bench.state) == [])
            #expect(try leftovers(below: bench.spool) == [])
            try bench.startAgent()
            #expect(try bench.command("dead-letters", "list").text == "")
            try bench.expectBalance()
            #expect(try bench.stopAgent() == 0)
        }

        private func erase(_ bench: Workbench, _ more: String...) throws -> (code: Int32, text: String) {
            try run(spoolship, ErasureTests.words + more + ["--config", bench.configuration])
        }

        @Test(
            "a user is erased during an outage, through a kill, and from the files; other events arrive once",
            arguments: ["none", "gzip"])
        func killed(compression: String) throws {
            let seed = Seeds.one(58)
            var random = SplitMix64(seed: seed)
            let bench = try Workbench()
            bench.settings["retry.intervals"] = #"["100ms", "200ms"]"#
            bench.settings["destination.compression"] = "\"\(compression)\""
            try bench.startReceiver("--fail", "503", "--probability", "1")
            try bench.startAgent()
            for file in 0..<20 {
                let lines = (0..<200).map { line(file * 200 + $0) + "\n" }
                try bench.append(lines.joined(), to: "app-\(file).jsonl")
            }
            try bench.append(#"{"name":"cut","properties":{"user":"ann@example.com""# + "\n", to: "cut.jsonl")
            try wait(.seconds(30), "all to be read; \(bench.agentLog)") {
                try bench.figures().total("spoolship_events_read_total") == 4001
            }
            let trial = try erase(bench, "--dry-run")
            #expect(trial.code == 0 && trial.text.contains("\"events\": "), "\(trial.text)")
            for _ in 0..<3 {
                let command = try RunningProgram(
                    spoolship, ErasureTests.words + ["--config", bench.configuration],
                    output: "\(bench.path)/erase.log"
                )
                usleep(UInt32.random(in: 0...60_000, using: &random))
                bench.killAgent()
                _ = try command.exit(within: .seconds(90))
                try bench.startAgent()
                try bench.expectBalance()
            }
            bench.killAgent()
            let offline = try erase(bench)
            #expect(offline.code == 0, "seed \(seed): \(offline.text)")
            #expect(try found(bench) == [], "seed \(seed)")
            try bench.startAgent()
            try bench.expectBalance()
            let again = try JSONValue(parsing: Array(try erase(bench).text.utf8))
            #expect(
                again["queue"]?["events"] == 0 && again["quarantine"] == 0 && again["complete"] == true,
                "\(again)")
            try bench.stopReceiver()
            try bench.startReceiver()
            let others = Set((0..<4000).filter { $0 % 5 != 0 }.map { "e\($0)" })
            try bench.waitForOnce(others, member: "key", within: .seconds(60))
            #expect(try bench.stopAgent() == 0)
        }
    }
}
