@testable import Events
import EventLoops
import Model
import TestKit
import Testing

@Suite("Limits of an event")
struct LimitTests {
    static let all: [LimitConsequence] = LimitConsequence.allCases

    /// Texts of just so many UTF-16 code units, as JSON text: plain, of two bytes, of three, pairs, combining, escaped.
    static func texts(_ units: Int) -> [String] {
        [
            String(repeating: "x", count: units), String(repeating: "é", count: units),
            String(repeating: "漢", count: units), String(repeating: "\u{800}", count: units),
            String(repeating: "x", count: units % 2) + String(repeating: "😀", count: units / 2),
            String(repeating: "x", count: units % 2) + String(repeating: "e\u{301}", count: units / 2),
            String(repeating: "\\u00e9", count: units), String(repeating: "\\n", count: units),
            String(repeating: "x", count: units % 2) + String(repeating: "\\ud83d\\ude00", count: units / 2),
            String(repeating: "x", count: units % 2) + String(repeating: "\\\\\\\"", count: units / 2),
        ]
    }

    private func options(_ change: (inout EventLimits) -> Void) -> EventOptions {
        var options = EventOptions()
        options.defaults.limits = .appCenter
        change(&options.defaults.limits)
        return options
    }

    private func check(
        _ kind: LimitKind, _ consequence: LimitConsequence, _ reading: inout Reading, within: String,
        beyond: String,
        cut: String
    ) throws {
        let before = reading.pass.counts
        #expect(try kept(reading.read(within).output) == within)
        #expect(reading.pass.counts == before)
        let (verdict, output) = reading.read(beyond)
        switch consequence {
        case .cut:
            #expect(try kept(output) == cut)
            #expect(reading.pass.counts[.cut, kind] == before[.cut, kind] + 1)
        case .allow:
            #expect(try kept(output) == beyond)
            #expect(reading.pass.counts[.allow, kind] == before[.allow, kind] + 1)
        case .refuse:
            #expect(verdict.kind == .refused && reading.pass.problem?.limit == kind)
            #expect(reading.pass.counts[.refuse, kind] == before[.refuse, kind] + 1)
        case .quarantine:
            #expect(verdict.kind == .quarantined && reading.pass.problem?.reason == .limit)
            #expect(reading.pass.counts[.quarantine, kind] == before[.quarantine, kind] + 1)
            #expect(reading.pass.problem?.limit == kind)
        }
    }

