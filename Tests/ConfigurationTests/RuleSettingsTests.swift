import Configuration
import Model
import Testing

@Suite("Rules as settings")
struct RuleSettingsTests {
    private static let head = "[[destination]]\nname = \"main\"\ntype = \"stdout\"\n"

    private func settings(_ text: String) throws -> Settings {
        try Settings.read([ConfigurationText(file: "spoolship.toml", text: RuleSettingsTests.head + text)])
            .settings
    }

    @Test("every action is read, and printed in a form that reads back")
    func everyAction() throws {
        let text = """
            [agent]
            hash_key = "file:/etc/spoolship/hash.key"
            [[rule]]
            name = "all"
            when = "app == 'shop' && level < 'info'"
            sample = 0.5
            by = "properties.user"
            throttle = { events = 100, per = "1m" }
            set = { service.version = "2.1.0", env = "prod", count = 1, ok = true, tags = ["a"] }
            rename = { "properties.usr" = "user" }
            remove = ["properties.debug"]
            redact = { patterns = ["email"], with = "x" }
            hash = ["properties.user"]
            priority = "critical"
            send_to = ["main"]
            [[rule]]
            redact = ["properties.email"]
            [[rule]]
            discard = false
            set = { a = 1 }
            """
        let found = try settings(text)
        #expect(
            found.rules[0].actions == [
                .init("sample", .double(0.5)), .init("throttle", ["events": 100, "seconds": 60]),
                .init("hash", ["properties.user"]), .init("redact", ["patterns": ["email"], "with": "x"]),
                .init("remove", ["properties.debug"]), .init("rename", ["properties.usr": "user"]),
                .init(
                    "set",
                    ["service": ["version": "2.1.0"], "env": "prod", "count": 1, "ok": true, "tags": ["a"]]),
                .init("priority", "critical"), .init("send_to", ["main"]),
            ])
        #expect(found.rules[1].actions == [.init("redact", ["properties.email"])])
        #expect(found.rules[2].actions.map(\.key) == ["set"])
        let printed = found.effective.filter { $0.path.hasPrefix("rule.") }
        let again = printed.compactMap { setting in setting.value.map { "\(setting.name) = \($0.toml)" } }
        let first = again.prefix { !$0.hasPrefix("redact = [\"properties.email") }.joined(separator: "\n")
        let reread = try settings(
            "[agent]\nhash_key = \"file:/etc/spoolship/hash.key\"\n[[rule]]\n\(first)\n")
        #expect(reread.rules[0] == found.rules[0])
    }

    @Test("a mistake has its place and says what to write")
    func mistakes() {
        let all: [(line: String, message: String, column: Int)] = [
            ("discards = true", "no setting discards in [rule.1]; did you mean discard?", 1),
            ("throttle = 5", "throttle must be { events = 100, per = \"1s\" }", 12),
            ("throttle = { events = 5 }", "throttle has no per", 12),
            ("throttle = { events = 5, per = 1 }", "needs a unit; write \"1s\"", 32),
            ("throttle = { events = 5, per = \"1500ms\" }", "whole seconds", 32),
            ("throttle = { event = 5 }", "has no member \"event\"", 14),
            ("redact = { with = \"x\" }", "has neither paths nor patterns", 10),
            ("set = { at = 2026-01-01 }", "date or time; write it in quotes", 14),
            ("sample = 2", "must be 0 to 1", 10),
            ("hash = [\"a\"]", "set agent.hash_key", 8),
            ("send_to = [\"mian\"]", "did you mean \"main\"?", 11),
            ("name = \"\"", "is empty", 8),
        ]
        for (line, message, column) in all {
            let problems = MistakesTests.problems(RuleSettingsTests.head + "[[rule]]\n\(line)\n")
            #expect(problems.count == 1, "\(line)")
            #expect(problems.first?.message.contains(message) == true, "\(problems.first?.message ?? "")")
            #expect(
                problems.first?.position?.line == 5 && problems.first?.position?.column == column, "\(line)")
        }
    }

    @Test("a key is a file or a credential; the value is not quoted, because it may be the key itself")
    func hashKey() throws {
        let named = try settings("[agent]\nhash_key = \"credential:hash-key\"\n")
        #expect(named.agent.hashKey?.path(credentials: "/run/c") == "/run/c/hash-key")
        let problems = MistakesTests.problems(RuleSettingsTests.head + "[agent]\nhash_key = \"s3cret\"\n")
        #expect(problems.count == 1 && problems.first?.message.contains("s3cret") == false)
    }

    @Test("a mistake found by the rule engine is placed at its character; in an escaped text, at the text")
    func placeOfColumn() {
        func place(_ when: String, _ column: Int) -> (Int?, String) {
            let text = RuleSettingsTests.head + "[[rule]]\nname = \"a\"\nwhen = \(when)\ndiscard = true\n"
            let judged = { (_: Settings) in
                [SettingMistake(path: "rule.a.when", column: column, message: "is wrong")]
            }
            do {
                _ = try Settings.read([ConfigurationText(file: "f", text: text)], judge: judged)
                return (nil, "")
            } catch {
                return (error.problems.first?.position?.column, error.problems.first?.message ?? "")
            }
        }
        #expect(place("\"app == 'a'\"", 5) == (13, "rule.a.when: is wrong"))
        #expect(place("'''app == 1'''", 1) == (11, "rule.a.when: is wrong"))
        #expect(place("\"app == \\\"a\\\" x\"", 12) == (8, "rule.a.when: column 12: is wrong"))
    }
}
