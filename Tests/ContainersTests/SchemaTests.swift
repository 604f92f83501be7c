import Foundation
import Model
import TestKit
import Testing

@testable import Containers

/// The shipped schema and example against the reader.
@Suite("Container schema and example")
struct SchemaTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    private func example() throws -> ContainerDocument {
        let file = Self.root.appending(path: "examples/containers/GTM-EXAMPLE")
        return try ContainerDocument(reading: [UInt8](try Data(contentsOf: file)))
    }

    @Test("the worked example is valid, and its own tests pass")
    func exampleTestsPass() throws {
        let document = try example()
        #expect(document.tests.count == 6)
        for test in document.tests {
            #expect(try test.failures(in: document) == [], "\(test.name)")
        }
        let shown = try String(
            contentsOf: Self.root.appending(path: "docs/container-documents.md"), encoding: .utf8)
        for tag in document.tags {
            #expect(shown.contains(tag.name), "docs/container-documents.md does not explain \(tag.name)")
        }
    }

    @Test("a failing test of a document says how the result differs")
    func failingTests() throws {
        let text = Trial.document(
            """
            "values": {"v": 1}, "rules": {"r": {"conditions": [{"macro": "event", "equals": "a"}]}},
            "tags": [{"name": "t", "type": "discard", "rules": ["r"]}],
            "tests": [
              {"name": "1", "event": {"name": "a"}, "expect": {"tags": [], "kept": true, "discarded_by": "x", "priority": "critical"}},
              {"name": "2", "event": {"name": "b", "p": 1}, "expect": {"event": {"p": 2, "q": {"r": 1}}, "absent": ["p"], "destinations": ["d"]}},
              {"name": "3", "expect": {"values": {"v": 2, "w": 1}}},
              {"name": "4", "event": {"title": "no name"}, "expect": {"kept": true}}]
            """)
        let document = try ContainerDocument(reading: Array(text.utf8))
        let failures = try document.tests.map { try $0.failures(in: document) }
        #expect(
            failures == [
                [
                    "tags fired: t; expected none", "discarded by r, expected x", "it is discarded by r",
                    "its priority is normal, expected critical",
                ],
                [
                    "it goes to none, expected d", "member p is 1, expected 2",
                    "member q is missing, expected {\"r\":1}", "member p exists, expected to be absent",
                ],
                ["value v is 1, expected 2", "there is no value w, expected 1"],
                [],
            ])
    }

    @Test("a document's tests know its schemas: where an event breaks one, and that it goes no further")
    func schemasInTests() throws {
        let text = Trial.document(
            """
            "schemas": {"bought": {"required": ["properties"], "properties": {"properties": {"required": ["total"],
              "properties": {"total": {"minimum": 0}}}}}},
            "tests": [
              {"name": "1", "event": {"name": "bought", "properties": {"total": -1}},
               "expect": {"schema_failure": "/properties/total"}},
              {"name": "2", "event": {"name": "bought"}, "expect": {"schema_failure": ""}},
              {"name": "3", "event": {"name": "bought", "properties": {"total": 1}}, "expect": {"kept": true}},
              {"name": "4", "event": {"name": "bought", "properties": {"total": 1}},
               "expect": {"schema_failure": "/properties/total"}},
              {"name": "5", "event": {"name": "bought"}, "expect": {"schema_failure": "/properties/total"}},
              {"name": "6", "event": {"name": "bought"}, "expect": {"kept": true}},
              {"name": "7", "event": {"name": "sold"}, "expect": {"kept": true}}]
            """)
        let document = try ContainerDocument(reading: Array(text.utf8))
        #expect(
            try document.tests.map { try $0.failures(in: document) } == [
                [], [], [],
                ["its schema allows the event, expected a failure at /properties/total"],
                ["its schema refuses the event itself, expected /properties/total"],
                [
                    "the agent would not accept the event: schema: bought (GTM-1 version 3): the event lacks the"
                        + " member properties (required), at byte 1"
                ],
                [],
            ])
        let more = Trial.document(
            #""tests": [{"name": "1", "event": {"name": "a"}, "expect": {"schema_failure": "", "kept": false}}]"#
        )
        #expect(throws: ContainerError.self) { _ = try ContainerDocument(reading: Array(more.utf8)) }
    }

    @Test("documents differ if their schemas do")
    func schemasAreCompared() throws {
        func document(_ schema: String) throws -> ContainerDocument {
            try ContainerDocument(reading: Array(Trial.document("\"schemas\": {\"a\": \(schema)}").utf8))
        }
        #expect(try document("true") == document("true"))
        #expect(try document("true") != document("{}"))
    }

    /// Documents with mistakes that a schema can see.
    private static let seen = [
        "[]", #"{"id":"A"}"#, #"{"id":"A b","version":1}"#, #"{"id":"A","version":0}"#,
        #"{"id":"A","version":1.5}"#,
        member(#""rulez":{}"#), member(#""macros":{"a":{"type":"cookie"}}"#),
        member(#""macros":{"a":{"type":"event","path":"x"}}"#),
        member(#""macros":{"a":{"type":"data_layer"}}"#),
        member(#""macros":{"a":{"type":"data_layer","path":""}}"#),
        member(#""rules":{"r":{"conditions":[{"macro":"event"}]}}"#),
        member(#""rules":{"r":{"conditions":[{"macro":"event","equals":1,"less":2}]}}"#),
        member(#""rules":{"r":{"conditions":[{"macro":"event","less":"3"}]}}"#),
        member(#""rules":{"r":{"conditions":[{"macro":"event","matches":5}]}}"#),
        member(#""rules":{"r":{}}"#), tag(#""type":"drop""#), tag(#""type":"sample","rate":2"#),
        tag(#""type":"ship","destinations":[]"#),
        tag(#""type":"set","path":"id","value":1"#), tag(#""type":"rename","path":"name","to":"x""#),
        tag(#""type":"throttle","events":0,"seconds":1"#), tag(#""type":"prioritise","priority":"urgent""#),
        tag(#""type":"discard","destinations":["a"]"#),
        tag(#""type":"redact""#), tag(#""type":"redact","pattern":[]"#),
        tag(#""type":"redact","pattern":"""#),
        member(#""tags":[{"name":"t","type":"discard","rules":[]}]"#),
        tag(#""type":"discard","when":"name == 'a'""#),
        member(#""tags":[{"name":"t","type":"discard"}]"#), member(#""rules":{"r":{"when":""}}"#),
        member(#""tests":[{"name":"t","expect":{"kept":true}}]"#),
        member(#""schemas":{"a":{"oneOf":[]}}"#), member(#""schemas":{"a":{"type":"int"}}"#),
        member(#""schemas":{"a":{"properties":{"b":{"minLength":-1}}}}"#), member(#""schemas":{"a":[]}"#),
        member(#""schemas":{"":{}}"#), member(#""schemas":{"a":{"$ref":"https://example.com"}}"#),
        member(#""tests":[{"name":"t","event":{"name":"a"},"expect":{"schema_failure":1}}]"#),
    ]

    private static func member(_ text: String) -> String { "{\"id\":\"A\",\"version\":1,\(text)}" }
    private static func tag(_ text: String) -> String {
        member("\"rules\":{\"r\":{\"conditions\":[]}},\"tags\":[{\"name\":\"t\",\"rules\":[\"r\"],\(text)}]")
    }

    private static let good = [
        DocumentTests.small, #"{"id":"A","version":1}"#, tag(#""type":"discard""#),
        tag(#""type":"ship","destinations":["a"]"#),
        tag(#""type":"sample","rate":0.5,"key":{"macro":"app"}"#),
        tag(#""type":"set","path":["a.b"],"value":{"a":[1]}"#),
        tag(#""type":"rename","path":"a.b","to":"c""#), tag(#""type":"redact","paths":["a"],"with":"x""#),
        tag(#""type":"redact","pattern":"email""#),
        tag(#""type":"redact","pattern":["jwt","x+"],"paths":["**.a"],"with":"x""#),
        tag(#""type":"hash","paths":["a","b.c"],"salt":"s""#),
        tag(#""type":"prioritise","priority":"critical""#),
        tag(#""type":"throttle","events":5,"seconds":60"#),
        tag(#""type":"function","function":"f","parameters":{"a":1}"#),
        member(
            #""macros":{"a":{"type":"constant","value":null},"b":{"type":"function_call","function":"f","parameters":{"x":{"macro":"a"}}},"#
                + #""c":{"type":"device_property","name":"model","default":"?"},"d":{"type":"random_number"},"e":{"type":"value","key":"k"}}"#
        ),
        member(#""tests":[{"name":"t","expect":{"values":{"a":1}}}]"#),
        member(
            ##""schemas":{"a b":{"$schema":"x","version":3,"type":["object","null"],"required":["b"],"##
                + ##""title":"t","properties":{"b":{"$ref":"#/$defs/c"},"d":{"enum":[1,null]},"##
                + ##""e":{"const":{}},"f":true},"$defs":{"c":{"items":false}},"##
                + ##""additionalProperties":{"minimum":1.5,"maxLength":2.0,"pattern":"x"}}},"##
                + ##""tests":[{"name":"t","event":{"name":"a b"},"expect":{"schema_failure":""}}]"##
        ),
    ]

    @Test("the shipped schema agrees with the reader, as far as a schema can")
    func schemaAgrees() throws {
        let schema = Self.root.appending(path: "etc/container.schema.json").path
        let documents =
            Self.good + Self.seen + DocumentTests.mistakes.map(\.text).filter { !$0.hasPrefix("[1") }
        let verdicts = try schemaVerdicts(schema, documents)
        for (document, bySchema) in zip(documents, verdicts) {
            let byReader = (try? ContainerDocument(reading: Array(document.utf8))) != nil
            // What a schema cannot say, the reader says: it is never the other way round.
            #expect(!byReader || bySchema, "the schema refuses what the reader takes: \(document)")
            if Self.seen.contains(document) {
                #expect(!bySchema, "the schema takes \(document)")
                #expect(!byReader, "the reader takes \(document)")
            }
            if Self.good.contains(document) { #expect(byReader, "the reader refuses \(document)") }
        }
    }

    @Test("the schema and the documentation list every predicate and macro that the reader knows")
    func schemaIsComplete() throws {
        let page = try String(
            contentsOf: Self.root.appending(path: "docs/container-documents.md"), encoding: .utf8)
        // The second is made from the row of the configuration's rules.
        let others = try [("docs/rules.md", "| `"), ("docs/reference.md", "| `when` |")].map { path, row in
            let text = try String(contentsOf: Self.root.appending(path: path), encoding: .utf8)
            let rows = text.split(separator: "\n").filter { $0.hasPrefix(row) }
            return (path, words: rows.flatMap { $0.split { !$0.isLetter && $0 != "_" } }.map(String.init))
        }
        var message = ""
        do {
            _ = try ContainerDocument(reading: Array(Self.member(#""rules":{"r":{"when":"name"}}"#).utf8))
        } catch {
            message = "\(error)"
        }
        var documents: [String] = []
        for predicate in Condition.Predicate.allCases {
            let form = predicate.inExpressions
            #expect(message.contains(form), "the message about a missing comparison: \(form)")
            if form == predicate.rawValue {
                for (path, words) in others { #expect(words.contains(form), "\(path): \(form)") }
            }
            #expect(
                page.contains("`\(predicate.rawValue)`"), "docs/container-documents.md: \(predicate.rawValue)"
            )
            // An order wants a number.
            let forms = ["\"a\"", "1"].map { value in
                Self.member(
                    #""rules":{"r":{"conditions":[{"macro":"event","\#(predicate.rawValue)":\#(value)}]}}"#)
            }
            documents.append(
                try #require(forms.first { (try? ContainerDocument(reading: Array($0.utf8))) != nil }))
            let expressions = ["'a'", "1"].map { value in
                Self.member(#""rules":{"r":{"when":"name \#(predicate.inExpressions) \#(value)"}}"#)
            }
            documents.append(
                try #require(
                    expressions.first { (try? ContainerDocument(reading: Array($0.utf8))) != nil },
                    "\(predicate.rawValue) cannot be written in an expression"))
        }
        for macro in StandardMacro.allCases {
            #expect(page.contains("`\(macro.rawValue)`"), "docs/container-documents.md: \(macro.rawValue)")
            let document = Self.member(#""macros":{"a":{"type":"\#(macro.rawValue)"}}"#)
            documents.append(document)
            #expect((try? ContainerDocument(reading: Array(document.utf8))) != nil, "\(document)")
        }
        let schema = Self.root.appending(path: "etc/container.schema.json").path
        for (document, isTaken) in zip(documents, try schemaVerdicts(schema, documents)) {
            #expect(isTaken, "the schema refuses \(document)")
        }
    }

    private func schemaVerdicts(_ schema: String, _ documents: [String]) throws -> [Bool] {
        let script = """
            import json, jsonschema, sys
            validator = jsonschema.Draft202012Validator(json.load(open(sys.argv[1])))
            for line in json.load(open(sys.argv[2])): print(int(validator.is_valid(json.loads(line))))
            """
        let directory = try TemporaryDirectory()
        let list = "\(directory.path)/documents.json"
        try JSONEncoder().encode(documents).write(to: URL(filePath: list))
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/python3")
        process.arguments = ["-c", script, schema, list]
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        let data = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        #expect(process.terminationStatus == 0)
        let verdicts = String(decoding: data, as: UTF8.self).split(separator: "\n").map { $0 == "1" }
        try #require(verdicts.count == documents.count)
        return verdicts
    }
}
