/// What the value of a setting may be: how it is read from TOML, printed and described.
///
/// `parse` and `print` are inverse: `check --print` must show a text that sets the same value again. Tests
/// read back what each type prints.
///
/// The types that many settings share are here and in `ValueType+Text`. A type of one kind of value belongs
/// to that kind: `EndpointURL.settingType`, `S3Settings.bucketNameType`.
struct ValueType<Value: Sendable & Equatable>: Sendable {
    /// Kind of value, for people: `duration`.
    let name: String
    /// The allowed values, for people: `1s to 1d`; empty if the kind says it all.
    let range: String
    /// Reads a node. The thrown problem's message continues the setting's name; its position may be more
    /// exact than the node's.
    let parse: @Sendable (TOMLNode) throws(Problem) -> Value
    /// The value as it is written; nil if it is not set.
    let print: @Sendable (Value) -> SettingValue?

    /// A type.
    init(
        _ name: String, range: String = "", parse: @escaping @Sendable (TOMLNode) throws(Problem) -> Value,
        print: @escaping @Sendable (Value) -> SettingValue?
    ) {
        self.name = name
        self.range = range
        self.parse = parse
        self.print = print
    }
}

extension Problem {
    /// The problem for a value of the wrong kind.
    static func wrongType(_ wanted: String, _ node: TOMLNode) -> Problem {
        Problem(.wrongType, "must be \(wanted), not \(node.kind)", at: node.position)
    }
}

extension ValueType {
    /// The same, but nil if the setting is not set.
    func optional() -> ValueType<Value?> {
        ValueType<Value?>(
            name, range: range, parse: { node throws(Problem) in try parse(node) },
            print: { value in value.flatMap { print($0) } })
    }

    /// The same type, but one value is printed as not set. For settings without a default that are not
    /// optional, such as `name`: the initial value is a mark for "not set".
    func standingForNothing(_ nothing: Value) -> ValueType {
        ValueType(name, range: range, parse: parse) { $0 == nothing ? nil : print($0) }
    }
}

extension ValueType where Value == Bool {
    /// `true` or `false`.
    // `"true"` in quotes is a string, and refused: values keep their TOML type.
    static var boolean: ValueType {
        ValueType("true or false") { node throws(Problem) in
            guard case .boolean(let value) = node.value else { throw .wrongType("true or false", node) }
            return value
        } print: {
            .boolean($0)
        }
    }
}

extension ValueType where Value: Comparable & AdditiveArithmetic {
    /// A value in a range, or 0 if `zero` says what 0 means. Ranges, messages and the manual come from the
    /// same bounds, so that they cannot disagree.
    fileprivate static func bounded(
        _ name: String, _ range: ClosedRange<Value>, zero: String? = nil,
        text: @escaping @Sendable (Value) -> String,
        read: @escaping @Sendable (TOMLNode) throws(Problem) -> Value,
        print: @escaping @Sendable (Value) -> SettingValue
    ) -> ValueType {
        let shown = "\(text(range.lowerBound)) to \(text(range.upperBound))"
        return ValueType(name, range: shown + (zero.map { "; 0: \($0)" } ?? "")) { node throws(Problem) in
            let value = try read(node)
            // Some settings use 0 for "off" or "no limit", which is outside of the range.
            guard range.contains(value) || (zero != nil && value == .zero) else {
                throw Problem(.outOfRange, "is \(text(value)); must be \(shown)\(zero == nil ? "" : " or 0")")
            }
            return value
        } print: {
            print($0)
        }
    }
}

extension ValueType where Value == Int {
    /// A whole number in a range.
    static func count(_ range: ClosedRange<Int>, zero: String? = nil) -> ValueType {
        bounded("whole number", range, zero: zero, text: { "\($0)" }) { node throws(Problem) in
            guard case .integer(let value) = node.value else { throw .wrongType("a whole number", node) }
            return Int(value)
        } print: {
            .integer(Int64($0))
        }
    }

