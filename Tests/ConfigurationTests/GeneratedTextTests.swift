import TestKit
import Testing

@testable import Configuration

/// A value, and the ways in which TOML may write it.
private indirect enum Value {
    case string([Unicode.Scalar])
    case integer(Int64)
    case double(Double)
    case boolean(Bool)
    case array([Value])
    case table([(String, Value)])

    static func random(depth: Int, _ random: inout SplitMix64) -> Value {
        switch Int.random(in: 0..<(depth > 0 ? 7 : 4), using: &random) {
        case 0:
            let pool: [Unicode.Scalar] = [
                "a", "Z", "0", "\"", "'", "\\", "\n", "\t", "#", "=", "[", "{", ".", "é", "€", "💥", "\u{1}",
                "\u{7F}",
                " ", "$",
            ]
            return .string(
                (0..<Int.random(in: 0...12, using: &random)).map { _ in
                    pool.randomElement(using: &random) ?? "a"
                })
        case 1:
            return .integer(
                Bool.random(using: &random)
                    ? Int64.random(in: .min ... .max, using: &random)
                    : Int64.random(in: -9...9, using: &random))
        case 2: return .double(Double(Int.random(in: -9999...9999, using: &random)) / 64)
        case 3: return .boolean(Bool.random(using: &random))
        case 4:
            return .array(
                (0..<Int.random(in: 0...4, using: &random)).map { _ in .random(depth: depth - 1, &random) })
        default: return table(depth: depth, &random)
        }
    }

    static func table(depth: Int, _ random: inout SplitMix64) -> Value {
        var names: Set<String> = []
        return .table(
            (0..<Int.random(in: 0...5, using: &random)).compactMap { _ in
                let pool = ["a", "b", "C-d", "_", "1", "é f", "", "x.y", "\"q\"", "#", "true"]
                guard let name = pool.randomElement(using: &random), names.insert(name).inserted else {
                    return nil
                }
                return (name, .random(depth: depth - 1, &random))
            })
    }

    var node: TOMLNode {
        let value: TOMLNode.Value =
            switch self {
            case .string(let scalars): .string(String(String.UnicodeScalarView(scalars)))
            case .integer(let number): .integer(number)
            case .double(let number): .double(number)
            case .boolean(let flag): .boolean(flag)
            case .array(let values): .array(values.map(\.node))
            case .table(let members):
                .table(members.map { .init(key: $0.0, keyPosition: nil, node: $0.1.node) })
            }
        return TOMLNode(value: value, position: nil)
    }
}

/// Writes values as TOML, in a way that chance chooses.
private struct Writer {
    var random: SplitMix64

    mutating func choose(_ texts: String...) -> String { texts.randomElement(using: &random) ?? "" }
    mutating func space() -> String { choose("", " ", "\t", " \t ") }
    mutating func newline() -> String { choose("\n", "\r\n", "\n\n", " # so\n", "\n  # [x\n") }

    mutating func document(_ members: [(String, Value)], path: [String] = []) -> String {
        var plain = ""
        var headed = ""
        for (name, value) in members {
            if case .table(let inner) = value, Bool.random(using: &random) {
                let names = path + [name]
                headed += heading(names, "[", "]") + document(inner, path: names)
            } else if case .array(let elements) = value, !elements.isEmpty, elements.allSatisfy(\.isTable),
                Bool.random(using: &random)
            {
                for case .table(let inner) in elements {
                    headed += heading(path + [name], "[[", "]]") + document(inner, path: path + [name])
                }
            } else {
                plain += keyValues(key(name), value)
            }
        }
        return plain + headed
    }

    private mutating func heading(_ names: [String], _ open: String, _ close: String) -> String {
        space() + open + space() + names.map { key($0) }.joined(separator: space() + "." + space()) + space()
            + close
            + newline()
    }

    /// One key and its value, or the dotted keys of what is in a table.
    private mutating func keyValues(_ prefix: String, _ value: Value) -> String {
        if case .table(let inner) = value, !inner.isEmpty, Bool.random(using: &random) {
            return inner.map { keyValues(prefix + space() + "." + space() + key($0.0), $0.1) }.joined()
        }
        return space() + prefix + space() + "=" + space() + text(value, inTable: false) + newline()
    }

    private mutating func key(_ name: String) -> String {
        let bare = !name.isEmpty && name.utf8.allSatisfy { "abCdxy_-1true".utf8.contains($0) }
        if bare, Bool.random(using: &random) { return name }
        return name.contains("'") || Bool.random(using: &random)
            ? basic(Array(name.unicodeScalars)) : "'\(name)'"
    }

