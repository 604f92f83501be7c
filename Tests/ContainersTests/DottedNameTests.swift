import Model
import TestKit
import Testing

@testable import Containers

/// Loggers write a member as objects in objects or under one name with dots: a path with dots hides both.
@Suite("Names with dots")
struct DottedNameTests {
    private func trial(_ tags: String..., facts: AgentFacts = AgentFacts()) throws -> Trial {
        let named = tags.enumerated().map { "{\"name\":\"t\($0)\",\"rules\":[\"all\"],\($1)}" }
        return try Trial(
            "\"rules\":{\"all\":{\"conditions\":[]}},\"tags\":[\(named.joined(separator: ","))]", facts: facts
        )
    }

    private func redacted(_ paths: String, _ event: String) throws -> String {
        try trial("\"type\":\"redact\",\"paths\":[\(paths)]").apply(event).line
    }

    @Test(
        "a path with dots hides the nested member, and members whose names contain the dots",
        arguments: [
            (#""process.command_line""#, #"{"name":"n","process.command_line":"SECRET","process.pid":"1"}"#),
            (
                #""a.b.c""#,
                #"{"name":"n","a":{"b":{"c":"SECRET"}},"a.b":{"c":"SECRET"},"a":{"b.c":"SECRET"}}"#
            ),
            (
                #""a.b.c""#,
                #"{"name":"n","a.b.c":"SECRET","a\u002eb.c":"SECRET","a.b":[{"c":"SECRET","kept":1}]}"#
            ),
            (#""user""#, #"{"name":"n","user.email":"SECRET","user.address.city":"SECRET"}"#),
            (#""user.address""#, #"{"name":"n","user":{"address.city":"SECRET","age":1}}"#),
            (
                #""**.email""#,
                #"{"name":"n","user.email":"SECRET","x":{"user.work.email":"SECRET","mail":1}}"#
            ),
            (
                #""*.email""#,
                #"{"name":"n","user.email":"SECRET","my.user":{"email":"SECRET"},"a.b.email":"SECRET"}"#
            ),
            (#""properties.*""#, #"{"name":"n","properties.x":"SECRET","properties.x.y":"SECRET"}"#),
            (#""a.**.z""#, #"{"name":"n","a.z":"SECRET","a.b.c.z":"SECRET","a":{"b.c":{"z":"SECRET"}}}"#),
        ])
    func hidden(paths: String, event: String) throws {
        let line = try redacted(paths, event)
        #expect(!line.contains("SECRET"), "\(line)")
        #expect((try? JSONValue(parsing: line))?["name"] == "n", "\(line)")
        let trial = try trial("\"type\":\"redact\",\"paths\":[\(paths)]")
        let kept = String(decoding: trial.engine.presentable(Array(event.utf8), of: "shop"), as: UTF8.self)
        #expect(!kept.contains("SECRET"), "\(kept)")
        _ = trial.push("{\"type\":\"data_layer\"," + event.dropFirst())
        let memory = trial.engine.takeMemory().values.map { String(decoding: $0 ?? [], as: UTF8.self) }
            .joined()
        #expect(!memory.contains("SECRET"), "\(memory)")
        #expect(trial.engine.hiding(of: "shop").paths != nil)
    }

    @Test("a path as a list names exactly one member; members whose names contain its text stay")
    func exact() throws {
        let event = #"{"name":"n","a.b":1,"a":{"b":2},"a.bc":3,"xa.b":4,"a.b.c":5}"#
        #expect(try redacted(#"["a.b"]"#, event) == #"{"name":"n","a":{"b":2},"a.bc":3,"xa.b":4,"a.b.c":5}"#)
        #expect(
            try redacted(#"["a","b"]"#, event) == #"{"name":"n","a.b":1,"a":{},"a.bc":3,"xa.b":4,"a.b.c":5}"#)
        #expect(try redacted(#""a.b""#, event) == #"{"name":"n","a":{},"a.bc":3,"xa.b":4}"#)
        #expect(
            try redacted(#""a.b""#, #"{"name":"n","a":1,"b":2,"a.":3,".b":4}"#).contains(
                #""a":1,"b":2,"a.":3,".b":4"#))
    }

    @Test("hashes, replacement texts and patterns apply to names with dots")
    func others() throws {
        let event = #"{"name":"n","user.email":"ann@example.com"}"#
        for tag in [
            #""type":"hash","salt":"s","paths":["user.email"]"#,
            #""type":"redact","with":"-","paths":["user.email"]"#,
            #""type":"redact","pattern":"email","paths":["user.email"]"#,
        ] {
            let line = try trial(tag).apply(event).line
            #expect(line.hasPrefix(#"{"name":"n","user.email":""#) && !line.contains("ann@"), "\(line)")
        }
    }

    @Test("a name with dots is also hidden as limits truncate it, and under its names before a rename")
    func cutAndRenamed() throws {
        var facts = AgentFacts()
        facts.keyLengths = [8]
        for path in ["properties.user.email", "properties.user.ema"] {
            let trial = try trial("\"type\":\"redact\",\"paths\":[\"\(path)\"]", facts: facts)
            #expect(!trial.apply(#"{"name":"n","properties":{"user.ema":"SECRET"}}"#).line.contains("SECRET"))
            let kept = trial.engine.presentable(
                Array(#"{"properties":{"user.email":"SECRET"},"a":1}"#.utf8), of: "shop")
            #expect(String(decoding: kept, as: UTF8.self) == #"{"properties":{},"a":1}"#)
        }
        let renamed = try trial(
            #""type":"rename","path":["my.user"],"to":"user""#, #""type":"redact","paths":["user.em.ail"]"#)
        let event = #"{"name":"n","my.user":{"em.ail":"SECRET","em":{"ail":"SECRET"},"x":1}}"#
        #expect(renamed.apply(event).line == #"{"name":"n","user":{"em":{},"x":1}}"#)
        let kept = renamed.engine.presentable(Array(event.utf8), of: "shop")
        #expect(String(decoding: kept, as: UTF8.self) == #"{"name":"n","my.user":{"em":{},"x":1}}"#)
    }

    @Test("`absent` in a document's test also finds names with dots, and members in lists")
    func absent() throws {
        func failures(_ path: String, _ event: String) throws -> Int {
            let text =
                #"{"id":"A","version":1,"tests":[{"name":"t","event":\#(event),"expect":{"absent":[\#(path)]}}]}"#
            let document = try ContainerDocument(reading: Array(text.utf8))
            return try document.tests[0].failures(in: document).count
        }
        #expect(try failures(#""a.b""#, #"{"name":"n","a.b":1}"#) == 1)
        #expect(try failures(#""a.b""#, #"{"name":"n","a":[{"b":1}]}"#) == 1)
        #expect(try failures(#""a.b""#, #"{"name":"n","a":{"c":1}}"#) == 0)
        #expect(try failures(#"["a.b"]"#, #"{"name":"n","a":{"b":1}}"#) == 0)
    }

    @Test("the agent derives no name, time or severity from members that tags hide")
    func uncopied() throws {
        func hides(_ tag: String, _ names: String...) throws -> Bool {
            try trial(tag).engine.hiding(of: "shop").paths?.hides(names.map { Array($0.utf8) }) ?? false
        }
        #expect(try hides(#""type":"redact","paths":["who.id"]"#, "who", "id"))
        #expect(try hides(#""type":"hash","salt":"s","paths":["who.id"]"#, "who.id"))
        #expect(try hides(#""type":"redact","paths":["who"]"#, "who", "id"))
        #expect(try !hides(#""type":"redact","paths":["who.id"]"#, "who"))
        #expect(try hides(#""type":"redact","pattern":"email","paths":["who"]"#, "who"))
        // It finds it in the name, too.
        #expect(try !hides(#""type":"redact","pattern":"email""#, "who"))
        #expect(try trial(#""type":"discard""#).engine.hiding(of: "shop").paths == nil)
    }

    // MARK: Against a model

    @Test("hiding by paths agrees with all readings of all names, for random paths and events")
    func agrees() throws {
        let seed = Seeds.one(13)
        var random = SplitMix64(seed: seed)
        var hidden = 0
        for _ in 0..<3000 {
            let path = (0..<Int.random(in: 1...4, using: &random)).map { _ in
                ["a", "b", "c", "a", "b", "*", "**"].randomElement(using: &random) ?? "a"
            }
            let isList = Int.random(in: 0..<4, using: &random) == 0
            let event = object(3, &random)
            let all = leaves(event, [])
            let expected = Set(all.filter { !isHidden($0.names, path, isList: isList) }.map(\.text))
            let written =
                isList ? JSONValue.array(path.map { .string($0) }) : .string(path.joined(separator: "."))
            let trial = try trial("\"type\":\"redact\",\"paths\":[\(written)]")
            let text = spelled(event, &random)
            let note = "\(Seeds.again(seed)): \(written) \(text)"
            let line = trial.apply("{\"name\":\"n\"," + text.dropFirst()).line
            let after = try #require(try? JSONValue(parsing: line), "\(note) \(line)")
            #expect(Set(leaves(after, []).map(\.text)).subtracting(["n"]) == expected, "\(note) \(line)")
            let kept = String(decoding: trial.engine.presentable(Array(text.utf8), of: "shop"), as: UTF8.self)
            #expect(Set(leaves(try JSONValue(parsing: kept), []).map(\.text)) == expected, "\(note) \(kept)")
            _ = trial.push("{\"type\":\"data_layer\"," + text.dropFirst())
            for (_, bytes) in trial.engine.takeMemory() {
                let left = Set(leaves(try JSONValue(parsing: bytes ?? []), []).map(\.text))
                #expect(left.isSubset(of: expected), "\(note) \(left)")
            }
            hidden += all.count - expected.count
        }
        #expect(hidden > 1000, "\(Seeds.again(seed))")
    }

    private func object(_ depth: Int, _ random: inout SplitMix64) -> JSONValue {
        let names = ["a", "b", "c", "a.b", "b.c", "a.b.c", "c.a.b", "ab", "a.", ".a", "a..b", "."]
        return .object(
            names.shuffled(using: &random).prefix(Int.random(in: 1...4, using: &random)).map { name in
                let value: JSONValue =
                    switch depth > 1 ? Int.random(in: 0..<4, using: &random) : 0 {
                    case 1, 2: object(depth - 1, &random)
                    case 3: [object(depth - 1, &random), leaf(&random)]
                    default: leaf(&random)
                    }
                return .init(name, value)
            })
    }

    private func leaf(_ random: inout SplitMix64) -> JSONValue { .string("v\(random.next())") }

    private func spelled(_ event: JSONValue, _ random: inout SplitMix64) -> String {
        Bool.random(using: &random) ? event.description.replacingAll(".", with: "\\u002e") : event.description
    }

    private func leaves(_ value: JSONValue, _ names: [String]) -> [(names: [String], text: String)] {
        switch value {
        case .object(let members): members.flatMap { leaves($0.value, names + [$0.key]) }
        case .array(let elements): elements.flatMap { leaves($0, names) }
        default: [(names, value.string ?? "")]
        }
    }

    /// Whether a reading of the names, each whole or in parts, begins with names that the path allows.
    private func isHidden(_ names: [String], _ path: [String], isList: Bool) -> Bool {
        readings(names[...], isList).contains { reading in
            (0...reading.count).contains { allows(path[...], reading[..<$0]) }
        }
    }

    private func readings(_ names: ArraySlice<String>, _ isList: Bool) -> [[String]] {
        guard let first = names.first else { return [[]] }
        let parts = first.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        let ways =
            isList
            ? [[first]]
            : parts.dropFirst().reduce([[parts[0]]]) { ways, part in
                ways.flatMap { [$0 + [part], $0.dropLast() + ["\($0.last ?? "").\(part)"]] }
            }
        let rests = readings(names.dropFirst(), isList)
        return ways.flatMap { way in rests.map { way + $0 } }
    }

    private func allows(_ path: ArraySlice<String>, _ names: ArraySlice<String>) -> Bool {
        switch path.first {
        case nil: names.isEmpty
        case "**":
            allows(path.dropFirst(), names) || !names.isEmpty && allows(path, names.dropFirst())
        case let step?:
            !names.isEmpty && (step == "*" || step == names.first)
                && allows(path.dropFirst(), names.dropFirst())
        }
    }
}
