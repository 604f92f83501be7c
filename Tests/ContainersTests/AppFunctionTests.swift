import Events
import Model
import TestKit
import Testing

@testable import Containers

/// Functions that only an app has: the agent asks the app that wants a value, and nobody for an event.
@Suite("Functions of apps in containers")
struct AppFunctionTests {
    private static let macros = """
        "macros": {
          "user": {"type": "function_call", "function": "user", "by": "app", "default": "nobody"},
          "greeting": {"type": "function_call", "function": "greet", "by": "app", "parameters": {"user": {"macro": "user"}, "n": 1}},
          "plan": {"type": "function_call", "function": "plan", "default": "free"}},
        """
    private static let values = """
        "values": {"greeting": {"macro": "greeting"}, "plan": {"macro": "plan"}, "plain": 1, "user": {"macro": "user"}}
        """

    private func container(_ body: String, mayCall: Set<String> = []) throws -> CompiledContainer {
        try CompiledContainer(
            ContainerDocument(reading: Array(Trial.document(body).utf8)), mayCall: mayCall)
    }

    @Test("tm14: a value names the calls of the app one after the other, each with the answers before it")
    func tm14_rounds() throws {
        let container = try container(Self.macros + Self.values)
        var answers: [String: JSONValue] = [:]
        func value(_ key: String, _ names: Set<String> = ["user", "greet"]) -> CompiledContainer.Valuation {
            container.value(ofKey: key, askingApp: AppFunctions(names) { answers[$0.id] })
        }
        let first = FunctionCall(function: "user", parameters: [:])
        #expect(value("greeting") == .needs([first]))
        answers[first.id] = "ann"
        let second = FunctionCall(function: "greet", parameters: ["user": "ann", "n": 1])
        #expect(value("greeting") == .needs([second]))
        #expect(first.id != second.id && second.id.count == 16)
        // An answer counts for its own call only, even if the function is the same.
        answers[FunctionCall(function: "greet", parameters: ["user": "bob", "n": 1]).id] = "hello bob"
        #expect(value("greeting") == .needs([second]))
        answers[second.id] = ["hello", "ann"]
        #expect(value("greeting") == .value(["hello", "ann"]))
        // Null leaves the default. Functions that the app does not name give it at once.
        answers[first.id] = .null
        #expect(value("user") == .value("nobody"))
        #expect(value("user", []) == .value("nobody") && value("greeting", []) == .value(.null))
        let ofNobody = FunctionCall(function: "greet", parameters: ["user": "nobody", "n": 1])
        #expect(value("greeting", ["greet"]) == .needs([ofNobody]))
        #expect(value("plain") == .value(1))
        // A function of the configuration is never asked of an app that has one of the same name.
        #expect(value("plan", ["plan"]) == .value("free"))
    }

    @Test("tm14: a function of the configuration gives its default for null, and where it may not be called")
    func tm14_defaults() throws {
        let may = try container(Self.macros + Self.values, mayCall: ["plan"])
        let call = FunctionCall(function: "plan", parameters: [:])
        #expect(may.value(ofKey: "plan") == .needs([call]))
        #expect(may.value(ofKey: "plan") { _ in "gold" } == .value("gold"))
        #expect(may.value(ofKey: "plan") { _ in .null } == .value("free"))
        #expect(try container(Self.macros + Self.values).value(ofKey: "plan") == .value("free"))
    }

