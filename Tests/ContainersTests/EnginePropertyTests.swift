import Containers
import Foundation
import Model
import TestKit
import Testing

/// The engine against models that know nothing of its indexes, caches and splices.
@Suite("Rules against models")
struct EnginePropertyTests {
    // MARK: Which tags fire

    @Test("indexed and cached rules fire the same tags as plain evaluation, for random documents and events")
    func firingAgrees() throws {
        let seed = Seeds.one(2)
        var random = SplitMix64(seed: seed)
        var fired = 0
        for _ in 0..<150 {
            let text = document(&random)
            let document = try ContainerDocument(reading: Array(text.utf8))
            let trial = try Trial(text)
            for _ in 0..<40 {
                let event = event(&random)
                let line = written(event, &random)
                let isConcerned = Array((event["name"]?.string ?? "").utf8).withUnsafeBufferPointer {
                    trial.engine.mayConcern(name: $0)
                }
                let tags = trial.apply(line).tags
                let expected = plainly(document, event)
                #expect(tags == expected, "\(Seeds.again(seed))\n\(text)\n\(line)")
                #expect(isConcerned || expected.isEmpty, "\(Seeds.again(seed))\n\(text)\n\(line)")
                fired += tags.count
            }
        }
        #expect(fired > 500, "the documents are too strict to show anything; \(Seeds.again(seed))")
    }

    private func document(_ random: inout SplitMix64) -> String {
        func pick<T>(_ list: [T]) -> T { list[Int.random(in: 0..<list.count, using: &random)] }
        let rules = (0..<6).map { number -> String in
            let conditions = (0..<Int.random(in: 0...3, using: &random)).map { _ -> String in
                let macro = pick(["event", "event", "p", "q", "long", "deep", "sized"])
                let predicate = pick(["equals"] + Condition.Predicate.allCases.map(\.rawValue))
                let comparand: String
                switch predicate {
                case "equals":
                    comparand = pick([
                        "\"a\"", "\"b\"", "\"ab\"", "5", "5.5", "\"5.50\"", "0.1", "null", "true",
                        "{\"macro\":\"p\"}",
                        "{\"macro\":\"long\"}",
                    ])
                case "matches":
                    comparand = pick([
                        "\"^a\"", "\"b$\"", "\"[0-9]\"", "\"^ab*$\"", "\"^ab?\"", "\"^b|5\"", "\"^A?B\"",
                        "\"^5.5\"",
                        "\"^ab$\"",
                        "\"^(?:x|ab)\"",
                    ])
                case "less", "less_or_equal", "greater", "greater_or_equal":
                    comparand = pick([
                        "1", "5", "5.5", "-0.25", "1e1", "9007199254740993", "{\"macro\":\"q\"}",
                    ])
                default: comparand = pick(["\"a\"", "\"b\"", "\"\"", "\"B\"", "\"ab\"", "\"aaab\""])
                }
                let negate = Bool.random(using: &random) ? ",\"negate\":true" : ""
                let fold = Bool.random(using: &random) ? ",\"ignore_case\":true" : ""
                return "{\"macro\":\"\(macro)\",\"\(predicate)\":\(comparand)\(negate)\(fold)}"
            }
            return "\"r\(number)\":{\"conditions\":[\(conditions.joined(separator: ","))]}"
        }
        let tags = (0..<8).map { number -> String in
            let names = (0..<6).map { "\"r\($0)\"" }.shuffled(using: &random)
            let count = Int.random(in: 1...2, using: &random)
            let blocking =
                Int.random(in: 0...2, using: &random) == 0 ? ",\"blocking_rules\":[\(names[3])]" : ""
            return "{\"name\":\"t\(number)\",\"type\":\"prioritise\",\"priority\":\"critical\","
                + "\"rules\":[\(names.prefix(count).joined(separator: ","))]\(blocking)}"
        }
        return """
            {"id":"A","version":1,"macros":{"p":{"type":"event_property","path":"p"},"q":{"type":"event_member","path":"q.r","default":5},
            "long":{"type":"event_property","path":"a property with a long name"},"sized":{"type":"event_property","path":"a proper"},
            "deep":{"type":"event_property","path":["p","a.b","c"],"default":"b"}},
            "rules":{\(rules.joined(separator: ","))},"tags":[\(tags.joined(separator: ","))]}
            """
    }