    private mutating func text(_ value: Value, inTable: Bool) -> String {
        switch value {
        case .string(let scalars): return string(scalars)
        case .integer(let number):
            if number >= 0, Bool.random(using: &random) {
                return choose(
                    "0x" + String(number, radix: 16), "0o" + String(number, radix: 8),
                    "0b" + String(number, radix: 2),
                    "+\(number)")
            }
            return "\(number)"
        case .double(let number): return choose("\(number)", "\(number)e0", "\(number)E+00")
        case .boolean(let flag): return "\(flag)"
        case .array(let values):
            var parts: [String] = []
            for value in values { parts.append(gap() + text(value, inTable: false) + gap()) }
            return "[" + parts.joined(separator: ",") + (parts.isEmpty ? gap() : choose("", "," + gap()))
                + "]"
        case .table(let members):
            var parts: [String] = []
            for (name, value) in members {
                parts.append(
                    space() + key(name) + space() + "=" + space() + text(value, inTable: true) + space())
            }
            return "{" + parts.joined(separator: ",") + (parts.isEmpty ? space() : "") + "}"
        }
    }

    /// What may be between the values of a list.
    private mutating func gap() -> String { choose("", " ", "\n", "\r\n\t", " # , ]\n") }

    private mutating func string(_ scalars: [Unicode.Scalar]) -> String {
        let text = String(String.UnicodeScalarView(scalars))
        let printable = scalars.allSatisfy { $0 == "\t" || ($0.value >= 0x20 && $0.value != 0x7F) }
        let multiline = scalars.allSatisfy {
            $0 == "\t" || $0 == "\n" || ($0.value >= 0x20 && $0.value != 0x7F)
        }
        switch Int.random(in: 0..<4, using: &random) {
        case 0 where printable && !scalars.contains("'"): return "'\(text)'"
        case 1 where multiline && !scalars.contains("'"): return "'''\n\(text)'''"
        case 2:
            return "\"\"\""
                + (scalars.first == " " || scalars.first == "\t" ? "\n" : choose("\n", "\\\n \t\n"))
                + escaped(scalars) + "\"\"\""
        default: return basic(scalars)
        }
    }

    private mutating func basic(_ scalars: [Unicode.Scalar]) -> String { "\"" + escaped(scalars) + "\"" }

    private mutating func escaped(_ scalars: [Unicode.Scalar]) -> String {
        var text = ""
        for scalar in scalars {
            let digits = String(scalar.value, radix: 16)
            let long = "\\U" + String(repeating: "0", count: 8 - digits.count) + digits
            switch scalar {
            case "\"", "\\": text += choose("\\" + String(scalar), long)
            case "\n": text += choose("\\n", long)
            default:
                let plain = scalar == "\t" || (scalar.value >= 0x20 && scalar.value != 0x7F)
                text += plain && Int.random(in: 0..<8, using: &random) > 0 ? String(scalar) : long
            }
        }
        return text
    }
}

extension Value {
    fileprivate var isTable: Bool { if case .table = self { true } else { false } }
}

@Suite("Generated TOML")
struct GeneratedTextTests {
    @Test("a value reads the same in every notation", arguments: Seeds.list(1...4))
    func writtenValuesReadBack(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        for number in 0..<150 {
            guard case .table(let members) = Value.table(depth: 3, &random) else { return }
            var writer = Writer(random: SplitMix64(seed: random.next()))
            let text = writer.document(members)
            let (root, problems) = TOMLGrammarTests.read(text)
            let expected = Value.table(members).node.shown
            guard problems.isEmpty, root.shown == expected else {
                Issue.record(
                    "text \(number): \(problems.map(\.text))\n\(text)\nread \(root.shown)\nnot  \(expected)\n\(Seeds.again(seed))"
                )
                return
            }
        }
    }

    @Test(
        "any bytes are read or refused with a position, without a crash or delay",
        arguments: Seeds.list(1...4))
    func anyBytesAreAnswered(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let pieces = [
            "a", ".", "=", "[", "]", "[[", "]]", "{", "}", ",", "\n", "\r\n", "\"", "\"\"\"", "'", "'''", "#",
            "\\",
            "\\u", "1", "0x", "_", "-", "e", "true", "inf", "2026-11-22", "T", ":", " ", "é", "\u{0}",
            "${HOME}",
            "[queue]\n", "max_size", "[[destination]]\n", "name",
        ].map { Array($0.utf8) }
        for number in 0..<200 {
            var bytes: [UInt8] = []
            for _ in 0..<Int.random(in: 0...120, using: &random) {
                let piece =
                    Int.random(in: 0..<40, using: &random) == 0
                    ? [UInt8.random(in: 0...255, using: &random)] : pieces.randomElement(using: &random) ?? []
                for _
                    in 0..<(Int.random(in: 0..<30, using: &random) == 0
                    ? Int.random(in: 2...3000, using: &random) : 1)
                { bytes += piece }
            }
            do {
                let text = try ConfigurationText(file: "t.toml", bytes: bytes)
                _ = try Settings.read([text])
            } catch let problem as Problem {
                #expect(problem.position != nil, "text \(number): \(bytes) \(Seeds.again(seed))")
            } catch let error as ConfigurationError {
                let errors = error.problems.filter { $0.severity == .error }
                #expect(
                    !errors.isEmpty && errors.allSatisfy { $0.position != nil },
                    "text \(number): \(bytes) \(Seeds.again(seed))")
            } catch {
                Issue.record("text \(number): \(error) \(Seeds.again(seed))")
            }
        }
    }
}
