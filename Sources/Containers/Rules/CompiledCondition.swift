internal import CRE2
internal import Glibc
internal import Model

/// A condition made ready: the macro by its place, the comparand in the forms that comparing needs.
struct CompiledCondition {
    let macro: Int
    let predicate: Condition.Predicate
    let negate: Bool
    let ignoreCase: Bool
    let comparand: Comparand
    /// The macro that gives the comparand; nil for a constant.
    let comparandMacro: Int?
    let expression: Expression?

    /// Whether the condition holds for a value.
    ///
    /// Null holds no predicate but `equals null`; neither does what is nested.
    @inline(__always)
    func holds(_ value: MacroValue, in base: UnsafePointer<UInt8>) -> Bool {
        compare(value, with: comparand, in: base) != negate
    }

    /// Whether the condition holds for a value and a comparand that a macro gave.
    func holds(_ value: MacroValue, _ other: MacroValue, in base: UnsafePointer<UInt8>) -> Bool {
        compare(value, with: Comparand(other.json(base), ignoreCase: ignoreCase), in: base) != negate
    }

    @inline(__always)
    private func compare(_ value: MacroValue, with other: borrowing Comparand, in base: UnsafePointer<UInt8>) -> Bool {
        switch value {
        case .null: return predicate == .equals && other.isNull
        case .text(let range):
            return compareText(UnsafeBufferPointer(start: base + range.lowerBound, count: range.count), other)
        default: return compareOther(value, other, base)
        }
    }

    @inline(__always)
    private func compareText(_ text: UnsafeBufferPointer<UInt8>, _ other: borrowing Comparand) -> Bool {
        if ignoreCase, predicate != .matches, !predicate.isOrder { return compareFolded(text, other) }
        switch predicate {
        case .equals: return other.isScalar && isEqual(text, other.text)
        case .contains: return other.isString && other.text.isContained(in: text)
        case .startsWith:
            return other.isString && text.count >= other.text.count
                && isEqual(UnsafeBufferPointer(rebasing: text[0..<other.text.count]), other.text)
        case .endsWith:
            return other.isString && text.count >= other.text.count
                && isEqual(UnsafeBufferPointer(rebasing: text[(text.count - other.text.count)...]), other.text)
        case .matches: return expression?.finds(in: text) ?? false
        case .less, .lessOrEqual, .greater, .greaterOrEqual: return compareNumber(Number(text), other)
        }
    }

    @inline(__always)
    private func isEqual(_ text: UnsafeBufferPointer<UInt8>, _ other: [UInt8]) -> Bool {
        guard text.count == other.count else { return false }
        guard let start = text.baseAddress else { return true }
        return memcmp(start, other, other.count) == 0
    }

    @inline(never)
    private func compareFolded(_ text: UnsafeBufferPointer<UInt8>, _ other: borrowing Comparand) -> Bool {
        guard other.isScalar, predicate == .equals || other.isString else { return false }
        let folded = Comparand.folded(text)
        return folded.withUnsafeBufferPointer { folded in
            switch predicate {
            case .equals: isEqual(folded, other.text)
            case .contains: other.text.isContained(in: folded)
            case .startsWith: folded.starts(with: other.text)
            case .endsWith: folded.suffix(other.text.count).elementsEqual(other.text)
            default: false
            }
        }
    }

    @inline(never)
    private func compareOther(
        _ value: MacroValue, _ other: borrowing Comparand, _ base: UnsafePointer<UInt8>
    ) -> Bool {
        switch value {
        case .number(let range):
            let text = UnsafeBufferPointer(start: base + range.lowerBound, count: range.count)
            if predicate == .equals, let number = other.numberValue { return Number(text)?.equals(number) ?? false }
            return compareText(text, other)
        case .value(.integer(let number)):
            if predicate == .equals, let other = other.numberValue { return Number.integer(number).equals(other) }
            return compareSpelled(value, other, base)
        case .value(.double(let number)):
            if predicate == .equals, let other = other.numberValue { return Number.double(number).equals(other) }
            return compareSpelled(value, other, base)
        case .bool, .value(.string): return compareSpelled(value, other, base)
        default: return false
        }
    }

