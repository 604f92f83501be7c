import Containers
import EventLoops
import Model
import Testing

@Suite("Container documents")
struct DocumentTests {
    static let small = #"""
        {"id": "GTM-1234", "version": 7, "expires": "2027-01-01T00:00:00Z",
         "values": {"greeting": "hello", "where": {"macro": "host_name"}},
         "macros": {"category": {"type": "event_property", "path": "Category", "default": "none"}},
         "rules": {"music": {"conditions": [
            {"macro": "event", "equals": "Video clicked"}, {"macro": "category", "starts_with": "mus", "ignore_case": true}]}},
         "tags": [{"name": "less music", "type": "sample", "rules": ["music"], "rate": 0.1}],
         "tests": [{"name": "other events stay", "event": {"name": "Start"}, "expect": {"tags": []}}]}
        """#

    @Test("a document is read as it is written")
    func reads() throws {
        let document = try ContainerDocument(reading: Array(Self.small.utf8))
        #expect(document.id == "GTM-1234")
        #expect(document.version == 7)
        #expect(document.expires == Timestamp(milliseconds: 1_798_761_600_000))
        #expect(document.values.map(\.key) == ["greeting", "where"])
        #expect(document.values.last?.operand == .macro("host_name"))
        #expect(document.rules.first?.conditions.count == 2)
        #expect(document.tags.first?.action == .sample(rate: 0.1, key: nil))
        #expect(document.tests.count == 1)
    }

    /// A document, what is wrong with it, and where.
    struct Mistake: Sendable, CustomTestStringConvertible {
        let text: String
        let code: ContainerError.Code
        let says: String
        var testDescription: String { says }

        init(_ members: String, _ code: ContainerError.Code = .form, says: String) {
            text =
                members.hasPrefix("{") || !members.contains(":")
                ? members : "{\"id\":\"A\",\"version\":1,\(members)}"
            self.code = code
            self.says = says
        }
    }

    static let mistakes: [Mistake] = [
        Mistake("[1", .notJSON, says: "not JSON at byte 2"),
        Mistake("[]", says: "must be an object"),
        Mistake("{\"id\":\"A\"}", says: "needs a member \"version\""),
        Mistake("{\"id\":\"A b\",\"version\":1}", says: "id: must have 1 to 64"),
        Mistake("{\"id\":\"A\",\"version\":0}", says: "version: must be a whole number from 1"),
        Mistake("{\"id\":\"A\",\"id\":\"A\",\"version\":1}", says: "says \"id\" twice"),
        Mistake("\"expires\":\"soon\"", says: "expires: must be a time"),
        Mistake("\"rulez\":{}", says: "has no member \"rulez\"; known are id, version"),
        Mistake(
            "\"macros\":{\"a\":{\"type\":\"cookie\"}}", says: "macros.a: there is no macro type \"cookie\""),
        Mistake(
            "\"macros\":{\"a\":{\"type\":\"event\",\"path\":\"x\"}}", says: "macros.a: has no member \"path\""
        ),
        Mistake(
            "\"macros\":{\"a b\":{\"type\":\"data_layer\"}}", says: "macros[\"a b\"]: needs a member \"path\""
        ),
        Mistake(
            "\"rules\":{\"r\":{\"conditions\":[{\"macro\":\"event\"}]}}",
            says: "rules.r.conditions[0]: needs exactly one of equals"),
        Mistake(
            "\"rules\":{\"r\":{\"conditions\":[{\"macro\":\"evnt\",\"equals\":1}]}}",
            says: "rules.r.conditions[0]: there is no macro \"evnt\""),
        Mistake(
            "\"rules\":{\"r\":{\"conditions\":[{\"macro\":\"event\",\"less\":\"3\"}]}}",
            says: "rules.r.conditions[0].less: must be a number"),
        Mistake(
            "\"tags\":[{\"name\":\"t\",\"type\":\"discard\",\"rules\":[\"r\"]}]",
            says: "tags[0].rules: there is no rule \"r\""),
        Mistake(
            "\"tags\":[{\"name\":\"t\",\"type\":\"discard\",\"rules\":[]}]",
            says: "tags[0].rules: must name at least 1"
        ),
        Mistake(
            "\"tags\":[{\"name\":\"t\",\"type\":\"drop\",\"rules\":[]}]",
            says: "tags[0]: there is no tag type \"drop\""
        ),
        Mistake(
            "\"rules\":{\"r\":{\"conditions\":[]}},\"tags\":[{\"name\":\"t\",\"type\":\"sample\",\"rules\":[\"r\"],\"rate\":2}]",
            says: "tags[0].rate: must be a number from 0.0 to 1.0"),
        Mistake(
            "\"tests\":[{\"name\":\"t\",\"expect\":{\"kept\":true}}]", says: "tests[0]: needs an \"event\""),
        Mistake(
            "\"macros\":{\"a\":{\"type\":\"function_call\",\"function\":\"f\",\"parameters\":{\"x\":{\"macro\":\"b\"}}},"
                + "\"b\":{\"type\":\"function_call\",\"function\":\"f\",\"parameters\":{\"x\":{\"macro\":\"a\"}}}}",
            says: "macros.a: the macro depends on itself: a → b → a"),
        Mistake(
            "\"macros\":{\"c\":{\"type\":\"value_collection\",\"rules\":[\"r\"],\"values\":{\"k\":1}},"
                + "\"v\":{\"type\":\"value\",\"key\":\"k\"}},"
                + "\"rules\":{\"r\":{\"conditions\":[{\"macro\":\"v\",\"equals\":1}]}}",
            says: "the macro depends on itself: c → v → c"),
    ]

    @Test("a mistake is one clear line with its position", arguments: mistakes)
    func mistake(_ mistake: Mistake) {
        let error = #expect(throws: ContainerError.self) {
            try ContainerDocument(reading: Array(mistake.text.utf8))
        }
        #expect(error?.code == mistake.code)
        let line = error?.description ?? ""
        #expect(line.contains(mistake.says), "\(line)")
        #expect(!line.contains("\n"))
    }

    @Test("limits of size, count and depth are enforced")
    func limits() {
        func refusal(_ text: String) -> ContainerError? {
            #expect(throws: ContainerError.self) { try ContainerDocument(reading: Array(text.utf8)) }
        }
        func document(_ members: String) -> String { "{\"id\":\"A\",\"version\":1,\(members)}" }
        #expect(refusal(String(repeating: " ", count: DocumentLimits.bytes + 1))?.code == .limit)
        let deep = String(repeating: "[", count: 33) + String(repeating: "]", count: 33)
        #expect(refusal(document("\"values\":{\"a\":\(deep)}"))?.code == .limit)
        #expect(refusal(String(repeating: "[", count: 500_000))?.code == .notJSON)
        let values = (0...DocumentLimits.values).map { "\"v\($0)\":1" }.joined(separator: ",")
        #expect(refusal(document("\"values\":{\(values)}"))?.code == .limit)
        let conditions = Array(repeating: "{\"macro\":\"event\",\"equals\":1}", count: 51).joined(
            separator: ",")
        #expect(refusal(document("\"rules\":{\"r\":{\"conditions\":[\(conditions)]}}"))?.code == .limit)
        let chain = (0..<20).map { index in
            "\"m\(index)\":{\"type\":\"function_call\",\"function\":\"f\",\"parameters\":{\"p\":{\"macro\":\"m\(index + 1)\"}}}"
        }
        #expect(
            refusal(document("\"macros\":{\(chain.joined(separator: ",")),\"m20\":{\"type\":\"event\"}}"))?
                .code
                == .limit)
    }

    @Test("tm02: a file of values only is refused with the reason when it has rules or tags")
    func tm02_valuesOnly() throws {
        let values = try JSONValue(parsing: #"{"greeting": "hello", "rate": 3}"#)
        let document = try ContainerDocument(id: "GTM-1", valuesOnly: values)
        #expect(document.version == 0)
        #expect(document.values.map(\.key) == ["greeting", "rate"])
        let error = #expect(throws: ContainerError.self) {
            try ContainerDocument(id: "GTM-1", valuesOnly: try JSONValue(parsing: #"{"tags": []}"#))
        }
        #expect(
            error?.message
                == "has tags; a file of values only has none: name the file GTM-1, without an extension")
    }
}
