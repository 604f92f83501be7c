import Containers
import Model
import TestKit
import Testing

/// Conditions that are one expression.
@Suite("A condition as one expression")
struct WhenTests {
    /// What a term says, and the same as a condition of a rule; the texts are from few values, so that both come up.
    private static let atoms = [
        (#"name == "a""#, #"{"macro":"event","equals":"a"}"#),
        ("event != 'b'", #"{"macro":"event","equals":"b","negate":true}"#),
        ("properties.n < 5", #"{"macro":"n","less":5}"#),
        ("properties.n>=-0.5", #"{"macro":"n","greater_or_equal":-0.5}"#),
        (#"properties["x.y"] == null"#, #"{"macro":"xy","equals":null}"#),
        (
            "event.level starts_with 'ERR' ignore_case",
            #"{"macro":"level","starts_with":"ERR","ignore_case":true}"#
        ),
        ("event.level matches '^e.*r$'", #"{"macro":"level","matches":"^e.*r$"}"#),
        ("`the n` > properties.m", #"{"macro":"the n","greater":{"macro":"m"}}"#),
        ("properties.yes == true", #"{"macro":"yes","equals":true}"#),
        ("country contains 'D'", #"{"macro":"country","contains":"D"}"#),
    ]
    private static let macros = """
        "the n": {"type":"event_property","path":"n"}, "n": {"type":"event_property","path":"n"},
        "m": {"type":"event_property","path":"m"}, "xy": {"type":"event_property","path":["x.y"]},
        "yes": {"type":"event_property","path":"yes"}, "level": {"type":"event_member","path":"level"}
        """

    private indirect enum Tree {
        case atom(Int)
        case not(Tree)
        case join([Tree], isAnd: Bool)

        init(depth: Int, using random: inout SplitMix64) {
            switch Int.random(in: 0..<4, using: &random) {
            case 0 where depth > 0: self = .not(Tree(depth: depth - 1, using: &random))
            case 1 where depth > 0, 2 where depth > 0:
                let parts = (0..<Int.random(in: 2...3, using: &random)).map { _ in
                    Tree(depth: depth - 1, using: &random)
                }
                self = .join(parts, isAnd: Bool.random(using: &random))
            default: self = .atom(Int.random(in: 0..<WhenTests.atoms.count, using: &random))
            }
        }

        var text: String {
            switch self {
            case .atom(let number): WhenTests.atoms[number].0
            case .not(let tree): "!(\(tree.text))"
            case .join(let trees, let isAnd):
                "(" + trees.map(\.text).joined(separator: isAnd ? " && " : "||") + ")"
            }
        }

        func holds(_ atoms: [Bool]) -> Bool {
            switch self {
            case .atom(let number): atoms[number]
            case .not(let tree): !tree.holds(atoms)
            case .join(let trees, let isAnd):
                isAnd ? trees.allSatisfy { $0.holds(atoms) } : trees.contains { $0.holds(atoms) }
            }
        }
    }

    @Test("an expression holds exactly if its terms do, each as a rule with one condition")
    func agreesWithConditions() throws {
        let seed = Seeds.one(13)
        var random = SplitMix64(seed: seed)
        var held = 0
        var compiled = 0
        let words: (inout SplitMix64) -> String = { random in
            ["\"a\"", "\"b\"", "\"5\"", "4", "-0.5", "5.0", "true", "null", "\"error\"", "\"DE\"", "[1]"]
                .randomElement(using: &random) ?? "1"
        }
        let rules = Self.atoms.enumerated().map { "\"r\($0)\":{\"conditions\":[\($1.1)]}" }
        let tags = Self.atoms.indices.map {
            "{\"name\":\"t\($0)\",\"type\":\"prioritise\",\"priority\":\"critical\",\"rules\":[\"r\($0)\"]}"
        }
        for _ in 0..<150 {
            let tree = Tree(depth: 4, using: &random)
            let when = JSONValue.string(tree.text)
            let all =
                tags + ["{\"name\":\"e\",\"type\":\"prioritise\",\"priority\":\"critical\",\"when\":\(when)}"]
            let text =
                "\"macros\":{\(Self.macros)},\"rules\":{\(rules.joined(separator: ","))},\"tags\":[\(all.joined(separator: ","))]"
            let trial: Trial
            do {
                trial = try Trial(text)
            } catch let error as ContainerError {
                // Beyond the bound, or never true.
                #expect(error.code == .limit || error.message.contains("never"), "\(error) \(tree.text)")
                continue
            }
            compiled += 1
            for _ in 0..<20 {
                let name = words(&random)
                let event =
                    "{\"name\":\(name.hasPrefix("\"") ? name : "\"a\""),\"level\":\(words(&random)),\"country\":\(words(&random)),"
                    + "\"properties\":{\"n\":\(words(&random)),\"m\":\(words(&random)),\"x.y\":\(words(&random)),\"yes\":\(words(&random))}}"
                let fired = Set(trial.apply(event).tags)
                let atoms = Self.atoms.indices.map { fired.contains("t\($0)") }
                #expect(
                    fired.contains("e") == tree.holds(atoms),
                    "\(Seeds.again(seed))\n\(tree.text)\n\(event)\n\(fired)")
                if fired.contains("e") { held += 1 }
            }
        }
        #expect(compiled > 100 && held > 500, "\(compiled) compiled, \(held) held")
    }

    private static let paid =
        #""when":"name == 'Order paid' && (properties.amount > 100 || country in ['DE', 'AT'])""#

    @Test("an expression replaces eight lines; other names cost one look-up; trials explain each term")
    func example() throws {
        let trial = try Trial("\"tags\":[{\"name\":\"large\",\"type\":\"discard\",\(Self.paid)}]")
        for (event, isDiscarded) in [
            (#"{"name":"Order paid","properties":{"amount":100.5}}"#, true),
            (#"{"name":"Order paid","country":"AT"}"#, true),
            (#"{"name":"Order paid","country":"FR","properties":{"amount":100}}"#, false),
            (#"{"name":"Order","country":"AT","properties":{"amount":1e9}}"#, false),
        ] {
            let fate = trial.apply(event).fate
            // The ledger counts a discard under the tag's name.
            #expect((fate == .discarded(reason: "GTM-1/large")) == isDiscarded, "\(event) \(fate)")
        }
        func concerns(_ name: String) -> Bool {
            Array(name.utf8).withUnsafeBufferPointer { trial.engine.mayConcern(name: $0) }
        }
        #expect(concerns("Order paid") && !concerns("Order"))

        let text = Trial.document(
            "\"rules\":{\"r\":{\(Self.paid)}},\"tags\":[{\"name\":\"t\",\"type\":\"discard\",\"rules\":[\"r\"]}]"
        )
        let trials = try ContainerTrials(try ContainerDocument(reading: Array(text.utf8)), now: Trial.now)
        let shown = try #require(
            try trials.run(
                Array(#"{"name":"Order paid","country":"AT","properties":{"amount":5}}"#.utf8), app: "shop"))
        let rule = try #require(shown.tags.first?.rules.first)
        #expect(
            shown.tags[0].rules.count == 1 && rule.holds && rule.expression?.hasPrefix("name == ") == true)
        #expect(
            rule.conditions.map(\.condition.macro) == ["name", "properties.amount", "country", "country"])
        #expect(rule.conditions.map(\.holds) == [true, false, false, true])
        #expect(rule.conditions[1].value == "5")
    }

    @Test("rules, collections, blocking rules and rollouts take expressions")
    func everywhere() throws {
        let trial = try Trial(
            """
            "macros": {"c": {"type": "value_collection", "rules": ["either"], "values": {"v": 1}},
                       "v": {"type": "value", "key": "v"}},
            "rules": {"either": {"when": "name == 'a' || name == 'b'", "conditions": [{"macro": "app", "equals": "shop"}]},
                      "nobody": {"when": "name == 'a' || name == 'b'", "rollout": {"percent": 0}}},
            "tags": [{"name": "yes", "type": "set", "path": "v", "value": {"macro": "v"}, "rules": ["either"]},
                     {"name": "no", "type": "discard", "rules": ["nobody"]},
                     {"name": "others", "type": "prioritise", "priority": "critical", "when": "name != null", "blocking_rules": ["either"]}]
            """)
        #expect(trial.apply(#"{"name":"b"}"#)["v"] == 1)
        #expect(
            trial.apply(#"{"name":"b"}"#).tags == ["yes"] && trial.apply(#"{"name":"c"}"#).tags == ["others"])
        #expect(trial.apply(#"{"name":"b"}"#, app: "other").tags == ["others"])
    }

    @Test("mistakes are reported with their column; an unknown name is a mistake")
    func mistakes() {
        for (text, says) in [
            ("", "column 1: expected the name"), ("name", "column 5: expected ==, !="),
            ("name == ", "column 9: expected a value"),
            ("nane == 'a'", "column 1: there is no macro \"nane\""),
            ("`nane` == 'a'", "there is no macro"),
            ("properties.n < 'a'", "column 19: what less compares with must be a number"),
            ("properties.n contains 5", "column 24: what contains"),
            ("name matches app", "must be a regular expression"),
            ("name == 'a' name == 'b'", "column 13: expected && or ||"),
            ("(name == 'a'", "column 13: expected )"),
            ("name == 'a", "column 9: the text does not end"), ("name in 'a'", "expected a list"),
            ("name in ['a' 'b']", "column 14: expected , or ]"), ("properties == 'a'", "there is no macro"),
            ("event.a. == 1", "is not a path"), ("properties.n == 12345678901234567890123", "more digits"),
            ("name == 'a' && name != 'a'", "can never hold"), ("name == {}", "column 9: expected the name"),
            ("name == 'é' & app == 'x'", "column 13: expected && or ||"),
            (String(repeating: "(", count: 40), "levels deep"),
            (
                (0..<9).map { "(properties.a\($0) == 1 || properties.b\($0) == 1)" }.joined(
                    separator: " && "),
                "more than 256 alternatives"
            ),
            ("name matches '('", "regular expression cannot be used"),
        ] {
            for (document, path) in [
                (
                    "\"tags\":[{\"name\":\"t\",\"type\":\"discard\",\"when\":\(JSONValue.string(text))}]",
                    "tags[0].when"
                ),
                ("\"rules\":{\"r\":{\"when\":\(JSONValue.string(text))}}", "rules.r.when"),
            ] {
                var found: ContainerError?
                do {
                    _ = try Trial(document)
                } catch { found = error as? ContainerError }
                #expect(
                    found?.path == path && found?.message.contains(says) == true,
                    "\(text): \(found?.description ?? "taken")")
            }
        }
        let review = DocumentReview(
            Array(
                #"{"id":"A","version":1,"tags":[{"name":"t","type":"discard","when":"x"},{"name":"u","type":"y"}]}"#
                    .utf8))
        #expect(review.findings.count == 2 && review.findings.first?.column == 67, "\(review.findings)")
    }
}
