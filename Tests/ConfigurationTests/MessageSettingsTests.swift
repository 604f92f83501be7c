import Model
import TestKit
import Testing

@testable import Configuration

@Suite("Members of messages and traces")
struct MessageSettingsTests {
    /// A destination that takes the message out of events, and an app.
    private static func text(
        _ app: String, destination: String = "format = \"otlp\"\nurl = \"https://a/v1/logs\"",
        more: String = ""
    ) -> String {
        """
        [[destination]]
        name = "main"
        \(destination)
        \(more)
        [apps.shop]
        \(app)
        """
    }

    @Test("members of messages and traces are read, and printed so that they are read again")
    func read() throws {
        let text = MessageSettingsTests.text(
            "message = [\"caption\", \"record.message\"]",
            more: "otlp.trace = { id = [\"ctx.trace\"], span_id = [\"ctx.span\"] }")
        let settings = try Settings.read([ConfigurationText(file: "a.toml", text: text)]).settings
        #expect(settings.apps["shop"]?.message == ["caption", "record.message"])
        guard case .otlp(let otlp) = settings.destinations.first?.http.format else {
            Issue.record("not otlp")
            return
        }
        let trace = try #require(otlp.trace)
        #expect(trace.id == ["ctx.trace"] && trace.spanID == ["ctx.span"] && trace.flags == [])
        let printed = settings.effective.first { $0.path == "destination.main.otlp.trace" }?.value
        #expect(
            printed
                == .table([
                    .init(name: "id", value: .array([.string("ctx.trace")])),
                    .init(name: "span_id", value: .array([.string("ctx.span")])),
                ]))
        let shown = settings.effective.first { $0.path == "apps.shop.message" }
        #expect(shown?.value == .array([.string("caption"), .string("record.message")]))
        #expect(shown?.needsRestart == false)
    }

    @Test(
        "a value that can be no member or path is refused",
        arguments: [
            ("\"caption\"", "must be a list"), ("[]", "has 0 values; must have 1 to 16"),
            ("[\"\"]", "is empty"), ("[7]", "must be a string"), ("[\"a\", \"a\"]", "has a value twice"),
            ("[\"record..message\"]", "must be a member's name, or a path with dots"),
            ("[\".message\"]", "must be a member's name"), ("[\"record.\"]", "must be a member's name"),
            ("[\"a\\nb\"]", "control character"),
        ])
    func refused(value: String, reason: String) {
        let message = MistakesTests.problems(MessageSettingsTests.text("message = \(value)"))
        #expect(message.count == 1 && message.first?.severity == .error, "\(message.map(\.text))")
        #expect(message.first?.message.hasPrefix("apps.shop.message ") == true)
        #expect(message.first?.message.contains(reason) == true, "\(message.map(\.text))")
        for key in ["id", "span_id", "flags"] {
            let text = MessageSettingsTests.text("", more: "otlp.trace = { \(key) = \(value) }")
            let problems = MistakesTests.problems(text)
            #expect(problems.count == 1 && problems.first?.severity == .error, "\(problems.map(\.text))")
            #expect(problems.first?.message.contains(reason) == true, "\(problems.map(\.text))")
        }
    }

    @Test(
        "check names a message that no destination shows",
        arguments: [
            ("format = \"otlp\"\nurl = \"https://a/v1/logs\"", true),
            ("format = \"ndjson\"\nurl = \"https://a/\"", false),
            ("type = \"syslog\"\nurl = \"tls://a\"", false),
            (
                "type = \"syslog\"\nurl = \"tls://a\"\nsyslog = { message = \"text\","
                    + " structured_data = [\"a\"] }", true
            ),
            ("format = \"template\"\nurl = \"https://a/\"\nbody.event = \"{{event}}\"", false),
            ("format = \"template\"\nurl = \"https://a/\"\nbody.event = \"{{text:message}}\"", true),
        ])
    func useless(destination: String, isUsed: Bool) {
        let text = MessageSettingsTests.text("message = [\"caption\"]", destination: destination)
        let problems = MistakesTests.problems(text).map(\.message)
        #expect(problems.isEmpty == isUsed, "\(problems)")
        #expect(problems.allSatisfy { $0.hasPrefix("apps.shop.message decides nothing") }, "\(problems)")
    }

    @Test(
        "check judges a message by the app's own destinations, unless others can get its events",
        arguments: [
            ("", "", true), ("", "destinations = [\"arch\"]", false),
            ("", "destinations = [\"arch\", \"main\"]", true), ("by_default = false", "", false),
            ("by_default = false", "destinations = [\"main\"]", true),
            (
                "",
                "destinations = [\"arch\"]\n[[rule]]\nwhen = \"level == 'error'\"\nsend_to = [\"main\"]",
                true
            ),
        ])
    func ofOwnDestinations(main: String, app: String, isUsed: Bool) {
        let text = """
            [[destination]]
            name = "main"
            format = "otlp"
            url = "https://a/v1/logs"
            \(main)
            [[destination]]
            name = "arch"
            type = "file"
            path = "/var/log/arch"
            [apps.shop]
            message = ["caption"]
            \(app)
            """
        let problems = MistakesTests.problems(text).map(\.message)
        #expect(problems.isEmpty == isUsed, "\(problems)")
        let words = "apps.shop.message decides nothing: none of the app's destinations sends messages"
        #expect(problems.allSatisfy { $0.hasPrefix(words) }, "\(problems)")
    }
}