    private func event(_ random: inout SplitMix64) -> JSONValue {
        func value() -> JSONValue {
            let values: [JSONValue] = [
                "a", "b", "ab", "AB", "5", 5, 1, .double(5.5), true, .null, ["x": 1], [1], "", "5.50", "05",
                "1e1",
                .double(0.1), .double(-0.25), .integer(9_007_199_254_740_993), .double(9_007_199_254_740_992),
                ["a.b": ["c": "a"]], ["a.b": 5], "a\"b", "\u{E9}A", .integer(.min), "aaaaaab", "aaaaaaaaa",
            ]
            return values[Int.random(in: 0..<values.count, using: &random)]
        }
        let names = ["a", "b", "ab", "A", "other"]
        var members: [JSONValue.Member] = [
            .init("name", .string(names[Int.random(in: 0..<names.count, using: &random)]))
        ]
        // Of members of one name the last counts, whatever the others are.
        for _ in 0..<Int.random(in: 0...2, using: &random) {
            let names = [
                "p", "p", "a property with a long name", "a property with a long nam", "a proper", "x",
            ]
            let properties = (0..<Int.random(in: 0...4, using: &random)).map { _ in
                JSONValue.Member(names[Int.random(in: 0..<names.count, using: &random)], value())
            }
            let isObject = Int.random(in: 0..<5, using: &random) > 0
            members.append(.init("properties", isObject ? .object(properties) : value()))
        }
        if Bool.random(using: &random) { members.append(.init("q", .object([.init("r", value())]))) }
        return .object(members.shuffled(using: &random))
    }

    /// The event as text: with white space, and with escapes in names, which mean the same.
    private func written(_ event: JSONValue, _ random: inout SplitMix64) -> String {
        var text = event.description
        if Bool.random(using: &random) { text = text.replacingOccurrences(of: "\":", with: "\" : ") }
        if Bool.random(using: &random) { text = text.replacingOccurrences(of: "\"p\"", with: "\"\\u0070\"") }
        if Bool.random(using: &random) {
            text = text.replacingOccurrences(of: "long name\"", with: "l\\u006fng name\"")
        }
        return text
    }

    private func plainly(_ document: ContainerDocument, _ event: JSONValue) -> [String] {
        func macro(_ name: String) -> JSONValue {
            switch name {
            case "event": event["name"] ?? .null
            case "p": event["properties"]?["p"] ?? .null
            case "long": event["properties"]?["a property with a long name"] ?? .null
            case "sized": event["properties"]?["a proper"] ?? .null
            case "deep": event["properties"]?["p"]?["a.b"]?["c"] ?? "b"
            default: event["q"]?["r"] ?? 5
            }
        }
        func holds(_ name: String) -> Bool {
            document.rules.first { $0.name == name }?.conditions.allSatisfy { condition in
                let other: JSONValue =
                    switch condition.comparand {
                    case .constant(let value): value
                    case .macro(let name): macro(name)
                    }
                return plainly(condition, macro(condition.macro), other) != condition.negate
            } ?? false
        }
        return document.tags.filter {
            $0.rules.contains(where: holds) && !$0.blockingRules.contains(where: holds)
        }
        .map(\.name)
    }

    private func plainly(_ condition: Condition, _ value: JSONValue, _ other: JSONValue) -> Bool {
        func spelled(_ value: JSONValue) -> String? {
            switch value {
            case .string(let text): text
            case .bool, .integer, .double: value.description
            default: nil
            }
        }
        // Exactly, as the document says: by Foundation's decimal numbers, whose 38 digits are more than these have.
        func number(_ value: JSONValue) -> Foundation.Decimal? {
            guard value.number != nil || value.string != nil, let text = spelled(value),
                (try? JSONValue(parsing: text))?.number != nil
            else { return nil }
            return Foundation.Decimal(string: text)
        }
        if condition.predicate == .equals, value == .null || other == .null { return value == other }
        if condition.predicate == .equals, value.number != nil || other.number != nil {
            guard let left = number(value), let right = number(other) else { return false }
            return left == right
        }
        if condition.predicate.rawValue.hasPrefix("less") || condition.predicate.rawValue.hasPrefix("greater")
        {
            guard let left = number(value), let right = number(other) else { return false }
            switch condition.predicate {
            case .less: return left < right
            case .lessOrEqual: return left <= right
            case .greater: return left > right
            default: return left >= right
            }
        }
        guard var left = spelled(value), var right = spelled(other) else { return false }
        if condition.predicate != .equals, other.string == nil { return false }
        if condition.predicate == .matches {
            let options: NSString.CompareOptions =
                condition.ignoreCase ? [.regularExpression, .caseInsensitive] : .regularExpression
            return left.range(of: right, options: options) != nil
        }
        if condition.ignoreCase {
            left = left.lowercased()
            right = right.lowercased()
        }
        switch condition.predicate {
        case .equals: return left == right
        case .contains: return right.isEmpty || left.contains(right)
        case .startsWith: return left.hasPrefix(right)
        case .endsWith: return left.hasSuffix(right)
        // These have returned above. There is no default, so that the compiler asks for a new predicate.
        case .matches, .less, .lessOrEqual, .greater, .greaterOrEqual: return false
        }
    }

