import Model
import TestKit
import Testing

@testable import Containers

/// Numbers that conditions compare and getters convert, by one rule: a number is what its digits say.
@Suite("Numbers")
struct NumberTests {
    private static func number(_ text: String) -> Number? {
        Array(text.utf8).withUnsafeBufferPointer { Number($0) }
    }

    private static func order(_ left: String, _ right: String) -> Int? {
        Array(left.utf8).withUnsafeBufferPointer { a in
            Array(right.utf8).withUnsafeBufferPointer { b in
                guard let first = Number(a), let second = Number(b) else { return nil }
                return first.order(a, to: second, b)
            }
        }
    }

    /// An oracle that shares nothing with what it checks: both numbers as whole ones, in units of the smaller power of ten.
    private struct Exact {
        var isNegative: Bool
        var digits: [UInt8]
        var power: Int

        /// By a machine of states over the grammar of RFC 8259.
        init?(_ text: String) {
            enum State { case start, minus, zero, whole, point, fraction, e, sign, exponent }
            var state = State.start
            var mantissa: [UInt8] = []
            var behind = 0
            var exponent = 0
            var down = false
            isNegative = false
            for byte in text.utf8 {
                let digit = (0x30...0x39).contains(byte) ? byte - 0x30 : nil
                switch (state, Character(Unicode.Scalar(byte)), digit) {
                case (.start, "-", _):
                    isNegative = true
                    state = .minus
                case (.start, _, 0?), (.minus, _, 0?):
                    mantissa.append(0)
                    state = .zero
                case (.start, _, let digit?), (.minus, _, let digit?), (.whole, _, let digit?):
                    mantissa.append(digit)
                    state = .whole
                case (.zero, ".", _), (.whole, ".", _): state = .point
                case (.point, _, let digit?), (.fraction, _, let digit?):
                    mantissa.append(digit)
                    behind += 1
                    state = .fraction
                case (.zero, "e", _), (.zero, "E", _), (.whole, "e", _), (.whole, "E", _),
                    (.fraction, "e", _),
                    (.fraction, "E", _):
                    state = .e
                case (.e, "+", _): state = .sign
                case (.e, "-", _):
                    down = true
                    state = .sign
                case (.e, _, let digit?), (.sign, _, let digit?), (.exponent, _, let digit?):
                    exponent = exponent * 10 + Int(digit)
                    state = .exponent
                default: return nil
                }
            }
            guard [.zero, .whole, .fraction, .exponent].contains(state) else { return nil }
            digits = mantissa
            power = (down ? -exponent : exponent) - behind
        }

        func scaled(to least: Int) -> [UInt8] {
            let all = digits + Array(repeating: 0, count: power - least)
            return Array(all.drop { $0 == 0 })
        }

        func order(to other: Exact) -> Int {
            let least = min(power, other.power)
            let (a, b) = (scaled(to: least), other.scaled(to: least))
            if a.isEmpty && b.isEmpty { return 0 }
            let (left, right) = (isNegative && !a.isEmpty, other.isNegative && !b.isEmpty)
            guard left == right else { return left ? -1 : 1 }
            let size =
                a.count != b.count
                ? (a.count < b.count ? -1 : 1) : a == b ? 0 : a.lexicographicallyPrecedes(b) ? -1 : 1
            return left ? -size : size
        }
    }

    private static let seed = Seeds.one(15)

    /// Spellings that differ little in value, and ones that are no numbers.
    static let spellings: [String] = {
        var made = [
            "0", "-0", "0.0", "-0.0", "0e5", "00", "", "-", "+1", "1.", ".5", "0x10", "042", "5 ", " 5",
            "+42", "1e",
            "1e+",
            "Infinity", "nan", "1_000", "1,5", "٣", "１", "5", "5.0", "5e0", "50e-1", "0.5e1", "500E-2",
            "5.00000000000000001",
            "42", "42.0", "4.2e1", "9007199254740992", "9007199254740993", "9007199254740993.0",
            "9007199254740992.5",
            "9.007199254740993e15", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
            "-9223372036854775809", "18446744073709551615", "18446744073709551616", "1e19", "1e400", "1e401",
            "-1e400",
            "1e-400", "2e-400", "0.1", "0.10", "0.1000000000000000055", "0.30000000000000004", "0.3", "1e15",
            "1e16",
            "999999999999999", "1000000000000000", "123456789012345.6", "123456789012345.5", "1e280", "1e281",
            "1e-280",
        ]
        var random = SplitMix64(seed: seed)
        while made.count < 110 {
            let digits = (0..<Int.random(in: 1...22, using: &random)).map { _ in
                "\(Int.random(in: 0...9, using: &random))"
            }
            let point = Bool.random(using: &random) ? ".\(Int.random(in: 0...99, using: &random))" : ""
            let power = Bool.random(using: &random) ? "e\(Int.random(in: -20...20, using: &random))" : ""
            made.append((Bool.random(using: &random) ? "-" : "") + digits.joined() + point + power)
        }
        return made
    }()