    @Test("tm14, tm15: for an event nobody is asked; the default decides rules, except those that hide")
    func tm14_events() throws {
        let trial = try Trial(
            Self.macros + """
                "rules": {"ann": {"conditions": [{"macro": "user", "equals": "ann"}]},
                          "nobody": {"conditions": [{"macro": "user", "equals": "nobody"}]},
                          "free": {"conditions": [{"macro": "plan", "equals": "gold"}]}},
                "tags": [{"name": "copy", "type": "set", "path": "who", "value": {"macro": "user"}, "rules": ["nobody"]},
                         {"name": "no", "type": "discard", "rules": ["ann"]},
                         {"name": "hide", "type": "redact", "paths": ["secret"], "rules": ["ann"]},
                         {"name": "by plan", "type": "redact", "paths": ["card"], "rules": ["free"]}]
                """, mayCall: ["plan"])
        trial.results = ["plan": .null]
        let outcome = trial.apply(#"{"name":"n","secret":1,"card":2}"#)
        #expect(outcome.tags == ["copy", "hide", "by plan"])
        #expect(outcome.line == #"{"name":"n","who":"nobody"}"#)
        #expect(trial.asked.map(\.function).allSatisfy { $0 == "plan" })
        trial.results = ["plan": "silver"]
        #expect(trial.apply(#"{"name":"n","card":2}"#)["card"] == 2)
        #expect(trial.engine.counts.problems[.deniedCall] == nil)
    }

    @Test("tm14: a tag gives its call to the app, with evaluated parameters; of pushes, too")
    func tm14_tags() throws {
        let trial = try Trial(
            """
            "macros": {"screen": {"type": "event_member", "path": "screenName"}},
            "rules": {"open": {"conditions": [{"macro": "event", "equals": "openScreen"}]}},
            "tags": [{"name": "t", "type": "function", "function": "shown", "by": "app",
                      "parameters": {"screen": {"macro": "screen"}, "n": 1}, "rules": ["open"]}]
            """)
        let wanted = AppCall(
            container: "GTM-1",
            call: FunctionCall(function: "shown", parameters: ["screen": "Home", "n": 1]))
        let outcome = trial.apply(#"{"name":"openScreen","screenName":"Home"}"#)
        #expect(outcome.calls.isEmpty && trial.engine.offers == [wanted])
        _ = trial.apply(#"{"name":"other"}"#)
        #expect(trial.engine.offers.isEmpty)
        _ = trial.push(#"{"type":"data_layer","event":"openScreen","screenName":"Home"}"#)
        #expect(trial.engine.offers == [wanted])
        #expect(trial.engine.counts.problems[.deniedCall] == nil)
    }

    @Test("the check says where nobody is asked, and where a default is missing; by must be agent or app")
    func findings() throws {
        func findings(_ text: String) -> [String] {
            DocumentReview(Array(Trial.document(text).utf8), mayCall: []).findings.map {
                "\($0.finding.isMistake) \($0.finding)"
            }
        }
        let rule = """
            "rules": {"r": {"conditions": [{"macro": "m", "equals": 1}]}},
            "tags": [{"name": "t", "type": "discard", "rules": ["r"]}]
            """
        func macro(_ more: String) -> String {
            #""macros": {"m": {"type": "function_call", "function": "f", "by": "app"\#(more)}},"#
        }
        let advice = "false macros.m: nobody asks an app for \"f\" when an event is read: tags get "
        #expect(findings(macro("") + rule) == [advice + "null, as it has no default"])
        #expect(findings(macro(#", "default": 2"#) + rule) == [advice + "its default"])
        #expect(findings(macro(#", "default": 2"#) + #""values": {"v": {"macro": "m"}}"#).isEmpty)
        #expect(
            findings(macro("") + #""values": {"v": {"macro": "m"}}"#) == [
                "false macros.m: an app without \"f\", and values.json, get null: give it a default"
            ])
        #expect(
            findings(#""macros": {"m": {"type": "function_call", "function": "f", "by": "web"}}"#) == [
                "true macros.m.by: must be agent (a program of the configuration) or app"
            ])
    }

    @Test("a document's tests name the machine and the file, and answer for apps")
    func tests() throws {
        let text = Trial.document(
            Self.macros + Self.values + """
                , "rules": {"web": {"conditions": [{"macro": "host_name", "equals": "web-1"}]},
                            "log": {"when": "level >= 'warn' && file ends_with '.log'"}},
                "tags": [{"name": "w", "type": "prioritise", "priority": "critical", "rules": ["web"]},
                         {"name": "l", "type": "prioritise", "priority": "normal", "rules": ["log"]}],
                "tests": [
                  {"name": "1", "host": "web-1", "event": {"name": "n"}, "expect": {"tags": ["w"]}},
                  {"name": "2", "host": "web-2", "event": {"name": "n"}, "expect": {"tags": []}},
                  {"name": "3", "file": "/var/log/a.log", "event": {"name": "n", "level": "error"}, "expect": {"tags": ["l"]}},
                  {"name": "4", "file": "/var/log/a.txt", "event": {"name": "n", "level": "error"}, "expect": {"tags": []}},
                  {"name": "5", "functions": {"user": "ann", "greet": "hello"}, "expect": {"values": {"greeting": "hello", "user": "ann", "plan": "free"}}},
                  {"name": "6", "expect": {"values": {"user": "nobody", "plan": "free"}}}]
                """)
        let document = try ContainerDocument(reading: Array(text.utf8))
        for test in document.tests { #expect(try test.failures(in: document) == [], "\(test.name)") }
    }
}
