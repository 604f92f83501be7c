import Containers
import Foundation
import Model
import TestKit
import Testing

/// What a hostile document or a hostile event can cost.
@Suite("Hostile documents")
struct HostileDocumentTests {
    private func resident() throws -> Int {
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let line = status.split(separator: "\n").first { $0.hasPrefix("VmRSS:") }
        return Int(line?.split(separator: " ").dropLast().last ?? "") ?? 0
    }

    private func byExpression(_ expression: String) -> String {
        """
        "macros": {"p": {"type": "event_property", "path": "p"}},
        "rules": {"r": {"conditions": [{"macro": "p", "matches": \(JSONValue.string(expression))}]}},
        "tags": [{"name": "t", "type": "discard", "rules": ["r"]}]
        """
    }

    @Test("expressions that stall backtracking engines take time linear in the text")
    func expressionsAreLinear() throws {
        for expression in [
            "(a+)+$", "(a|aa)+$", "^(([a-z])+.)+[A-Z]([a-z])+$", "(.*)*(.*)*(.*)*x", "(x+x+)+y",
        ] {
            let trial = try Trial(byExpression(expression))
            let text = String(repeating: "a", count: 500_000) + "!"
            let start = Date()
            _ = trial.apply("{\"name\":\"n\",\"properties\":{\"p\":\"\(text)\"}}")
            // A backtracking engine would need longer than the sun has left.
            #expect(Date().timeIntervalSince(start) < 20, "\(expression)")
        }
    }