    // MARK: Splices

    @Test("splicing agrees with the same changes to a tree, for random events and changes")
    func splicingAgrees() throws {
        let seed = Seeds.one(2)
        var random = SplitMix64(seed: seed)
        var documents = JSONDocuments(seed: seed)
        var changed = 0
        for _ in 0..<3000 {
            guard case .object(let members)? = try? JSONValue(parsing: documents.next()) else { continue }
            let event = JSONValue.object([.init("name", "n")] + members.filter { $0.key != "name" })
            let keys = Set(["a", "b"] + members.map(\.key).prefix(3)).subtracting(["name", "id"]).filter {
                !$0.isEmpty
            }
            var expected = event
            var tags: [String] = []
            for number in 0..<Int.random(in: 1...5, using: &random) {
                let path = (0..<Int.random(in: 1...3, using: &random)).compactMap { _ in
                    keys.randomElement(using: &random)
                }
                let list = JSONValue.array(path.map { .string($0) }).description
                // Half of them are values, which wait for each other.
                let change = Bool.random(using: &random) ? 0 : Int.random(in: 1..<4, using: &random)
                let tag =
                    switch change {
                    case 0: "\"type\":\"set\",\"path\":\(list),\"value\":[1.5,\"x\"]"
                    case 1: "\"type\":\"redact\",\"paths\":[\(list)]"
                    case 2: "\"type\":\"redact\",\"paths\":[\(list)],\"with\":\"gone\""
                    default: "\"type\":\"rename\",\"path\":\(list),\"to\":\"renamed\""
                    }
                tags.append("{\"name\":\"t\(number)\",\"rules\":[\"all\"],\(tag)}")
                expected = self.changed(expected, path[...], change)
            }
            let trial = try Trial(
                "\"rules\":{\"all\":{\"conditions\":[]}},\"tags\":[\(tags.joined(separator: ","))]")
            let line = event.description
            let after = trial.apply(line).line
            let parsed = try #require(try? JSONValue(parsing: after), "\(Seeds.again(seed)): \(after)")
            #expect(meaning(parsed) == meaning(expected), "\(Seeds.again(seed))\n\(tags)\n\(line)\n\(after)")
            if after != line { changed += 1 }
        }
        #expect(changed > 500, "\(Seeds.again(seed))")
    }

    /// Redacting and renaming go into lists: each of their objects is meant.
    private func hidden(_ value: JSONValue, _ path: ArraySlice<String>, _ change: Int) -> JSONValue {
        switch value {
        case .object: changed(value, path, change)
        case .array(let elements): .array(elements.map { hidden($0, path, change) })
        default: value
        }
    }

    /// The model: the same change on a tree in which the last of equal members counts.
    private func changed(_ value: JSONValue, _ path: ArraySlice<String>, _ change: Int) -> JSONValue {
        guard let name = path.first else { return value }
        var members = meaning(value).members ?? []
        let place = members.firstIndex { $0.key == name }
        guard path.count == 1 else {
            if let place, case .object = members[place].value {
                members[place] = .init(name, changed(members[place].value, path.dropFirst(), change))
            } else if let place, change != 0, case .array = members[place].value {
                members[place] = .init(name, hidden(members[place].value, path.dropFirst(), change))
            } else if change == 0 {
                let made = changed(.object([]), path.dropFirst(), change)
                if let place { members[place] = .init(name, made) } else { members.append(.init(name, made)) }
            }
            return .object(members)
        }
        switch (change, place) {
        case (0, let place?): members[place] = .init(name, [.double(1.5), "x"])
        case (0, nil): members.append(.init(name, [.double(1.5), "x"]))
        case (1, let place?): members.remove(at: place)
        case (2, let place?): members[place] = .init(name, "gone")
        case (3, let place?):
            let value = members[place].value
            members.removeAll { $0.key == "renamed" || $0.key == name }
            members.append(.init("renamed", value))
        default: break
        }
        return .object(members)
    }

    /// A value without what makes no difference: order, members that a later one replaces.
    private func meaning(_ value: JSONValue) -> JSONValue {
        switch value {
        case .object(let members):
            let last = Dictionary(members.map { ($0.key, meaning($0.value)) }) { $1 }
            return .object(last.sorted { $0.key < $1.key }.map { .init($0.key, $0.value) })
        case .array(let elements): return .array(elements.map { meaning($0) })
        default: return value
        }
    }
}
