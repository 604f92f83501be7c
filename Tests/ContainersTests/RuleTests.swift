import Containers
import Model
import TestKit
import Testing

@Suite("Rules")
struct RuleTests {
    /// Whether one condition holds for an event whose property `p` is the given JSON text (none: no such property).
    private func holds(_ condition: String, _ value: String?) throws -> Bool {
        let trial = try Trial(
            """
            "macros": {"p": {"type": "event_property", "path": "p"}},
            "rules": {"r": {"conditions": [{"macro": "p", \(condition)}]}},
            "tags": [{"name": "t", "type": "prioritise", "priority": "critical", "rules": ["r"]}]
            """)
        let properties = value.map { "{\"p\":\($0)}" } ?? "{}"
        return trial.apply("{\"name\":\"n\",\"properties\":\(properties)}").tags == ["t"]
    }

    struct Case: Sendable, CustomTestStringConvertible {
        let condition: String
        let value: String?
        let holds: Bool
        var testDescription: String { "\(condition) for \(value ?? "nothing")" }

        init(_ condition: String, _ value: String?, _ holds: Bool) {
            self.condition = condition
            self.value = value
            self.holds = holds
        }
    }

    static let cases: [Case] = [
        Case(#""equals": "a""#, #""a""#, true), Case(#""equals": "a""#, #""A""#, false),
        Case(#""equals": "a", "ignore_case": true"#, #""A""#, true),
        Case(#""equals": "straße É", "ignore_case": true"#, #""STRAßE é""#, true),
        Case(#""equals": "a", "negate": true"#, #""b""#, true),
        Case(#""equals": "a", "negate": true"#, nil, true),
        Case(#""equals": "a""#, #""\u0061""#, true), Case(#""equals": "5""#, "5", true),
        Case(#""equals": 5"#, #""5""#, true),
        Case(#""equals": 5"#, "5.0", true), Case(#""equals": 5"#, "5e0", true),
        Case(#""equals": 5"#, "6", false),
        Case(#""equals": 9007199254740993"#, "9007199254740992", false),
        Case(#""equals": true"#, "true", true),
        Case(#""equals": "true""#, "true", true), Case(#""equals": null"#, nil, true),
        Case(#""equals": null"#, "null", true), Case(#""equals": null"#, #""null""#, false),
        Case(#""equals": "null""#, "null", false), Case(#""equals": "{}""#, "{}", false),
        Case(#""contains": "b""#, #""abc""#, true), Case(#""contains": """#, #""abc""#, true),
        Case(#""contains": "B", "ignore_case": true"#, #""abc""#, true),
        Case(#""contains": "x""#, #""abc""#, false),
        Case(#""contains": "2""#, "123", true), Case(#""contains": "a""#, nil, false),
        Case(#""starts_with": "ab""#, #""abc""#, true), Case(#""starts_with": "abcd""#, #""abc""#, false),
        Case(#""starts_with": "AB", "ignore_case": true"#, #""abc""#, true),
        Case(#""ends_with": "bc""#, #""abc""#, true), Case(#""ends_with": "bc""#, #""bcd""#, false),
        Case(#""ends_with": "BC", "ignore_case": true"#, #""abc""#, true),
        Case(#""matches": "^a.c$""#, #""abc""#, true), Case(#""matches": "b+""#, #""abbc""#, true),
        Case(#""matches": "^b""#, #""abc""#, false),
        Case(#""matches": "^B", "ignore_case": true"#, #""bc""#, true),
        Case(#""matches": "^é.$""#, #""éa""#, true), Case(#""matches": "^12$""#, "12", true),
        Case(#""less": 5"#, "4", true), Case(#""less": 5"#, "5", false), Case(#""less": 5"#, #""4.5""#, true),
        Case(#""less": 5"#, #""four""#, false), Case(#""less": 5, "negate": true"#, #""four""#, true),
        Case(#""less": 5"#, nil, false), Case(#""less_or_equal": 5"#, "5", true),
        Case(#""less_or_equal": 5"#, "5.1", false), Case(#""greater": 5"#, "5", false),
        Case(#""greater": -1"#, "-0.5", true), Case(#""greater_or_equal": 5"#, "5.0", true),
        Case(#""greater": 9007199254740992"#, "9007199254740993", true), Case(#""greater": 1"#, "[2]", false),
        Case(#""equals": {"macro": "event"}"#, #""n""#, true),
        Case(#""greater": {"macro": "event"}"#, "1", false),
    ]

    @Test("tm12: each predicate works, with negate and ignore_case", arguments: cases)
    func tm12_predicates(_ example: Case) throws {
        #expect(try holds(example.condition, example.value) == example.holds)
    }

    @Test(
        "tm12: all conditions of a rule must hold; a tag fires by any of its rules, unless a blocking rule holds"
    )
    func tm12_rulesAndBlocking() throws {
        let trial = try Trial(
            """
            "macros": {"category": {"type": "event_property", "path": "Category"},
                       "test": {"type": "event_property", "path": "test"}},
            "rules": {"music": {"conditions": [{"macro": "event", "equals": "Video clicked"},
                                               {"macro": "category", "equals": "Music"}]},
                      "start": {"conditions": [{"macro": "event", "equals": "Start"}]},
                      "test": {"conditions": [{"macro": "test", "equals": true}]}},
            "tags": [{"name": "t", "type": "prioritise", "priority": "critical", "rules": ["music", "start"],
                      "blocking_rules": ["test"]}]
            """)
        #expect(
            trial.apply(#"{"name":"Video clicked","properties":{"Category":"Music"}}"#).priority == .critical)
        #expect(
            trial.apply(#"{"name":"Video clicked","properties":{"Category":"News"}}"#).priority == .normal)
        #expect(trial.apply(#"{"name":"Start"}"#).tags == ["t"])
        #expect(trial.apply(#"{"name":"Start","properties":{"test":true}}"#).tags == [])
        #expect(trial.apply(#"{"name":"Other","properties":{"Category":"Music"}}"#).tags == [])
    }

    @Test("tm17: containers apply in their order, each to the result of those before")
    func tm17_order() throws {
        let rename = """
            {"id": "A", "version": 1, "rules": {"old": {"conditions": [{"macro": "event", "equals": "old"}]}},
             "tags": [{"name": "rename", "type": "set", "path": "name", "value": "new", "rules": ["old"]}]}
            """
        let discard = """
            {"id": "B", "version": 1, "rules": {"new": {"conditions": [{"macro": "event", "equals": "new"}]}},
             "tags": [{"name": "discard", "type": "discard", "rules": ["new"]}]}
            """
        #expect(try Trial(rename, discard).apply(#"{"name":"old"}"#).fate == .discarded(reason: "B/new"))
        let other = try Trial(discard, rename).apply(#"{"name":"old"}"#)
        #expect(other.fate == .kept)
        #expect(other.line == #"{"name":"new"}"#)
    }

    @Test("rules of a container see the event as it arrived, whatever its tags have changed")
    func rulesSeeTheEventAsItCame() throws {
        let trial = try Trial(
            """
            "macros": {"a": {"type": "event_property", "path": "a"}},
            "rules": {"one": {"conditions": [{"macro": "a", "equals": 1}]}, "two": {"conditions": [{"macro": "a", "equals": 2}]}},
            "tags": [{"name": "to two", "type": "set", "path": "properties.a", "value": 2, "rules": ["one"]},
                     {"name": "not", "type": "discard", "rules": ["two"]},
                     {"name": "copy", "type": "set", "path": "properties.b", "value": {"macro": "a"}, "rules": ["one"]}]
            """)
        #expect(
            trial.apply(#"{"name":"n","properties":{"a":1}}"#).line
                == #"{"name":"n","properties":{"a":2,"b":1}}"#)
    }

    @Test(
        "a name in no rule concerns no container, but a container that reads the data layer sees all events"
    )
    func names() throws {
        func concerns(_ trial: Trial, _ name: String) -> Bool {
            Array(name.utf8).withUnsafeBufferPointer { trial.engine.mayConcern(name: $0) }
        }
        let rule =
            #""rules": {"r": {"conditions": [{"macro": "event", "equals": "asked"}, {"macro": "m", "equals": 1}]}}"#
        let tag = #""tags": [{"name": "t", "type": "discard", "rules": ["r"]}]"#
        let byName = try Trial(#""macros": {"m": {"type": "event_member", "path": "x"}}, \#(rule), \#(tag)"#)
        #expect(concerns(byName, "asked"))
        #expect(!concerns(byName, "other"))
        #expect(!concerns(byName, ""))
        let byLayer = try Trial(#""macros": {"m": {"type": "data_layer", "path": "x"}}, \#(rule), \#(tag)"#)
        #expect(concerns(byLayer, "other"))
    }

    @Test("only a data layer macro that some tag can read sends every event through the rules")
    func layersThatNobodyReads() throws {
        func concerned(_ members: String) throws -> Bool {
            let trial = try Trial(
                """
                "macros": {"m": {"type": "data_layer", "path": "x"}, "copy": {"type": "value", "key": "k"},
                    "sets": {"type": "value_collection", "rules": ["by layer"], "values": {"k": 1}},
                    "asked": {"type": "function_call", "function": "f", "parameters": {"p": {"macro": "m"}}}},
                "rules": {"asked": {"conditions": [{"macro": "event", "equals": "asked"}]},
                    "by layer": {"conditions": [{"macro": "m", "equals": 1}]},
                    "by value": {"conditions": [{"macro": "event", "equals": "asked"}, {"macro": "copy", "equals": 1}]},
                    "by function": {"conditions": [{"macro": "event", "equals": "asked"}, {"macro": "asked", "equals": 1}]}},
                \(members)
                """, mayCall: ["f"])
            return Array("other".utf8).withUnsafeBufferPointer { trial.engine.mayConcern(name: $0) }
        }
        // Defined, and even a value for apps; no tag asks for it.
        #expect(try !concerned(#""tags": [{"name": "t", "type": "discard", "rules": ["asked"]}]"#))
        #expect(
            try !concerned(
                #""values": {"v": {"macro": "m"}}, "tags": [{"name": "t", "type": "discard", "rules": ["asked"]}]"#
            ))
        // Asked by a rule, through another macro, as a parameter, by a blocking rule, by what a tag sets.
        for tag in [
            #""type": "discard", "rules": ["by layer"]"#, #""type": "discard", "rules": ["by value"]"#,
            #""type": "discard", "rules": ["by function"]"#,
            #""type": "discard", "rules": ["asked"], "blocking_rules": ["by layer"]"#,
            #""type": "set", "path": "a", "value": {"macro": "m"}, "rules": ["asked"]"#,
            #""type": "sample", "rate": 0.5, "key": {"macro": "m"}, "rules": ["asked"]"#,
            #""type": "function", "function": "f", "parameters": {"a": {"macro": "m"}}, "rules": ["asked"]"#,
        ] {
            #expect(try concerned("\"tags\": [{\"name\": \"t\", \(tag)}]"), "\(tag)")
        }
    }

    @Test("a function is called only if no other condition of its rule decides, in any order")
    func functionsComeLast() throws {
        let trial = try Trial(
            """
            "macros": {"f": {"type": "function_call", "function": "f", "parameters": {}},
                "p": {"type": "event_property", "path": "p"}},
            "rules": {"r": {"conditions": [{"macro": "f", "equals": 1}, {"macro": "p", "equals": 1}]}},
            "tags": [{"name": "t", "type": "discard", "rules": ["r"]}]
            """, mayCall: ["f"])
        trial.results["f"] = 1
        #expect(trial.apply(#"{"name":"n","properties":{"p":2}}"#).fate == .kept)
        #expect(trial.asked.isEmpty)
        #expect(trial.apply(#"{"name":"n","properties":{"p":1}}"#).fate == .discarded(reason: "GTM-1/r"))
        #expect(trial.asked.count == 1)
    }
}