    @Test(
        "expressions that would grow without bound, or that RE2 does not support, are refused with the reason"
    )
    func expressionsAreBounded() throws {
        for expression in [
            "((((a{100}){100}){100}){100})", "(a", "(?=a)", "\\1", "[z-a]", "a**{2000}", "\\C{900}{9}",
        ] {
            let error = #expect(throws: ContainerError.self, "\(expression)") {
                try Trial(byExpression(expression))
            }
            #expect(error?.code == .expression)
            #expect(error?.path == "rules.r.conditions[0].matches")
            #expect(error?.message.hasPrefix("the regular expression cannot be used: ") ?? false)
        }
    }

    @Test("the most and largest expressions allowed stay within their memory")
    func expressionMemory() throws {
        let conditions = (0..<DocumentLimits.expressions).map {
            "{\"macro\":\"p\",\"matches\":\"(x|y|z|[a-w]\($0)){1,40}.{1,60}\"}"
        }
        let rules = conditions.enumerated().map { "\"r\($0)\":{\"conditions\":[\($1)]}" }.joined(
            separator: ",")
        let names = (0..<DocumentLimits.expressions).map { "\"r\($0)\"" }.joined(separator: ",")
        let before = try resident()
        let trial = try Trial(
            """
            "macros": {"p": {"type": "event_property", "path": "p"}}, "rules": {\(rules)},
            "tags": [{"name": "t", "type": "discard", "rules": [\(names)]}]
            """)
        var random = SplitMix64(seed: Seeds.one(7))
        for _ in 0..<20 {
            let text = String((0..<2000).map { _ in "abcxyz0123456789".randomElement(using: &random) ?? "a" })
            _ = trial.apply("{\"name\":\"n\",\"properties\":{\"p\":\"\(text)\"}}")
        }
        // 64 times 256 KiB, and what else the tests of this process do meanwhile.
        #expect(try resident() - before < 200_000)
        #expect(throws: ContainerError.self) {
            let more = (0...DocumentLimits.expressions).map { "{\"macro\":\"event\",\"matches\":\"a\($0)\"}" }
            let rules = more.enumerated().map { "\"r\($0)\":{\"conditions\":[\($1)]}" }.joined(separator: ",")
            return try Trial("\"rules\": {\(rules)}")
        }
    }

    @Test(
        "documents of any size, shape and depth are read or refused in time",
        arguments: [1, 2, 3, 4, 5, 6])
    func shapes(_ shape: Int) {
        let size = DocumentLimits.bytes - 100
        let text: String
        switch shape {
        case 1: text = String(repeating: "{\"id\":", count: size / 6)
        case 2:
            text =
                "{\"id\":\"A\",\"version\":1,\"values\":{" + String(repeating: "\"a\":1,", count: size / 7)
                + "\"b\":1}}"
        case 3: text = "{\"id\":\"" + String(repeating: "\\u0041", count: size / 6 - 9) + "\",\"version\":1}"
        case 4:
            text =
                "{\"id\":\"A\",\"version\":1,\"macros\":{"
                + (0..<20_000).map { "\"m\($0)\":{\"type\":\"event\"}" }.joined(separator: ",") + "}}"
        case 5:
            // Each rule asks for each macro, each macro for each rule.
            let names = (0..<60).map { "\"r\($0)\"" }.joined(separator: ",")
            let macros = (0..<400).map {
                "\"m\($0)\":{\"type\":\"value_collection\",\"rules\":[\(names)],\"values\":{\"k\($0)\":1}}"
            }
            let conditions = (0..<50).map { "{\"macro\":\"m\($0)\",\"equals\":1}" }.joined(separator: ",")
            let rules = (0..<60).map { "\"r\($0)\":{\"conditions\":[\(conditions)]}" }
            text =
                "{\"id\":\"A\",\"version\":1,\"macros\":{\(macros.joined(separator: ","))},\"rules\":{\(rules.joined(separator: ","))}}"
        default:
            text =
                "{\"id\":\"A\",\"version\":1"
                + String(repeating: ",\"\(String(repeating: "x", count: 50))\":1", count: size / 60) + "}"
        }
        let start = Date()
        #expect(throws: ContainerError.self) { try ContainerDocument(reading: Array(text.utf8)) }
        #expect(Date().timeIntervalSince(start) < 20)
    }

    @Test("a member that is repeated a hundred thousand times is changed in time")
    func repeatedMembers() throws {
        let trial = try Trial(
            """
            "rules": {"all": {"conditions": []}},
            "tags": [{"name": "r", "type": "redact", "paths": ["a", "p.a"], "rules": ["all"]},
                     {"name": "s", "type": "set", "path": "b", "value": 1, "rules": ["all"]},
                     {"name": "n", "type": "rename", "path": "c", "to": "d", "rules": ["all"]}]
            """)
        let many = ["a", "b", "c", "d"].map { String(repeating: "\"\($0)\":1,", count: 25_000) }.joined()
        let start = Date()
        let outcome = trial.apply("{\(many)\"p\":{\(many)\"z\":1},\"name\":\"n\"}")
        #expect(Date().timeIntervalSince(start) < 20)
        #expect(outcome.event.members?.map(\.key) == ["b", "d", "p", "name"])
        #expect(outcome["p"]?.members?.contains { $0.key == "a" } == false)
    }

    @Test("pushes of all sizes into the data layer take time linear in their size")
    func hugePushes() throws {
        let trial = try Trial(
            """
            "macros": {"a": {"type": "data_layer", "path": "a"}}, "rules": {"r": {"conditions": [{"macro": "a", "equals": 1}]}},
            "tags": [{"name": "t", "type": "discard", "rules": ["r"]}]
            """)
        let start = Date()
        let wide = (0..<80_000).map { "\"k\($0)\":1" }.joined(separator: ",")
        for _ in 0..<5 { _ = trial.push("{\"type\":\"data_layer\",\(wide)}") }
        let deep = String(repeating: "{\"a\":", count: 60) + "1" + String(repeating: "}", count: 60)
        for _ in 0..<200 { _ = trial.push("{\"type\":\"data_layer\",\"a\":\(deep)}") }
        let list = "[" + String(repeating: "0,", count: 300_000) + "0]"
        for _ in 0..<3 { _ = trial.apply("{\"name\":\"n\",\"properties\":{\"a\":\(list)}}") }
        #expect(Date().timeIntervalSince(start) < 30)
        #expect(trial.engine.counts.problems[.refusedPush, default: 0] >= 8)
    }
}
