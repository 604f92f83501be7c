import Glibc
import TestKit
import Testing

extension EndToEnd {
    @Suite("diagnose")
    struct DiagnoseTests {
        private static let secrets = [
            "tok-5eeded-inline", "hdr-5eeded-value", "pw-5eeded-inline", "qry-5eeded-arg",
        ]

        /// A bench whose configuration is full of secrets, and whose queue, dead letters and quarantine of content.
        private func bench() throws -> Workbench {
            let bench = try Workbench()
            try bench.startReceiver("--marker", "never-to-be-accepted")
            bench.settings["destination.token"] = "\"tok-5eeded-inline\""
            bench.settings["destination.headers"] = "{ X-Key = \"hdr-5eeded-value\" }"
            bench.settings["destination2.name"] = "\"other\""
            bench.settings["destination2.url"] =
                "\"https://127.0.0.1:\(try freePort())/in?key=qry-5eeded-arg\""
            bench.settings["destination2.user"] = "\"somebody\""
            bench.settings["destination2.password"] = "\"pw-5eeded-inline\""
            try bench.startAgent()
            for (number, text) in ["plain", "never-to-be-accepted"].enumerated() {
                let event = #"{"name":"c0ntent-name","properties":{"key":"c0ntent-\#(text)"}}"#
                try bench.append(event + "\n", to: "c0ntent-free-name-\(number).jsonl")
            }
            try bench.append("c0ntent of a line that is no event\n", to: "app.jsonl")
            try wait(.seconds(30), "all to be read") {
                try bench.figures().total("spoolship_events_read_total") == 3
            }
            return bench
        }

        private func expectClean(_ text: String, sourceLocation: SourceLocation = #_sourceLocation) {
            for secret in DiagnoseTests.secrets {
                #expect(!text.contains(secret), "\(secret)", sourceLocation: sourceLocation)
                // Not even the characters by which its owner would know it.
                #expect(
                    !text.contains(String(secret.suffix(4)) + "\""), "\(secret)",
                    sourceLocation: sourceLocation)
            }
            for content in ["c0ntent-name", "c0ntent-plain", "never-to-be", "c0ntent of a line"] {
                #expect(!text.contains(content), "\(content)", sourceLocation: sourceLocation)
            }
        }

        @Test(
            "one text has all that a report needs, without secrets or content of events, with or without an agent"
        )
        func report() throws {
            let bench = try bench()
            // What was logged, too: a program that is called wrongly may say anything.
            try write("a line of the log with tok-5eeded-inline in it\n", to: "\(bench.path)/some.log")
            let words = ["diagnose", "--log", "\(bench.path)/some.log", "--config", bench.configuration]
            let report = try run(spoolship, words)
            #expect(report.code == 0)
            expectClean(report.text)
            for part in [
                "== program\nspoolship ", "kernel ", "max_size = ", "== status\nspoolship ", "ledger ",
                "\"destinations\": [", "a line of the log with **** in it", "queue.sqlite", "install-id",
                "c0ntent-free-name-0.jsonl",
            ] {
                #expect(report.text.contains(part), "\(part) is missing in:\n\(report.text)")
            }
            #expect(try bench.stopAgent() == 0)
            let file = "\(bench.path)/report.txt"
            let hashed = try run(spoolship, words + ["--hash-names", "--output", file])
            #expect(hashed.code == 0, "\(hashed)")
            let text = try contents(of: file)
            expectClean(text)
            #expect(text.contains("cannot reach") || text.contains("no agent"), "\(text)")
            #expect(!text.contains("c0ntent-free-name") && text.contains(".jsonl"), "\(text)")
            var status = stat()
            #expect(stat(file, &status) == 0 && status.st_mode & 0o777 == 0o600)
            // It overwrites nothing.
            #expect(try run(spoolship, words + ["--output", file]).code == 73)
        }

        @Test("a password in a refused librdkafka property is shown nowhere, however short it is")
        func kafkaProperties() throws {
            let bench = try Workbench()
            bench.settings["destination.type"] = "\"kafka\""
            bench.settings["destination.url"] = nil
            bench.settings["destination.kafka.brokers"] = "[\"127.0.0.1:9\"]"
            bench.settings["destination.kafka.topic"] = "\"events\""
            bench.settings["destination.kafka.options"] =
                "{ \"ssl.key.password\" = \"5eed\", \"linger.ms\" = \"51\" }"
            try bench.configure()
            let report = try run(
                spoolship, ["diagnose", "--log", "/dev/null", "--config", bench.configuration])
            #expect(report.code == 0 && report.text.contains("\"linger.ms\" = \"51\""), "\(report)")
            #expect(!report.text.contains("5eed"), "\(report)")
        }

        @Test("an invalid configuration is reported by places only, because its lines may contain secrets")
        func mistakes() throws {
            let bench = try Workbench()
            bench.settings["destination.tokenn"] = "\"tok-5eeded-inline\""
            try bench.configure()
            let report = try run(
                spoolship, ["diagnose", "--log", "/dev/null", "--config", bench.configuration])
            #expect(report.code == 0 && report.text.contains("unknown_key"), "\(report)")
            expectClean(report.text)
        }
    }
}
