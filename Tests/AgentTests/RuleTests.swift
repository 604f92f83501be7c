import Configuration
import Control
import Glibc
import Model
import Queue
import TestKit
import Testing

@testable import Agent

@Suite("Rules of the configuration in a running agent", .timeLimit(.minutes(2)))
struct RuleTests {
    private static let rules = """
        [session]
        mode = "off"
        [apps.shop]
        kind = "event"
        [[rule]]
        name = "no debug lines"
        when = "app == 'shop' && level < 'info'"
        discard = true
        [[rule]]
        set = { env = "prod" }
        """

    private func lines(_ agent: RunningAgent) -> [String] {
        (try? readFile("\(agent.directory)/out.jsonl"))?.split(separator: "\n").map(String.init) ?? []
    }

    @Test("rules act on events and records; discarded events are counted under the rule's name everywhere")
    func rulesApply() async throws {
        try await withAgent("[dispatch]\ninterval = \"1s\"\n" + RuleTests.rules) { agent in
            mkdir("\(agent.directory)/spool/shop", 0o755)
            try writeFile(
                "\(agent.directory)/spool/shop/a.jsonl",
                """
                {"name":"Order paid"}
                {"level":"debug","msg":"a record"}
                {"level":"error","msg":"another record"}

                """)
            #expect(await eventually { lines(agent).count == 2 })
            #expect(lines(agent).allSatisfy { $0.contains(#""env":"prod""#) })
            let status = try agent.client.request("GET", "/v1/status").json()
            #expect(
                status["rules"] == [
                    ["name": "no debug lines", "events": 1], ["name": "rule 2", "events": 2],
                ])
            let queue = await agent.service.parts?.queue
            let discarded = queue?.snapshot.discarded.filter { $0.events > 0 } ?? []
            #expect(discarded.map(\.reason) == ["rule/no debug lines"] && discarded.map(\.events) == [1])
        }
    }

    @Test("a reload applies other rules from the next event on, and refuses rules with mistakes as a whole")
    func reload() async throws {
        try await withAgent("[dispatch]\ninterval = \"1s\"\n" + RuleTests.rules) { agent in
            let path = "\(agent.directory)/spoolship.toml"
            let text = try readFile(path)
            try writeFile(path, text.replacing("env = \"prod\"", with: "env = \"test\""))
            #expect(try agent.client.request("POST", "/v1/reload").status == 200)
            mkdir("\(agent.directory)/spool/shop", 0o755)
            try writeFile("\(agent.directory)/spool/shop/a.jsonl", "{\"name\":\"a\"}\n")
            #expect(await eventually { lines(agent).count == 1 })
            #expect(lines(agent).first?.contains(#""env":"test""#) == true)
            try writeFile(path, text.replacing("level < 'info'", with: "levle < 'info'"))
            let refused = try agent.client.request("POST", "/v1/reload")
            #expect(refused.status == 400)
            #expect(String(decoding: refused.body, as: UTF8.self).contains("there is no name"))
        }
    }

    @Test("a mistake in a rule is reported with its position when the configuration is read")
    func place() throws {
        let directory = try TemporaryDirectory()
        let path = "\(directory.path)/spoolship.toml"
        try writeFile(
            path,
            "[[destination]]\nname = \"main\"\ntype = \"stdout\"\n"
                + RuleTests.rules.replacing("'info'", with: "'inof'"))
        let error = #expect(throws: ConfigurationError.self) { try Settings.loadWithRules(path: path) }
        let problem = try #require(error?.problems.first)
        #expect(problem.position?.line == 10 && problem.position?.column == 34)
        #expect(
            problem.message
                == "rule.\"no debug lines\".when: there is no level \"inof\"; levels are trace, debug, info, warn, error, fatal"
        )
    }

    @Test("a condition on what rules hide in the data layer is a mistake, in a rule's words")
    func hiddenMember() throws {
        let directory = try TemporaryDirectory()
        let path = "\(directory.path)/spoolship.toml"
        try writeFile(
            path,
            """
            [[destination]]
            name = "main"
            type = "stdout"
            [[rule]]
            name = "d"
            when = "data_layer.email != 'x'"
            discard = true
            [[rule]]
            redact = ["properties.email"]
            """)
        let error = #expect(throws: ConfigurationError.self) { try Settings.loadWithRules(path: path) }
        let problem = try #require(error?.problems.first)
        #expect(problem.position?.line == 6)
        #expect(
            problem.message
                == "rule.d.when: \"d\" reads from the data layer what rules hide there, so its value is unknown: "
                + "name the event's own member, such as properties.x")
    }
}
