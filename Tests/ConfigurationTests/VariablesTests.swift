import Model
import Testing

@testable import Configuration

@Suite("Environment variables")
struct VariablesTests {
    static let variables = [
        "HOST": "collector.example.com", "EMPTY": "", "TOKEN": "hunter2-hunter2-hunter2", "SIZE": "20MiB",
        "TRICK": "${TOKEN}", "_x1": "y",
    ]

    static func read(_ text: String) throws(ConfigurationError) -> Settings {
        try Settings.read([ConfigurationText(file: "t.toml", text: text)]) { variables[$0] }.settings
    }

    static func argument(_ text: String) throws(ConfigurationError) -> String? {
        try read("functions.f.command = [\"/bin/x\", \"\(text)\"]").functions["f"]?.command.last
    }

    @Test(
        "a string takes the values of variables",
        arguments: [
            ("https://${HOST}/in", "https://collector.example.com/in"),
            ("https://${HOST}:${NONE:-8443}/", "https://collector.example.com:8443/"),
            ("https://${EMPTY:-b}/", "https://b/"), ("https://a/${EMPTY}", "https://a/"),
            ("https://a/${_x1}", "https://a/y"),
            ("https://a/$${HOST}", "https://a/${HOST}"), ("https://a/$HOST$", "https://a/$HOST$"),
            ("https://a/$$${HOST}", "https://a/$${HOST}"),
            ("https://a/${TRICK}", "https://a/${TOKEN}"), ("https://a/${NONE:-}", "https://a/"),
            ("https://a/${NONE:-a:-b}", "https://a/a:-b"),
        ])
    func stringsAreFilled(text: String, value: String) throws {
        #expect(try VariablesTests.argument(text) == value)
    }

    @Test("sizes, lists and tables can contain variables; keys cannot")
    func everyStringIsFilled() throws {
        let settings = try VariablesTests.read(
            """
            queue.max_size = "${SIZE}"
            functions.f.command = ["/bin/${_x1}", '${HOST}']
            [[destination]]
            name = "a"
            url = "https://a"
            headers = { X-Key = "${TOKEN}" }
            """)
        #expect(settings.queue.maxSize == 20 << 20)
        #expect(settings.functions["f"]?.command == ["/bin/y", "collector.example.com"])
        #expect(settings.destinations[0].headers["X-Key"]?.revealed == "hunter2-hunter2-hunter2")
        let keys = MistakesTests.problems("[queue]\n\"${SIZE}\" = 1")
        #expect(keys.map(\.code) == [.unknownKey])
    }

    @Test(
        "a template of a text format keeps its fields",
        arguments: [
            ("${time:time} [${level}] ${message:rest}", "${time:time} [${level}] ${message:rest}"),
            ("$${HOST} $remote_addr ${HOST}", "${HOST} $remote_addr ${HOST}"),
            // A text that is one variable, with a default or without, is no template.
            ("${_x1}", "y"), ("${NONE:-nginx}", "nginx"), ("${message:rest}", "${message:rest}"),
        ])
    func templatesAreKept(text: String, value: String) throws {
        let settings = try VariablesTests.read(
            """
            [apps.web]
            read = ["/var/log/${_x1}.log"]
            parse = '\(text)'
            """)
        #expect(settings.apps["web"]?.read == ["/var/log/y.log"])
        #expect(settings.apps["web"]?.parse == value)
    }

    @Test(
        "an unset or invalid variable is a mistake with its place",
        arguments: [
            ("${NONE}", "the environment has no variable NONE; set it, or write ${NONE:-text} for a default"),
            ("a${", "${ without }; write $${ for a literal ${"), ("${}", "${} names no variable"),
            ("${1A}", "${1A} names no variable"), ("${A-b}", "${A-b} names no variable"),
            ("${A B}", "names no variable"),
            ("${A:b}", "names no variable"),
        ])
    func mistakesHaveTheirPlace(text: String, message: String) {
        let error = #expect(throws: ConfigurationError.self) {
            try VariablesTests.read("[agent]\nlog = \"info\"\nstate_directory = \"/\(text)\"\n")
        }
        #expect(error?.problems.count == 1, "\(error?.description ?? "")")
        #expect(error?.problems.first?.message.contains(message) == true, "\(error?.description ?? "")")
        #expect(error?.problems.first?.position == Position(file: "t.toml", line: 3, column: 19))
    }

    @Test(
        "ac24: the value of a variable appears in no message, whatever setting it was used in",
        arguments: [
            "[agent]\nlog = \"${TOKEN}\"", "[queue]\nmax_size = \"${TOKEN}\"",
            "[dispatch]\ninterval = \"${TOKEN}\"",
            "[agent]\nstate_directory = \"${TOKEN}\"", "[[destination]]\nname = \"a\"\nurl = \"${TOKEN}\"",
            "[retry]\nintervals = [\"1s\", \"${TOKEN}\"]", "[country]\ncode = \"${TOKEN}\"",
            "[stats]\nlisten = \"${TOKEN}\"",
            "[device]\nproperties.overrides = { model = 1, sdk_name = \"${TOKEN}\" }",
            "[queue]\ndurability = \"${TOKEN:-x}\"",
        ])
    func ac24_valuesAreNotQuoted(text: String) {
        let error = #expect(throws: ConfigurationError.self) { try VariablesTests.read(text) }
        let shown = error?.description ?? ""
        #expect(!shown.contains("hunter2"), "\(shown)")
        #expect(shown.contains("t.toml:"))
    }

    @Test("ac24: a token from the environment is masked where settings are printed")
    func ac24_tokensAreMasked() throws {
        let settings = try VariablesTests.read(
            "[[destination]]\nname = \"a\"\nurl = \"https://${HOST}/?key=${TOKEN}\"\ntoken = \"${TOKEN}\"")
        #expect(settings.destinations[0].token.source == .inline(Secret("hunter2-hunter2-hunter2")))
        let shown = settings.effective.compactMap { $0.value.map { $0.toml + $0.json.description } }.joined()
        #expect(shown.contains("collector.example.com"))
        #expect(!shown.contains("hunter2"))
    }

    @Test("values of containers have no variables")
    func containersReadNoVariables() throws {
        #expect(throws: ConfigurationError.self) {
            try Settings().setting(
                "dispatch.interval", to: .string("${INTERVAL:-6s}"), origin: .container("A"))
        }
    }
}