    @Test("tm12: 12,100 pairs of spellings compare like exact numbers, or not at all")
    func pairs() {
        let exact = Self.spellings.map { Exact($0) }
        var compared = 0
        for (place, left) in Self.spellings.enumerated() {
            for (other, right) in Self.spellings.enumerated() {
                let wanted = exact[place].flatMap { left in exact[other].map { left.order(to: $0) } }
                #expect(Self.order(left, right) == wanted, "\(left) to \(right); \(Seeds.again(Self.seed))")
                compared += wanted == nil ? 0 : 1
            }
        }
        #expect(Self.spellings.count * Self.spellings.count == 12_100)
        #expect(compared > 4_000)
    }

    @Test(
        "tm12: a condition compares numbers of event and document by value, in both directions, also in texts"
    )
    func conditions() throws {
        let good = Self.spellings.filter { Exact($0) != nil && (try? JSONValue(parsing: $0)) != nil }
        let kept = try good.filter { try KeptNumbers.read(Array($0.utf8)).lost == nil }
        #expect(kept.count > 30)
        var compared = 0
        for right in kept {
            for form in [right, "\"\(right)\""] {
                let trial = try Trial(comparing(with: form))
                for left in Self.spellings {
                    for spelled in Exact(left) == nil ? ["\"\(left)\""] : [left, "\"\(left)\""] {
                        let wanted = expected(spelled, form)
                        let outcome = trial.apply("{\"name\":\"n\",\"v\":\(spelled)}")
                        #expect(
                            Set(outcome.tags) == wanted, "\(spelled) with \(form); \(Seeds.again(Self.seed))")
                        compared += 1
                    }
                }
            }
        }
        #expect(compared > 12_000)
    }

    /// A document with a tag for each predicate, named after it, that compares the event's `v`. Orders take numbers, or what a
    /// macro gives; so texts come by a macro.
    private func comparing(with form: String) -> String {
        let predicates = ["equals", "less", "less_or_equal", "greater", "greater_or_equal"]
        let rules = predicates.map { predicate in
            let isDirect = predicate == "equals" || !form.hasPrefix("\"")
            let comparand = isDirect ? form : "{\"macro\": \"w\"}"
            return "\"\(predicate)\": {\"conditions\": [{\"macro\": \"v\", \"\(predicate)\": \(comparand)}]}"
        }
        let tags = predicates.map {
            "{\"name\": \"\($0)\", \"type\": \"prioritise\", \"priority\": \"normal\", \"rules\": [\"\($0)\"]}"
        }
        return """
            "macros": {"v": {"type": "event_member", "path": "v"}, "w": {"type": "constant", "value": \(form)}},
            "rules": {\(rules.joined(separator: ", "))}, "tags": [\(tags.joined(separator: ", "))]
            """
    }

    /// The documented rule: equality is numeric where at least one side is a number, else by bytes; orders are numeric.
    private func expected(_ left: String, _ right: String) -> Set<String> {
        func bare(_ form: String) -> String { form.filter { $0 != "\"" } }
        let areTexts = left.hasPrefix("\"") && right.hasPrefix("\"")
        guard let a = Exact(bare(left)), let b = Exact(bare(right)) else { return [] }
        let order = a.order(to: b)
        let isEqual = areTexts ? left == right : order == 0
        return Set(
            (isEqual ? ["equals"] : []) + (order < 0 ? ["less"] : []) + (order <= 0 ? ["less_or_equal"] : [])
                + (order > 0 ? ["greater"] : []) + (order >= 0 ? ["greater_or_equal"] : []))
    }

    @Test("tm09: getters convert exactly or not at all")
    func getters() {
        let large = "9007199254740993"
        let cases: [(JSONValue, TypedValue, JSONValue?)] = [
            (.string(large), .integer, .integer(9_007_199_254_740_993)), (.string(large), .double, nil),
            (.integer(9_007_199_254_740_993), .double, nil), ("0x10", .integer, nil), ("0x10", .double, nil),
            ("+42", .integer, nil), ("+42", .double, nil), ("042", .integer, nil), ("042", .double, nil),
            ("5.0", .integer, 5), ("5e0", .integer, 5), ("5.5", .integer, nil), ("5 ", .integer, nil),
            ("5 ", .double, nil),
            (" 5", .double, nil), ("18446744073709551616", .integer, nil),
            ("18446744073709551616", .double, nil), ("9223372036854775807", .integer, .integer(.max)),
            ("-9223372036854775808", .integer, .integer(.min)), ("1e400", .double, nil),
            ("0.1", .double, .double(0.1)),
            ("0.1000000000000000055", .double, nil), (.double(1e15), .integer, 1_000_000_000_000_000),
            (.double(-0.0), .integer, 0), ("infinity", .double, nil),
            (.integer(.min), .double, .double(-0x1p63)),
            ("-9223372036854775808", .double, .double(-0x1p63)), (.double(-0x1p63), .integer, .integer(.min)),
            ("9223372036854775808", .double, .double(0x1p63)), (.double(0x1p63), .integer, nil),
            (.integer(1 << 60), .double, .double(0x1p60)), (.integer((1 << 60) + 1), .double, nil),
            ("-9223372036854775809", .double, nil), (.integer(.max), .double, nil),
        ]
        for (value, type, wanted) in cases { #expect(type.convert(value) == wanted, "\(value) as \(type)") }
        // Against the oracle, for all spellings.
        for text in Self.spellings {
            let exact = Exact(text)
            if case .integer(let whole)? = TypedValue.integer.convert(.string(text)) {
                #expect(exact.map { Exact("\(whole)")?.order(to: $0) } == 0, "\(text)")
            }
            if case .double(let value)? = TypedValue.double.convert(.string(text)) {
                let again = Exact(JSONValue.double(value).description)
                let held = UInt64(exactly: value.magnitude).flatMap {
                    Exact((value < 0 ? "-" : "") + "\($0)")
                }
                let orders = [again, held].compactMap { number in exact.flatMap { number?.order(to: $0) } }
                #expect(orders.contains(0), "\(text)")
            }
            if exact == nil { #expect(TypedValue.double.convert(.string(text)) == nil, "\(text)") }
        }
    }

    @Test("tm12: a value stored as a double equals the whole number it is, and the number it is spelled as")
    func heldDoubles() throws {
        let trial = try Trial(
            #""macros":{"v":{"type":"event_member","path":"v"},"f":{"type":"function_call","function":"f"}},"rules":{"equal":{"conditions":[{"macro":"v","equals":{"macro":"f"}}]},"turned":{"conditions":[{"macro":"f","equals":{"macro":"v"}}]},"less":{"conditions":[{"macro":"v","less":{"macro":"f"}}]}},"tags":[{"name":"equal","type":"prioritise","priority":"normal","rules":["equal"]},{"name":"turned","type":"prioritise","priority":"normal","rules":["turned"]},{"name":"less","type":"prioritise","priority":"normal","rules":["less"]}]"#,
            mayCall: ["f"])
        for (held, equal, less) in [
            (
                -0x1p63, ["-9223372036854775808", "-9223372036854775808.0", "-9.223372036854776e18"],
                "-9223372036854777000"
            ),
            (
                0x1p63, ["9223372036854775808", "9223372036854775808.00", "9223372036854776000"],
                "9223372036854775807"
            ),
            (0x1p60, ["1152921504606846976", "1.152921504606847e18"], "1152921504606846975"),
        ] {
            trial.results["f"] = .double(held)
            for text in equal {
                #expect(trial.apply("{\"name\":\"n\",\"v\":\(text)}").tags == ["equal", "turned"], "\(text)")
            }
            #expect(trial.apply("{\"name\":\"n\",\"v\":\(less)}").tags == ["less"], "\(less)")
        }
    }

    @Test("tm12: a document with a number that would be rounded is refused; the message suggests a text")
    func keptNumbers() {
        for text in ["18446744073709551616", "0.1000000000000000055", "9007199254740993.5"] {
            #expect(throws: ContainerError.self, "\(text)") {
                try ContainerDocument(
                    reading: Array("{\"id\":\"G\",\"version\":1,\"values\":{\"a\":\(text)}}".utf8))
            }
        }
        for text in [
            "9223372036854775807", "0.1", "1e300", "-12.50", "\"18446744073709551616\"",
            "\"\\\"1.0000000000000000001\"",
        ] {
            #expect(throws: Never.self, "\(text)") {
                try ContainerDocument(
                    reading: Array("{\"id\":\"G\",\"version\":1,\"values\":{\"a\":\(text)}}".utf8))
            }
        }
    }
}