    private func compareSpelled(
        _ value: MacroValue, _ other: borrowing Comparand, _ base: UnsafePointer<UInt8>
    ) -> Bool {
        guard let text = value.text(base) else { return false }
        return text.withUnsafeBufferPointer { compareText($0, other) }
    }

    @inline(never)
    private func compareNumber(_ number: Number?, _ other: borrowing Comparand) -> Bool {
        guard let number, let limit = other.number else { return false }
        switch predicate {
        case .less: return number.isLess(than: limit)
        case .lessOrEqual: return number.isLess(than: limit) || number.equals(limit)
        case .greater: return limit.isLess(than: number)
        default: return limit.isLess(than: number) || number.equals(limit)
        }
    }
}

/// What a condition compares with, in each form that a predicate may need.
struct Comparand {
    /// The text that spells it, in small letters where capitals do not matter.
    let text: [UInt8]
    /// The number that it is, or that its text spells.
    let number: Number?
    let isNull: Bool
    let isString: Bool
    /// Whether it is a string, a number or a truth value.
    let isScalar: Bool

    init(_ value: JSONValue, ignoreCase: Bool) {
        let spelled: [UInt8]
        switch value {
        case .string(let string): spelled = Array(string.utf8)
        default: spelled = Array(value.description.utf8)
        }
        text = ignoreCase ? spelled.withUnsafeBufferPointer { Comparand.folded($0) } : spelled
        number =
            switch value {
            case .integer(let number): .integer(number)
            case .double(let number): .double(number)
            case .string: spelled.withUnsafeBufferPointer { Number($0) }
            default: nil
            }
        isNull = value == .null
        isString = value.string != nil
        isScalar = isString || value.number != nil || value.bool != nil
    }

    /// The number, if it is one and no text.
    var numberValue: Number? { isString ? nil : number }

    /// A text in small letters.
    static func folded(_ text: UnsafeBufferPointer<UInt8>) -> [UInt8] {
        if text.allSatisfy({ $0 < 0x80 }) { return text.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 } }
        return Array(String(decoding: text, as: UTF8.self).lowercased().utf8)
    }
}

/// A number as it is compared: whole numbers exactly, all others as doubles.
enum Number {
    case integer(Int)
    case double(Double)

    /// The number that a text spells by the grammar of JSON; nil for any other text.
    init?(_ text: UnsafeBufferPointer<UInt8>) {
        guard let first = text.first, first == UInt8(ascii: "-") || (0x30...0x39).contains(first), text.count <= 64
        else {
            return nil
        }
        switch try? JSONValue(parsing: Array(text)) {
        case .integer(let number)?: self = .integer(number)
        case .double(let number)?: self = .double(number)
        default: return nil
        }
    }

    func equals(_ other: Number) -> Bool {
        switch (self, other) {
        case (.integer(let left), .integer(let right)): left == right
        default: value == other.value
        }
    }

    func isLess(than other: Number) -> Bool {
        switch (self, other) {
        case (.integer(let left), .integer(let right)): left < right
        default: value < other.value
        }
    }

    private var value: Double {
        switch self {
        case .integer(let number): Double(number)
        case .double(let number): number
        }
    }
}

extension Condition.Predicate {
    /// Whether it compares numbers.
    var isOrder: Bool { self == .less || self == .lessOrEqual || self == .greater || self == .greaterOrEqual }
}

extension [UInt8] {
    /// Whether these bytes stand somewhere in a text.
    func isContained(in text: UnsafeBufferPointer<UInt8>) -> Bool {
        guard !isEmpty else { return true }
        guard let start = text.baseAddress else { return false }
        return cre2_contains(start, text.count, self, count)
    }
}