    @Test("ac19: names of 256 units stay whole, of 257 are truncated", arguments: all)
    func ac19_nameLength(consequence: LimitConsequence) throws {
        var reading = Reading(
            options {
                $0.nameLength.consequence = consequence
                $0.eventNames.value = 0
            })
        for text in LimitTests.texts(256) {
            func line(_ name: String) -> String { #"{"name":"\#(name)"}"# }
            try check(
                .nameLength, consequence, &reading, within: line(text), beyond: line(text + "y"),
                cut: line(text))
        }
    }

    @Test("ac19: keys and values of 125 units stay whole, of 126 are truncated", arguments: all)
    func ac19_propertyLengths(consequence: LimitConsequence) throws {
        var reading = Reading(
            options {
                $0.propertyKeyLength.consequence = consequence
                $0.propertyValueLength.consequence = consequence
            })
        for text in LimitTests.texts(125) {
            func key(_ key: String) -> String {
                #"{"name":"a","properties":{"n":1.0,"\#(key)":[ 1 ],"z":{}}}"#
            }
            func value(_ value: String) -> String {
                #"{"name":"a","properties":{"n":1.0,"v":"\#(value)","z":{}}}"#
            }
            try check(
                .propertyKeyLength, consequence, &reading, within: key(text), beyond: key(text + "y"),
                cut: key(text))
            try check(
                .propertyValueLength, consequence, &reading, within: value(text), beyond: value(text + "y"),
                cut: value(text))
        }
    }

    @Test("ac19: a surrogate pair at the boundary is removed as a whole, plain or escaped")
    func ac19_pairsAreNeverCut() throws {
        var reading = Reading(options { _ in })
        for pair in ["😀", "\\ud83d\\ude00"] {
            for (length, limit, line) in [
                (255, 256, { #"{"name":"\#($0)"}"# }),
                (124, 125, { #"{"name":"a","properties":{"\#($0)":1}}"# }),
                (124, 125, { #"{"name":"a","properties":{"k":"\#($0)"}}"# }),
            ] as [(Int, Int, (String) -> String)] {
                let text = String(repeating: "x", count: length)
                #expect(try kept(reading.read(line(text + pair)).output) == line(text))
                let fits = String(repeating: "x", count: limit - 2) + pair
                #expect(try kept(reading.read(line(fits)).output) == line(fits))
            }
        }
    }

    @Test("ac19: 20 properties are kept; of 21 the first 20 in document order", arguments: all)
    func ac19_properties(consequence: LimitConsequence) throws {
        var reading = Reading(options { $0.properties.consequence = consequence })
        func line(_ count: Int) -> String {
            #"{"name":"a","properties":{"#
                + (0..<count).map { #""k\#(20 - $0)":\#($0).50"# }.joined(separator: ",")
                + "}}"
        }
        try check(.properties, consequence, &reading, within: line(20), beyond: line(21), cut: line(20))
    }

    @Test("ac19: of keys that become equal by truncation one stays, in the first place with the last value")
    func ac19_equalKeysMerge() throws {
        var reading = Reading(options { _ in })
        let long = String(repeating: "k", count: 125)
        let many = (0..<19).map { #""p\#($0)":0"# }.joined(separator: ",")
        let line = #"{"name":"a","properties":{"\#(long)1":1,\#(many),"\#(long)2":"two", "\#(long)":[3, 3]}}"#
        let merged = #"{"name":"a","properties":{"\#(long)":[3, 3],\#(many)}}"#
        #expect(try kept(reading.read(line).output) == merged)
        #expect(reading.pass.counts[.mergedProperty] == 2 && reading.pass.counts[.cut, .properties] == 0)
        #expect(reading.pass.counts[.cut, .propertyKeyLength] == 2)
        // Equal without cutting, and equal only once decoded.
        let plain = #"{"name":"a","properties":{"x":1,"y":2,"x":3,"\u0078":4}}"#
        #expect(try kept(reading.read(plain).output) == #"{"name":"a","properties":{"x":4,"y":2}}"#)
        let eight = #"{"name":"a","properties":{"abcdefgh1":1,"abcdefgh2":2,"abcdefgh1":3}}"#
        #expect(
            try kept(reading.read(eight).output)
                == #"{"name":"a","properties":{"abcdefgh1":3,"abcdefgh2":2}}"#)
    }

    @Test(
        "ac19: values at a limit are not counted, allowed excess is counted once an event, a list is no object"
    )
    func ac19_exactly() throws {
        var reading = Reading(
            options {
                $0.properties = Limit(2, .allow)
                $0.propertyValueLength = Limit(3, .allow)
            })
        for (properties, expected) in [
            (#"{"x":1,"y":2,"x":3}"#, #"{"x":3,"y":2}"#),
            (#"{"x":"abcd","y":"efgh"}"#, #"{"x":"abcd","y":"efgh"}"#),
        ] {
            let output = try kept(reading.read(#"{"name":"a","properties":\#(properties)}"#).output)
            #expect(output == #"{"name":"a","properties":\#(expected)}"#)
        }
        #expect(reading.pass.counts[.allow, .properties] == 0)
        #expect(reading.pass.counts[.allow, .propertyValueLength] == 1)
        var unlimited = Reading(options { $0.properties = Limit(0, .allow) })
        #expect(
            try kept(unlimited.read(#"{"name":"a","properties":{"x":1,"x":2}}"#).output).contains(#"{"x":2}"#)
        )
        #expect(unlimited.pass.counts[.allow, .properties] == 0)
        // The object before was long; what counts is a list.
        let list = #"{"name":"a","properties":{"k":"abcd"},"properties":["abcd","abcd"]}"#
        #expect(try kept(reading.read(list).output) == #"{"name":"a","properties":["abcd","abcd"]}"#)
    }

    @Test("ac19: truncation agrees with a plain model, on random documents")
    func ac19_againstModel() throws {
        var random = SplitMix64(seed: Seeds.one(19))
        for round in 0..<3000 {
            var limits = EventLimits()
            limits.properties.value = Int.random(in: 0...4, using: &random)
            limits.propertyKeyLength.value = Int.random(in: 0...3, using: &random)
            limits.propertyValueLength.value = Int.random(in: 0...3, using: &random)
            var reading = Reading(options { $0 = limits })
            let pieces = ["a", "b", "é", "😀", "\u{301}"]
            func text() -> String {
                (0..<Int.random(in: 0...4, using: &random)).map { _ in
                    pieces.randomElement(using: &random) ?? ""
                }
                .joined()
            }
            let members = (0..<Int.random(in: 0...40, using: &random) / 4).map { _ in (text(), text()) }
            func object(_ members: [(String, String)]) -> String {
                "{" + members.map { "\"\($0.0)\":\"\($0.1)\"" }.joined(separator: ",") + "}"
            }
            func cut(_ text: String, _ limit: Int) -> String {
                guard limit > 0 else { return text }
                var units = 0
                var result = String.UnicodeScalarView()
                for scalar in text.unicodeScalars {
                    units += UTF16.width(scalar)
                    if units > limit { break }
                    result.append(scalar)
                }
                return String(result)
            }
            var model: [(key: [UInt8], members: (String, String))] = []
            for (key, value) in members {
                let key = cut(key, limits.propertyKeyLength.value)
                if let place = model.firstIndex(where: { $0.key == Array(key.utf8) }) {
                    model[place].members.1 = value
                } else {
                    model.append((Array(key.utf8), (key, value)))
                }
            }
            if limits.properties.value > 0 { model = Array(model.prefix(limits.properties.value)) }
            let expected = object(
                model.map { ($0.members.0, cut($0.members.1, limits.propertyValueLength.value)) })
            let output = try #require(reading.read(#"{"name":"n","properties":\#(object(members))}"#).output)
            let result = try kept(output)
            guard Array(result.utf8) == Array(#"{"name":"n","properties":\#(expected)}"#.utf8) else {
                Issue.record("round \(round): \(members) gave \(result), not \(expected)")
                return
            }
        }
    }

    @Test(
        "ac19: 200 names an app and UTC day are accepted, the 201st is refused, and known ones continue",
        arguments: all)
    func ac19_eventNames(consequence: LimitConsequence) throws {
        var reading = Reading(options { $0.eventNames.consequence = consequence })
        func name(_ index: Int) -> String { #"{"name":"name number \#(index)"}"# }
        for index in 0..<200 { #expect(reading.read(name(index)).verdict.kind == .accepted) }
        let expected: Verdict.Kind =
            switch consequence {
            case .allow: .accepted
            case .cut, .refuse: .refused
            case .quarantine: .quarantined
            }
        #expect(reading.read(name(200)).verdict.kind == expected)
        #expect(reading.read(name(199)).verdict.kind == .accepted)
        #expect(reading.read(#"{"name":"name numb\u0065r 7"}"#).verdict.kind == .accepted)
        // What is quarantined for another reason takes no place; a session's start always has one.
        #expect(reading.read(#"{"type":"start_session"}"#).verdict.kind == .accepted)
        let lastOfDay = Timestamp(milliseconds: 1_795_219_199_999)
        #expect(reading.read(name(200), at: lastOfDay).verdict.kind == expected)
        #expect(reading.read(name(200), at: lastOfDay + .milliseconds(1)).verdict.kind == .accepted)
        var random = SplitMix64(seed: 2)
        let other = reading.pass.source(app: "other", using: &random)
        reading.pass.begin(other, at: Reading.now, isSynchronised: true, using: &random)
    }

    @Test("ac19: the day's names survive a restart")
    func ac19_namesAreRemembered() {
        var first = Reading(options { $0.eventNames.value = 2 })
        for name in ["a", "b"] { #expect(first.read(#"{"name":"\#(name)"}"#).verdict.kind == .accepted) }
        let memory = first.pass.takeMemory()
        #expect(first.pass.takeMemory().isEmpty)
        var second = Reading(options { $0.eventNames.value = 2 })
        var random = SplitMix64(seed: 2)
        second.pass.restore(memory.compactMapValues { $0 }, using: &random)
        #expect(second.read(#"{"name":"c"}"#).verdict.kind == .refused)
        #expect(second.read(#"{"name":"b"}"#).verdict.kind == .accepted)
        #expect(second.read(#"{"name":"c"}"#, at: Reading.now + .seconds(86_400)).verdict.kind == .accepted)
    }

    @Test(
        "limits truncate no text that patterns search, and the note of a truncation names no secret property"
    )
    func hidden() {
        var reading = Reading(options { $0 = .appCenter })
        let long = String(repeating: "x", count: 300)
        reading.pass.isSearched = true
        for event in [#"{"name":"\#(long)"}"#, #"{"name":"a","properties":{"\#(long)":1,"k":"\#(long)"}}"#] {
            #expect(reading.read(event).output?.contains(long) == true)
        }
        #expect(reading.pass.counts.lastCut == nil)
        reading.pass.isSearched = false
        for (second, (name, told)) in [("ann@example.com", "(a property)"), ("user.name", "user.name")]
            .enumerated()
        {
            _ = reading.read(
                #"{"name":"a","properties":{"\#(name)":"\#(long)"}}"#, at: Reading.now + .seconds(second))
            #expect(reading.pass.counts.lastCut?.member == "properties.\(told)")
        }
    }

    @Test("of too many apps those read longest ago are forgotten, with their names")
    func appsAreBounded() {
        var reading = Reading(options { $0.eventNames.value = 10 })
        var kept: Set<String> = []
        var most = 0
        var random = SplitMix64(seed: 2)
        for number in 0..<5000 {
            let source = reading.pass.source(app: "uid-\(number)", isShared: true, using: &random)
            reading.pass.begin(source, at: Reading.now, isSynchronised: true, using: &random)
            let line = Array("{\"name\":\"a\"}\n".utf8)
            let verdict = line.withUnsafeBufferPointer {
                reading.pass.read($0.baseAddress!, from: 0, to: $0.count)
            }
            #expect(verdict.kind == .accepted)
            #expect(reading.read(#"{"name":"b"}"#).verdict.kind == .accepted)
            for (key, bytes) in reading.pass.takeMemory() {
                if bytes == nil { kept.remove(key) } else { kept.insert(key) }
            }
            most = max(most, reading.pass.nameCounts.count)
        }
        #expect(most <= PassMemory.mostApps)
        // Whoever was read all along is not.
        #expect(reading.pass.nameCounts["shop"]?.names == 1)
        #expect(kept == Set(reading.pass.nameCounts.keys.map { "names/\($0)" }))
    }

    @Test("nothing is truncated by default, and 0 switches a limit off")
    func ac19_off() throws {
        var reading = Reading(options { $0 = EventLimits() })
        let long = String(repeating: "x", count: 5000)
        let properties = (0..<500).map { #""\#(long)\#($0)":"\#(long)""# }.joined(separator: ",")
        let line = #"{"name":"\#(long)","properties":{\#(properties)}}"#
        #expect(try kept(reading.read(line).output) == line)
        for index in 0..<1000 { #expect(reading.read(#"{"name":"\#(index)"}"#).verdict.kind == .accepted) }
        #expect(reading.pass.counts == EventCounts())
    }

    @Test("properties that are absent, null, empty or no object are unchanged")
    func ac20_otherProperties() throws {
        var reading = Reading()
        for properties in ["null", "{}", "{ }", "[1,2]", #""text""#, "7"] {
            let line = #"{"name":"a","properties":\#(properties)}"#
            #expect(try kept(reading.read(line).output) == line)
        }
    }
}