    /// A number of bytes with a unit. `zero` says what 0 means, if it is allowed outside of the range. A
    /// number without a unit is refused with the three ways of writing it, because "10" could mean bytes or
    /// megabytes.
    static func size(_ range: ClosedRange<Int>, zero: String? = nil) -> ValueType {
        bounded("size", range, zero: zero, text: SizeText.print) { node throws(Problem) in
            switch node.value {
            case .integer(0): return 0
            case .integer(let number):
                throw Problem(
                    .wrongType,
                    number < 0
                        ? "is \(number); a size cannot be negative"
                        : "needs a unit; write \"\(number)B\", \"\(number)MB\" (10^6 bytes) or "
                            + "\"\(number)MiB\" (2^20)"
                )
            case .string(let text):
                if let size = SizeText.parse(text) { return size }
                let units = SizeText.units.map(\.name)
                let unit = text.drop { "0123456789.- ".contains($0) }.lowercased()
                let close =
                    units.first { $0.lowercased() == unit }
                    ?? units.first { !unit.isEmpty && $0.lowercased() == unit + "b" }
                let digits = text.prefix { "0123456789.".contains($0) }
                let hint =
                    close.map { "write \"\(digits)\($0)\"" }
                    ?? "write a number and a unit, such as \"64KiB\" or \"10MB\""
                throw Problem(.wrongType, "is \(SettingValue.quote(text)), which is not a size; \(hint)")
            default: throw .wrongType("a size such as \"10MB\" or \"64KiB\"", node)
            }
        } print: {
            .string(SizeText.print($0))
        }
    }
}

extension ValueType where Value == Double {
    /// A number in a range.
    static func number(_ range: ClosedRange<Double>) -> ValueType {
        bounded("number", range, text: { whole($0).map { "\($0)" } ?? "\($0)" }) { node throws(Problem) in
            switch node.value {
            case .integer(let number): return Double(number)
            case .double(let number): return number
            default: throw .wrongType("a number", node)
            }
        } print: {
            whole($0).map { .integer($0) } ?? .double($0)
        }
    }

    /// The value as a whole number; nil if it has a fraction, or is so large that a double does not have all
    /// of its digits.
    private static func whole(_ value: Double) -> Int64? { abs(value) < 1e15 ? Int64(exactly: value) : nil }
}

extension ValueType where Value == Duration {
    /// A duration with units. `zero` says what 0 means, if it is allowed outside of the range.
    static func duration(_ range: ClosedRange<Duration>, zero: String? = nil) -> ValueType {
        bounded("duration", range, zero: zero, text: DurationText.print) { node throws(Problem) in
            try node.duration()
        } print: {
            .string(DurationText.print($0))
        }
    }
}

extension TOMLNode {
    /// Reads a duration; a number without a unit is refused with the way to write it.
    func duration() throws(Problem) -> Duration {
        switch value {
        case .integer(0): return .zero
        case .integer(let number):
            throw Problem(
                .wrongType,
                number < 0
                    ? "is \(number); a duration cannot be negative"
                    : "needs a unit; write \"\(number)s\" for seconds or \"\(number)ms\" for milliseconds")
        case .double(let number):
            throw Problem(
                .wrongType,
                number.isFinite
                    ? "needs a unit; write \"\(number)s\" for seconds" : "must be a duration such as \"10s\"")
        case .string(let text):
            if let duration = DurationText.parse(text) { return duration }
            if !text.isEmpty, text.allSatisfy({ "0123456789.".contains($0) }) {
                throw Problem(.wrongType, "needs a unit; write \"\(text)s\" for seconds")
            }
            throw Problem(
                .wrongType,
                "is \(SettingValue.quote(text)), which is not a duration; write a number and a unit (ms, s, "
                    + "m, h, d), as \"90s\" or \"1h30m\"")
        default: throw .wrongType("a duration such as \"6s\"", self)
        }
    }
}
