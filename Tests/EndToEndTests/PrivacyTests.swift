import TestKit
import Testing

extension EndToEnd {
    /// `privacy prove`: the same proof that an officer runs, over all formats, shapes of events and places.
    @Suite("Privacy")
    struct PrivacyTests {
        private static let places =
            [
                "queue", "dead letters", "data layer", "files of the queue, while it runs", "tap",
                "destination of type file", "destination without consent",
            ]
            + ["app_center", "elasticsearch", "ga4", "json", "loki", "ndjson", "otlp", "splunk_hec"].map {
                "receiver, \($0)"
            }

        /// The last lines of the proof, by the place that they are about, and its exit code.
        private func prove(_ tag: String, path: String = "properties.email") throws -> (
            code: Int32, lines: [Substring]
        ) {
            let directory = try TemporaryDirectory()
            let file = "\(directory.path)/GTM-1"
            // The data layer is read, so that it is kept.
            try write(
                #"{"id":"GTM-1","version":1,"macros":{"m":{"type":"data_layer","path":"privacy_control"}},"rules":{"all":{"conditions":[]}},"tags":[{"name":"t","rules":["all"],\#(tag)},{"name":"s","type":"set","path":"layer","value":{"macro":"m"},"rules":["all"]}]}"#,
                to: file)
            let result = try run(spoolship, ["privacy", "prove", "--path", path, "--document", file])
            return (result.code, result.text.split(separator: "\n"))
        }

        @Test(
            "a redacted value appears in no format, shape or place, and its events arrive everywhere",
            arguments: [
                #""type":"redact","paths":["properties.email"]"#,
                #""type":"redact","with":"-","paths":["properties.email"]"#,
                #""type":"hash","paths":["properties.email"]"#,
            ])
        func nowhere(tag: String) throws {
            let (code, lines) = try prove(tag)
            #expect(code == 0, "\(lines.joined(separator: "\n"))")
            for place in PrivacyTests.places {
                let line = lines.first { $0.hasPrefix("  \(place) ") }
                #expect(line?.contains("not found") == true, "\(place): \(line ?? "no line")")
                #expect(line?.contains("and no other value") == false, "\(place): \(line ?? "no line")")
            }
        }

        @Test(
            "a value matched by a pattern appears nowhere, even if it is the event's id",
            arguments: ["properties.email", "id"])
        func found(path: String) throws {
            let (code, lines) = try prove(#""type":"redact","pattern":"email""#, path: path)
            #expect(code == 0, "\(lines.joined(separator: "\n"))")
        }

        @Test(
            "paths with dots are proved in both spellings, and paths as lists in their own",
            arguments: [
                (#"["user.email"]"#, "user.email", 0),
                (#"["process.command_line"]"#, "process.command_line", 0),
                (#"[["user.email"]]"#, #"["user.email"]"#, 0), (#"[["user.email"]]"#, "user.email", 1),
                (#"[["user","email"]]"#, "user.email", 1),
            ])
        func spellings(paths: String, path: String, code: Int32) throws {
            let result = try prove("\"type\":\"redact\",\"paths\":\(paths)", path: path)
            #expect(result.code == code, "\(result.lines.joined(separator: "\n"))")
        }

        @Test(
            "rules in the proof see the settings of app and country, as in the agent",
            arguments: [
                ("[country]\ncode = \"DE\"", "country != \"DE\""),
                ("[apps.shop]\ndefault_event_name = \"line\"", "name != \"line\""),
                (
                    "[apps.shop]\nread = [\"/srv/*.log\"]\nfirst_line = \"^x\"\ndefault_event_name = \"line\"",
                    "name != \"line\""
                ),
            ])
        func settings(settings: String, rule: String) throws {
            let directory = try TemporaryDirectory()
            let (file, configuration) = ("\(directory.path)/GTM-1", "\(directory.path)/main.toml")
            let when = rule.replacing("\"", with: "\\\"")
            try write(
                #"{"id":"GTM-1","version":1,"tags":[{"name":"t","type":"redact","paths":["properties.email"],"when":"\#(when)"}]}"#,
                to: file)
            try write(settings + "\n", to: configuration)
            let result = try run(
                spoolship,
                [
                    "privacy", "prove", "--path", "properties.email", "--document", file, "--config",
                    configuration,
                    "--app", "shop",
                ])
            #expect(result.code == 1 && result.text.contains("FOUND"), "\(result.text)")
        }

        @Test("a tag for another member leaves the value everywhere, and the proof says so")
        func everywhere() throws {
            let (code, lines) = try prove(#""type":"redact","paths":["properties.mail"]"#)
            #expect(code == 1)
            for place in PrivacyTests.places
            where place != "data layer" && place != "destination without consent" {
                let line = lines.first { $0.hasPrefix("  \(place) ") }
                #expect(line?.contains("FOUND") == true, "\(place): \(line ?? "no line")")
            }
        }

        @Test("tags that ship to destinations keep no event from the proof's receivers, whatever they name")
        func shipped() throws {
            let hidden = #""type":"redact","paths":["properties.email"]}"#
            let ship = #"{"name":"d","rules":["all"],"type":"ship","destinations":["ga4","file","holding"]"#
            let (code, lines) = try prove("\(hidden),\(ship)")
            #expect(code == 0, "\(lines.joined(separator: "\n"))")
        }

        @Test("without an event that arrives nothing is proved")
        func nothing() throws {
            let (code, lines) = try prove(
                #""type":"redact","paths":["properties.email"]},{"name":"d","rules":["all"],"type":"discard""#
            )
            #expect(code == 75, "\(lines.joined(separator: "\n"))")
        }
    }
}
