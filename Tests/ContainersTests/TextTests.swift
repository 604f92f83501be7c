import Model
import TestKit
import Testing

@testable import Containers

/// Texts are compared by their code points, nothing else (tm12).
@Suite("Texts")
struct TextTests {
    private static let composed = "\u{e9}"
    private static let decomposed = "e\u{301}"

    @Test("tm12: é and e with a combining accent are different texts, for every predicate")
    func predicates() throws {
        for predicate in Condition.Predicate.allCases.filter({ !$0.isOrder }).map(\.rawValue) {
            let trial = try Trial(
                "\"macros\": {\"v\": {\"type\": \"event_member\", \"path\": \"v\"}}, \"rules\": {\"c\": {\"conditions\": [{\"macro\": \"v\", \"\(predicate)\": \"\(Self.composed)\"}]}, \"d\": {\"conditions\": [{\"macro\": \"v\", \"\(predicate)\": \"\(Self.decomposed)\"}]}}, \"tags\": [{\"name\": \"c\", \"type\": \"prioritise\", \"priority\": \"normal\", \"rules\": [\"c\"]}, {\"name\": \"d\", \"type\": \"prioritise\", \"priority\": \"normal\", \"rules\": [\"d\"]}]"
            )
            #expect(trial.apply("{\"name\":\"n\",\"v\":\"\(Self.composed)\"}").tags == ["c"], "\(predicate)")
            #expect(
                trial.apply("{\"name\":\"n\",\"v\":\"\(Self.decomposed)\"}").tags == ["d"], "\(predicate)")
        }
    }

    @Test("tm11: data layer members whose names differ only in Unicode form are two members")
    func layer() throws {
        let trial = try Trial(
            "\"macros\": {\"c\": {\"type\": \"data_layer\", \"path\": \"\(Self.composed)\"}, \"d\": {\"type\": \"data_layer\", \"path\": \"\(Self.decomposed)\"}}, \"rules\": {\"all\": {\"conditions\": []}}, \"tags\": [{\"name\": \"c\", \"type\": \"set\", \"path\": \"c\", \"value\": {\"macro\": \"c\"}, \"rules\": [\"all\"]}, {\"name\": \"d\", \"type\": \"set\", \"path\": \"d\", \"value\": {\"macro\": \"d\"}, \"rules\": [\"all\"]}]"
        )
        _ = trial.push("{\"type\":\"data_layer\",\"\(Self.composed)\":1,\"\(Self.decomposed)\":2}")
        #expect(trial.apply(#"{"name":"n"}"#).line == #"{"name":"n","c":1,"d":2}"#)
        // A value in another form is another value, and replaces the first.
        _ = trial.push("{\"type\":\"data_layer\",\"\(Self.composed)\":\"\(Self.composed)\"}")
        _ = trial.push("{\"type\":\"data_layer\",\"\(Self.composed)\":\"\(Self.decomposed)\"}")
        let line = trial.apply(#"{"name":"n"}"#).line
        #expect(Array(line.utf8) == Array("{\"name\":\"n\",\"c\":\"\(Self.decomposed)\",\"d\":2}".utf8))
    }

    @Test("tm14: calls whose parameters differ only in Unicode form are two calls")
    func calls() {
        let calls = [Self.composed, Self.decomposed].map {
            FunctionCall(function: "f", parameters: ["v": .string($0)])
        }
        #expect(Set(calls).count == 2)
        #expect(calls[0] != calls[1])
    }

    @Test("tm12: ignore_case folds each code point alone: ς, σ and Σ are equal, ß and ss are different")
    func folding() {
        func folded(_ text: String) -> String {
            String(decoding: Array(text.utf8).withUnsafeBufferPointer { Comparand.folded($0) }, as: UTF8.self)
        }
        for same in [
            ["ς", "σ", "Σ"], ["ß", "ẞ"], ["K", "k", "K"], ["ſ", "s", "S"], ["µ", "μ", "Μ"], ["Ǆ", "ǅ", "ǆ"],
        ] {
            #expect(Set(same.map { Array(folded($0).utf8) }).count == 1, "\(same)")
        }
        for other in [
            ["ß", "ss"], ["İ", "i"], ["ı", "i"], [Self.composed, Self.decomposed], ["ﬁ", "fi"],
        ] {
            #expect(Set(other.map { Array(folded($0).utf8) }).count == 2, "\(other)")
        }
    }

    @Test("tm12: folding agrees with RE2, for every code point that folds")
    func foldingAgrees() throws {
        var count = 0
        for value in UInt32(0x80)...0x1_FFFF {
            // Later code points RE2 may not know yet.
            guard let scalar = Unicode.Scalar(value), let age = scalar.properties.age, age.major <= 13 else {
                continue
            }
            let folded = Comparand.folded(scalar)
            guard folded != scalar else { continue }
            let hex = String(folded.value, radix: 16)
            let expression = try Expression("^\\x{\(hex)}$", ignoreCase: true, at: "")
            let isFound = Array(String(Character(scalar)).utf8).withUnsafeBufferPointer {
                expression.finds(in: $0)
            }
            #expect(isFound, "U+\(String(value, radix: 16)) is not U+\(hex) for RE2")
            count += 1
        }
        #expect(count > 1_000)
    }
}
