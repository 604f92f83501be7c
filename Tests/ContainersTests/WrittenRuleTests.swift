import EventLoops
import Model
import TestKit
import Testing

@testable import Containers

@Suite("Rules of the configuration")
struct WrittenRuleTests {
    /// An engine with rules; each is a condition (nil: always) and actions.
    private func engine(_ rules: WrittenRule...) throws -> RuleEngine {
        var facts = AgentFacts()
        facts.hashKey = .trial
        var random = SplitMix64(seed: 1)
        let engine = RuleEngine(random: { random.next() })
        engine.use([try #require(try WrittenRules.compile(rules, facts: facts))])
        return engine
    }

    private func rule(_ name: String = "r", _ when: String? = nil, _ actions: (String, JSONValue)...)
        -> WrittenRule
    {
        WrittenRule(name: name, when: when, actions: actions.map { JSONValue.Member($0.0, $0.1) })
    }

    private func apply(
        _ engine: RuleEngine, _ line: String, app: String = "shop", file: String = "/var/log/shop.log"
    ) -> (fate: RuleEngine.Fate, line: String) {
        Array((line + "\n").utf8).withUnsafeBytes { bytes in
            let fate = engine.apply(to: bytes, app: app, file: file, priority: .normal, at: Trial.now)
            return (fate, String(decoding: engine.line.dropLast(), as: UTF8.self))
        }
    }

    private func holds(
        _ when: String, _ line: String, app: String = "shop", file: String = "/var/log/shop.log"
    ) throws
        -> Bool
    {
        apply(try engine(rule("r", when, ("discard", true))), line, app: app, file: file).fate != .kept
    }

    @Test(
        "levels compare by severity, in the words of any logger; without a level no comparison holds",
        arguments: [
            ("level < 'info'", ["trace", "debug"]),
            ("level <= 'info'", ["trace", "debug", "info", "notice"]),
            ("level >= 'error'", ["error", "critical", "fatal"]),
            ("level > 'warning'", ["error", "critical", "fatal"]),
            ("level == 'warning'", ["warning", "warn"]),
            ("level in ['err', 'FATAL']", ["error", "critical", "fatal"]),
            (
                "!(level < 'info') && level != 'fatal'",
                ["info", "notice", "warning", "warn", "error", "critical", "none"]
            ),
        ])
    func levels(when: String, expected: [String]) throws {
        for level in ["trace", "debug", "info", "notice", "warning", "warn", "error", "critical", "fatal"] {
            let found = try holds(when, #"{"name":"log","level":"\#(level)"}"#)
            #expect(found == expected.contains(level), "\(when) with \(level)")
        }
        #expect(try holds(when, #"{"name":"log"}"#) == expected.contains("none"))
        // pino's numbers.
        #expect(try holds("level < 'info'", #"{"name":"log","level":20}"#))
        #expect(try !holds("level < 'info'", #"{"name":"log","level":30}"#))
    }

    @Test("sizes compare as bytes; `file`, `message` and `app` are names in conditions")
    func names() throws {
        let big = #"{"name":"log","properties":{"size":2000000},"msg":"user logged in"}"#
        #expect(try holds("properties.size > '1.5MB'", big))
        #expect(try !holds("properties.size > '2MiB'", big))
        #expect(try holds("message contains 'logged'", big))
        #expect(try holds("message matches '^user'", big))
        #expect(try !holds("message contains 'logged'", #"{"name":"log","msg":7}"#))
        #expect(try holds("file starts_with '/var/log/'", big))
        #expect(try !holds("file starts_with '/var/log/'", big, file: ""))
        #expect(try holds("app == 'shop' && !(file ends_with '.json')", big))
    }

    @Test("each action is the engine's tag of that name, for events and records")
    func actions() throws {
        let record = #"{"level":"warn","msg":"ann@example.com paid","user":"ann","tmp":1,"name":"log"}"#
        func line(_ actions: (String, JSONValue)...) throws -> String {
            let rule = WrittenRule(name: "r", actions: actions.map { JSONValue.Member($0.0, $0.1) })
            return apply(try engine(rule), record).line
        }
        #expect(
            try line(("set", ["env": "prod", "service.version": "2.1.0", "labels": ["team": "web"]]))
                == #"{"level":"warn","msg":"ann@example.com paid","user":"ann","tmp":1,"name":"log","env":"prod","service":{"version":"2.1.0"},"labels":{"team":"web"}}"#
        )
        #expect(try line(("rename", ["user": "customer"])).contains(#""customer":"ann""#))
        #expect(try !line(("remove", ["tmp", "user"])).contains("tmp"))
        #expect(try line(("redact", ["patterns": ["email"]])).contains(#""msg":"[redacted] paid""#))
        #expect(try line(("redact", ["paths": ["user"], "with": "x"])).contains(#""user":"x""#))
        #expect(try !line(("redact", ["user"])).contains(#""user""#))
        let hashed = try line(("hash", ["user"]))
        #expect(!hashed.contains(#""user":"ann""#) && hashed.contains(#""user":"#))
        let routed = try engine(
            rule("r", "level >= 'warn'", ("send_to", ["pager", "main"]), ("priority", "critical")))
        #expect(apply(routed, record).fate == .kept)
        #expect(routed.destinations == ["main", "pager"] && routed.priority == .critical)
        // What hides comes before what renames: the order of the keys in the file does not matter.
        #expect(try !line(("rename", ["user": "customer"]), ("redact", ["user"])).contains("ann\""))
    }

    @Test("sample and throttle decide by a member, so that events with equal values stay together")
    func rates() throws {
        var sampled = rule("r", nil, ("sample", .double(0.5)))
        sampled.by = "properties.user"
        let sampling = try engine(sampled)
        func isKept(_ user: Int) -> Bool {
            apply(sampling, #"{"name":"n","properties":{"user":"u\#(user)"}}"#).fate == .kept
        }
        let kept = (0..<200).filter(isKept)
        #expect((60...140).contains(kept.count) && kept == (0..<200).filter(isKept))
        var throttled = rule("r", "app == 'shop'", ("throttle", ["events": 2, "seconds": 1]))
        throttled.by = "properties.user"
        let throttling = try engine(throttled)
        func fate(_ user: String) -> RuleEngine.Fate {
            apply(throttling, #"{"name":"n","properties":{"user":"\#(user)"}}"#).fate
        }
        #expect([fate("a"), fate("a"), fate("b")] == [.kept, .kept, .kept])
        #expect(fate("a") == .discarded(reason: "rule/r"))
    }

    @Test("rules act in their order on the event as it arrived; each is counted under its name")
    func orderAndCounts() throws {
        let engine = try engine(
            rule("prod", nil, ("set", ["env": "prod"]), ("remove", ["tmp"])),
            rule("no debug", "level < 'info'", ("discard", true)),
            rule("late", "event.env == 'prod'", ("set", ["late": true])))
        #expect(
            apply(engine, #"{"name":"log","level":"info","tmp":1}"#).line
                == #"{"name":"log","level":"info","env":"prod"}"#)
        #expect(apply(engine, #"{"name":"log","level":"debug"}"#).fate == .discarded(reason: "rule/no debug"))
        #expect(engine.counts.byRule == ["prod": 2, "no debug": 1])
        #expect(engine.counts.fired == ["rule": 5])
    }

    @Test("published documents act after the rules, on their result, and count under no rule")
    func beforeContainers() throws {
        let rules = try #require(
            try WrittenRules.compile([rule("env", nil, ("set", ["env": "prod"]))], facts: AgentFacts()))
        let document = Trial.document(
            #""tags":[{"name":"t","type":"set","path":"seen","value":true,"when":"event.env == 'prod'"}]"#)
        let container = try CompiledContainer(try ContainerDocument(reading: Array(document.utf8)))
        let engine = RuleEngine(random: { 0 })
        engine.use([rules, container])
        #expect(apply(engine, #"{"name":"n"}"#).line == #"{"name":"n","env":"prod","seen":true}"#)
        #expect(engine.counts.byRule == ["env": 1])
    }

    /// A rule with a mistake, and what is said of it.
    struct Wrong: Sendable {
        var when = "level == 'info'"
        var action = "discard"
        var value = JSONValue.bool(true)
        var key = "when"
        var column: Int?
        var message = ""
    }

    private static let wrong = [
        Wrong(when: "level < 'inof'", column: 9, message: "there is no level \"inof\""),
        Wrong(when: "levle < 'info'", column: 1, message: "there is no name \"levle\""),
        Wrong(when: "level == 'info' and app == 'a'", column: 17, message: "expected && or ||"),
        Wrong(when: "destination == 'main'", column: 1, message: "send_to"),
        Wrong(when: "message matches '('"),
        Wrong(action: "redact", value: ["email"], key: "redact", message: "patterns = [\"email\"]"),
        Wrong(action: "redact", value: ["patterns": ["("]], key: "redact"),
        Wrong(
            action: "rename", value: ["properties.a": "properties.b.c"], key: "rename",
            message: "renamed where it is"),
        Wrong(action: "set", value: ["id": "x"], key: "set", message: "id cannot be changed"),
        Wrong(action: "remove", value: ["name"], key: "remove", message: "name must stay"),
    ]

    @Test("a mistake is reported with rule, key and column, and what to write")
    func mistakes() throws {
        for wrong in WrittenRuleTests.wrong {
            let good = WrittenRule(name: "good", actions: [.init("set", ["a": 1])])
            let bad = WrittenRule(name: "bad", when: wrong.when, actions: [.init(wrong.action, wrong.value)])
            let found = WrittenRules.mistakes(of: [good, bad], facts: AgentFacts())
            #expect(found.map(\.rule) == [1] && found.map(\.isWarning) == [false])
            #expect(found.first?.key == wrong.key && found.first?.column == wrong.column, "\(found)")
            #expect(found.first?.message.contains(wrong.message) == true, "\(found)")
        }
    }

    @Test("all rules are checked, not only up to a mistake; a rule needs an action, and discard stands alone")
    func allMistakes() {
        let rules = [
            WrittenRule(name: "a", when: "x", actions: [.init("discard", true)]),
            WrittenRule(name: "b", actions: []),
            WrittenRule(name: "c", actions: [.init("discard", true), .init("set", ["a": 1])]),
            WrittenRule(name: "d", by: "app", actions: [.init("set", ["a": 1])]),
            WrittenRule(name: "e", actions: [.init("set", ["a": 1])]),
            WrittenRule(name: "e", actions: [.init("set", ["a": 1])]),
        ]
        let found = WrittenRules.mistakes(of: rules, facts: AgentFacts())
        #expect(found.map(\.rule) == [0, 1, 2, 3, 5])
        #expect(found.map(\.key) == ["when", nil, "discard", "by", "name"])
        #expect(found.allSatisfy { !$0.isWarning })
    }

    @Test("a discard on a hidden data layer member is a mistake in a rule, and inert in a published document")
    func discardOnHidden() throws {
        let hide = rule("hide", nil, ("redact", ["properties.email"]))
        for when in ["!(data_layer.email == 'x')", "data_layer.email == null"] {
            let found = WrittenRules.mistakes(
                of: [hide, rule("drop", when, ("discard", true))], facts: AgentFacts())
            #expect(found.map(\.rule) == [1] && found.first?.isWarning == false)
            #expect(found.first?.key == "when" && found.first?.message.contains("data layer") == true)
            let trial = try Trial(
                """
                "tags": [{"name": "hide", "type": "redact", "paths": ["properties.email"], "when": "name != 'x'"},
                         {"name": "drop", "type": "discard", "when": "\(when)"}]
                """)
            for number in 0..<20 {
                let outcome = trial.apply(#"{"name":"n","properties":{"email":"a\#(number)"}}"#)
                #expect(outcome.fate == .kept && outcome.tags == ["hide"])
            }
            #expect(
                trial.engine.containers[0].findings.contains { $0.isMistake && $0.path == "tags[1].rules" })
        }
        // The event's own member can be known.
        let known = WrittenRules.mistakes(
            of: [hide, rule("drop", "properties.email == 'x'", ("discard", true))], facts: AgentFacts())
        #expect(known == [])
    }

    @Test("a redaction with a condition is listed with it; an unconditional one is not")
    func conditionalHiding() throws {
        let rules = [
            rule("always", nil, ("redact", ["properties.email"])),
            rule("shop", "app == 'shop'", ("hash", ["properties.user"]), ("set", ["a": 1])),
            rule("debug", "level < 'info'", ("discard", true)),
        ]
        var facts = AgentFacts()
        facts.hashKey = .trial
        let compiled = try #require(try WrittenRules.compile(rules, facts: facts))
        #expect(compiled.conditionalHiding == [.init(name: "shop", condition: "app == 'shop'")])
        let document = Trial.document(
            """
            "rules": {"all": {"conditions": []}, "ok": {"conditions": [{"macro": "app", "equals": "a", "negate": true}]}},
            "tags": [{"name": "t", "type": "redact", "paths": ["p"], "rules": ["all"], "blocking_rules": ["ok"]},
                     {"name": "u", "type": "redact", "paths": ["p"], "rules": ["ok"]}]
            """)
        let container = try CompiledContainer(try ContainerDocument(reading: Array(document.utf8)))
        #expect(
            container.conditionalHiding == [
                .init(name: "t", condition: "none of ok holds"),
                .init(name: "u", condition: "app not equals \"a\""),
            ])
    }
}
