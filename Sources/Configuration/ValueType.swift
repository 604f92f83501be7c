/// What a setting's value may be: how it is read from TOML, written back and described.
struct ValueType<Value: Sendable & Equatable>: Sendable {
    /// For a person: `duration`.
    let name: String
    /// What is allowed, for a person: `1s to 1d`; empty when the name says it all.
    let range: String
    /// Reads a node, or says what to write instead.
    let parse: @Sendable (TOMLNode) throws(ValueMistake) -> Value
    /// The value as it is written; nil when it is not set.
    let print: @Sendable (Value) -> SettingValue?

    init(
        _ name: String, range: String = "", parse: @escaping @Sendable (TOMLNode) throws(ValueMistake) -> Value,
        print: @escaping @Sendable (Value) -> SettingValue?
    ) {
        self.name = name
        self.range = range
        self.parse = parse
        self.print = print
    }
}

/// Why a value was not accepted.
struct ValueMistake: Error, Sendable {
    let code: Problem.Code
    /// Follows the setting's name: `must be …`.
    let message: String
    /// Where, when it is not the whole value.
    let position: Position?

    init(_ code: Problem.Code, _ message: String, at position: Position? = nil) {
        self.code = code
        self.message = message
        self.position = position
    }

    static func wrongType(_ wanted: String, _ node: TOMLNode) -> ValueMistake {
        ValueMistake(.wrongType, "must be \(wanted), not \(node.kind)", at: node.position)
    }
}

extension ValueType {
    /// The same, or nothing.
    func optional() -> ValueType<Value?> {
        ValueType<Value?>(
            name, range: range, parse: { node throws(ValueMistake) in try parse(node) },
            print: { value in value.flatMap { print($0) } })
    }
}

extension ValueType where Value == Bool {
    static var boolean: ValueType {
        ValueType("true or false") { node throws(ValueMistake) in
            guard case .boolean(let value) = node.value else { throw .wrongType("true or false", node) }
            return value
        } print: {
            .boolean($0)
        }
    }
}

extension ValueType where Value == Int {
    /// A whole number; `zero` says what 0 means where it means something of its own.
    static func count(_ range: ClosedRange<Int>, zero: String? = nil) -> ValueType {
        let shown = "\(zero == nil ? range.lowerBound : max(1, range.lowerBound)) to \(range.upperBound)"
        return ValueType("whole number", range: shown + (zero.map { "; 0: \($0)" } ?? "")) {
            node throws(ValueMistake) in
            guard case .integer(let value) = node.value else { throw .wrongType("a whole number", node) }
            guard let value = Int(exactly: value), range.contains(value) || (zero != nil && value == 0) else {
                throw ValueMistake(.outOfRange, "is \(value); must be \(shown)\(zero == nil ? "" : " or 0")")
            }
            return value
        } print: {
            .integer(Int64($0))
        }
    }

    /// A number of bytes; `zero` says what 0 means where it means something of its own.
    static func size(_ range: ClosedRange<Int>, zero: String? = nil) -> ValueType {
        let shown = "\(SizeText.print(range.lowerBound)) to \(SizeText.print(range.upperBound))"
        return ValueType("size", range: shown + (zero.map { "; 0: \($0)" } ?? "")) { node throws(ValueMistake) in
            let value: Int
            switch node.value {
            case .integer(0): value = 0
            case .integer(let number):
                throw ValueMistake(
                    .wrongType,
                    number < 0
                        ? "is \(number); a size cannot be negative"
                        : "needs a unit; write \"\(number)B\", \"\(number)MB\" (10^6 bytes) or \"\(number)MiB\" (2^20)")
            case .string(let text):
                guard let size = SizeText.parse(text) else {
                    let units = SizeText.units.map(\.name)
                    let unit = text.drop { "0123456789.- ".contains($0) }
                    let close =
                        units.first { $0.lowercased() == unit.lowercased() }
                        ?? units.first { !unit.isEmpty && $0.lowercased() == unit.lowercased() + "b" }
                    let digits = text.prefix { "0123456789.".contains($0) }
                    let hint =
                        close.map { "write \"\(digits)\($0)\"" }
                        ?? "write a number and a unit, as \"64KiB\" or \"10MB\""
                    throw ValueMistake(.wrongType, "is \(SettingValue.quote(text)), which is no size; \(hint)")
                }
                value = size
            default: throw .wrongType("a size such as \"10MB\" or \"64KiB\"", node)
            }
            guard range.contains(value) || (zero != nil && value == 0) else {
                throw ValueMistake(
                    .outOfRange, "is \(SizeText.print(value)); must be \(shown)\(zero == nil ? "" : " or 0")")
            }
            return value
        } print: {
            .string(SizeText.print($0))
        }
    }
}

extension ValueType where Value == Double {
    static func number(_ range: ClosedRange<Double>) -> ValueType {
        let shown = "\(short(range.lowerBound)) to \(short(range.upperBound))"
        return ValueType("number", range: shown) { node throws(ValueMistake) in
            let value: Double
            switch node.value {
            case .integer(let number): value = Double(number)
            case .double(let number): value = number
            default: throw .wrongType("a number", node)
            }
            guard range.contains(value) else {
                throw ValueMistake(.outOfRange, "is \(short(value)); must be \(shown)")
            }
            return value
        } print: {
            $0 == $0.rounded() && abs($0) < 1e15 ? .integer(Int64($0)) : .double($0)
        }
    }

    private static func short(_ value: Double) -> String {
        value == value.rounded() && abs(value) < 1e15 ? "\(Int64(value))" : "\(value)"
    }
}

extension ValueType where Value == Duration {
    /// A duration; `zero` says what 0 means where it means something of its own.
    static func duration(_ range: ClosedRange<Duration>, zero: String? = nil) -> ValueType {
        let shown = "\(DurationText.print(range.lowerBound)) to \(DurationText.print(range.upperBound))"
        return ValueType("duration", range: shown + (zero.map { "; 0: \($0)" } ?? "")) { node throws(ValueMistake) in
            let value = try DurationReader.read(node)
            guard range.contains(value) || (zero != nil && value == .zero) else {
                throw ValueMistake(
                    .outOfRange, "is \(DurationText.print(value)); must be \(shown)\(zero == nil ? "" : " or 0")")
            }
            return value
        } print: {
            .string(DurationText.print($0))
        }
    }
}

/// Durations as TOML values.
enum DurationReader {
    static func read(_ node: TOMLNode) throws(ValueMistake) -> Duration {
        switch node.value {
        case .integer(0): return .zero
        case .integer(let number):
            throw ValueMistake(
                .wrongType,
                number < 0
                    ? "is \(number); a duration cannot be negative"
                    : "needs a unit; write \"\(number)s\" for seconds or \"\(number)ms\" for milliseconds")
        case .double(let number):
            guard number.isFinite else { throw ValueMistake(.wrongType, "must be a duration such as \"10s\"") }
            throw ValueMistake(.wrongType, "needs a unit; write \"\(number)s\" for seconds")
        case .string(let text):
            guard let duration = DurationText.parse(text) else {
                if !text.isEmpty, text.allSatisfy({ "0123456789.".contains($0) }) {
                    throw ValueMistake(.wrongType, "needs a unit; write \"\(text)s\" for seconds")
                }
                throw ValueMistake(
                    .wrongType,
                    "is \(SettingValue.quote(text)), which is no duration; write a number and a unit (ms, s, m, h, d),"
                        + " as \"90s\" or \"1h30m\"")
            }
            return duration
        default: throw .wrongType("a duration such as \"6s\"", node)
        }
    }
}
