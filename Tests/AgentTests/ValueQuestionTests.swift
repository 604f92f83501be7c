import Containers
import Control
import Model
import TestKit
import Testing

@testable import Agent

/// Rounds of questions for a value that functions of the app decide: without a socket, and against an agent.
@Suite("Values that functions of apps decide", .timeLimit(.minutes(2)))
struct ValueQuestionTests {
    private static let document = #"""
        {"id": "GTM-1", "version": 3,
         "values": {"greeting": {"macro": "greeting"}, "size": 7, "all": {"macro": "all"}},
         "macros": {
           "user": {"type": "function_call", "function": "user", "by": "app", "default": "nobody"},
           "greeting": {"type": "function_call", "function": "greet", "by": "app", "parameters": {"user": {"macro": "user"}}},
           "all": {"type": "value_collection", "values": {MANY}}MACROS},
         "rules": {"open": {"conditions": [{"macro": "event", "equals": "openScreen"}]}},
         "tags": [{"name": "t", "type": "function", "function": "shown", "by": "app", "parameters": {"n": 1}, "rules": ["open"]}]}
        """#

    /// A document whose value `all` needs as many answers as there are numbers.
    private static func text(_ many: ClosedRange<Int> = 1...2) -> String {
        let values = many.map { "\"v\($0)\": {\"macro\": \"m\($0)\"}" }.joined(separator: ",")
        let macros = many.map {
            ", \"m\($0)\": {\"type\": \"function_call\", \"function\": \"f\", \"by\": \"app\", \"parameters\": {\"n\": \($0)}}"
        }.joined()
        return document.replacing("MANY", with: values).replacing("MACROS", with: macros)
    }

    private func ask(
        _ key: String, _ container: CompiledContainer, functions: JSONValue = ["user", "greet", "f"],
        answers: JSONValue = [:]
    ) throws(ControlRefusal) -> JSONValue {
        try ValueQuestion([
            "key": .string(key), "container": "GTM-1", "functions": functions, "answers": answers,
        ]).answer(by: container, known: [:])
    }

    /// The status and code with which a question is refused; nil if it is answered.
    private func refusal(
        _ key: String, _ container: CompiledContainer, functions: JSONValue = ["f"], answers: JSONValue = [:]
    ) -> String? {
        do throws(ControlRefusal) {
            _ = try ask(key, container, functions: functions, answers: answers)
            return nil
        } catch {
            return "\(error.status) \(error.code)"
        }
    }

    @Test("tm14: each question names one call, until its answers decide the value")
    func rounds() throws {
        let container = try CompiledContainer(ContainerDocument(reading: Array(Self.text().utf8)))
        let first = try ask("greeting", container)
        let user = try #require(first["calls"]?.array?.first)
        #expect(first["calls"]?.array?.count == 1 && first["value"] == nil)
        #expect(user["function"] == "user" && user["parameters"] == [:])
        let id = try #require(user["id"]?.string)
        let second = try ask("greeting", container, answers: .object([.init(id, "ann")]))
        let greet = try #require(second["calls"]?.array?.first)
        #expect(greet["parameters"] == ["user": "ann"])
        let greetID = try #require(greet["id"]?.string)
        let answers = JSONValue.object([.init(id, "ann"), .init(greetID, "hello"), .init("f00d", "other")])
        #expect(
            try ask("greeting", container, answers: answers)
                == ["key": "greeting", "value": "hello", "missing": false, "calls": []])
        // A value of another type, no value, and an app without the functions.
        #expect(
            try ask("greeting", container, answers: .object([.init(id, "ann"), .init(greetID, [1])]))
                == ["key": "greeting", "value": "", "missing": true, "calls": []])
        #expect(try ask("greeting", container, functions: [])["missing"] == true)
        #expect(try ask("size", container)["value"] == "7")
        #expect(try ask("none", container)["missing"] == true)
    }

    @Test("hostile questions are refused: too many or too large answers, endless rounds, malformed members")
    func hostile() throws {
        let container = try CompiledContainer(ContainerDocument(reading: Array(Self.text(1...40).utf8)))
        var answers: [JSONValue.Member] = []
        var end: String?
        for _ in 0..<100 where end == nil {
            end = refusal("all", container, answers: .object(answers))
            guard end == nil else { break }
            let calls = try ask("all", container, answers: .object(answers))["calls"]?.array
            answers.append(.init(try #require(calls?.first?["id"]?.string), 1))
        }
        #expect(end == "400 too_many_calls" && answers.count == ValueQuestion.mostAnswers)
        let many = JSONValue.object((0...32).map { .init("\($0)", 1) })
        #expect(refusal("all", container, answers: many) == "400 bad_request")
        let large = JSONValue.object([
            .init("a", .string(String(repeating: "x", count: ValueQuestion.largestAnswers)))
        ])
        #expect(refusal("size", container, answers: large) == "413 too_large")
        for functions: JSONValue in [
            "greet", [1], [.string(String(repeating: "x", count: 65))],
            .array((0...64).map { .string("\($0)") }),
        ] {
            #expect(refusal("size", container, functions: functions) == "400 bad_request")
        }
        #expect(refusal("size", container, answers: []) == "400 bad_request")
        #expect(throws: ControlRefusal.self) { try ValueQuestion(["key": "x"]) }
    }

    @Test("tm14: over the socket: answers change nothing for others; calls of tags reach one listener, once")
    func socket() async throws {
        try await withAgent(
            """
            [[container]]
            id = "GTM-1"
            default_file = "DIRECTORY/GTM-1"
            """, files: ["GTM-1": Self.text()]
        ) { (agent) async throws in
            let client = agent.client
            func ask(_ answers: JSONValue) throws -> JSONValue {
                try client.request(
                    "POST", "/v1/values",
                    body: [
                        "key": "greeting", "container": "GTM-1", "functions": ["user", "greet"],
                        "answers": answers,
                    ]
                ).json()
            }
            let id = try #require(try ask([:])["calls"]?.array?.first?["id"]?.string)
            let next = try ask(.object([.init(id, "ann")]))
            let greet = try #require(next["calls"]?.array?.first?["id"]?.string)
            #expect(try ask(.object([.init(id, "ann"), .init(greet, "hello ann")]))["value"] == "hello ann")
            // What an app answers is its own affair: others get the default.
            let other = try client.request("GET", "/v1/values", query: [("key", "greeting")]).json()
            #expect(other["value"] == "")
            #expect(try ask([:])["calls"]?.array?.count == 1)
            let path = "/v1/function-calls"
            for body: JSONValue in [
                ["app": "default", "container": "GTM-1"], ["app": "default", "functions": ["shown"]],
                ["app": "default", "container": "GTM-1", "functions": []],
            ] {
                #expect(try client.request("POST", path, body: body).status == 400, "\(body)")
            }
            #expect(
                try client.request(
                    "POST", path, body: ["app": "a", "container": "GTM-9", "functions": ["f"]]
                ).status == 404)
        }
    }
}
