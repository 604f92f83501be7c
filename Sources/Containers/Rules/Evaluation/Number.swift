internal import Model

/// A number for comparisons, which are exact for all digits.
///
/// A text spells a number if the whole text is one by JSON's grammar, has at most 1,024 bytes and an exponent
/// of at most nine digits. So `"5.0"`, `"5e0"` and 5 are the same number, and `"+5"`, `"05"`, `"0x5"` and `"
/// 5"` are not numbers.
enum Number {
    /// A whole number of 64 bits.
    case integer(Int)
    /// A number of at most 15 digits: no two of them have the same nearest double, so that doubles compare as
    /// the numbers do.
    case short(Double)
    /// Any other number; only its text has all of its digits.
    case long
    /// A double beyond 2^53, whose shortest text can spell another number than its exact value. It equals
    /// both.
    case inexact(Double)

    /// Longest text that may be a number.
    static let longest = 1024

    /// The number that a text spells; nil for other texts.
    init?(_ text: UnsafeBufferPointer<UInt8>) {
        guard let first = text.first, first == UInt8(ascii: "-") || (0x30...0x39).contains(first),
            text.count <= Number.longest
        else { return nil }
        if let plain = Number(plain: text) {
            self = plain
            return
        }
        guard let decimal = Decimal(text) else { return nil }
        if let whole = decimal.integer {
            self = .integer(whole)
        } else if decimal.digits.count <= 15, (-280...280).contains(decimal.exponent) {
            self = .short(decimal.nearest)
        } else {
            self = .long
        }
    }

    /// The number of a stored double beyond 2^53, whose original digits are unknown; nil for other values.
    init?(inexact value: JSONValue) {
        guard case .double(let number) = value, number.magnitude > 0x1p53 else { return nil }
        self = .inexact(number)
    }

    /// A number of at most 15 digits without exponent, as most are; nil for other texts.
    ///
    /// The digits as a whole number, and the power of ten that divides it, are exact as doubles. So the
    /// division rounds once, as reading the text would.
    private init?(plain text: UnsafeBufferPointer<UInt8>) {
        let isNegative = text[0] == UInt8(ascii: "-")
        var digits = 0
        var behindPoint = -1
        var whole = 0
        let start = isNegative ? 1 : 0
        guard text.count <= start + 16 else { return nil }
        for index in start..<text.count {
            let byte = text[index]
            if byte == UInt8(ascii: "."), behindPoint < 0, digits > 0 {
                behindPoint = 0
                continue
            }
            guard (0x30...0x39).contains(byte) else { return nil }
            digits += 1
            if behindPoint >= 0 {
                behindPoint += 1
            }
            whole = whole * 10 + Int(byte & 0x0F)
        }
        // No leading zeros, except in "0" itself.
        guard digits > 0, digits <= 15, behindPoint != 0 else { return nil }
        let before = digits - max(behindPoint, 0)
        guard before == 1 || text[start] != UInt8(ascii: "0") else { return nil }
        guard behindPoint > 0 else {
            self = .integer(isNegative ? -whole : whole)
            return
        }
        let value = Double(whole) / Number.powersOfTen[behindPoint]
        self = .short(isNegative ? -value : value)
    }

    /// Powers of ten that are exact as doubles.
    private static let powersOfTen: [Double] = [
        1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
    ]

    /// A double that equals the number exactly. Two numbers that have one can be compared as doubles. Nil for
    /// numbers that no double equals for certain.
    var exactValue: Double? {
        switch self {
        case .integer(let number): number.magnitude > 1 << 53 ? nil : Double(number)
        case .short(let number): number
        case .long, .inexact: nil
        }
    }

    /// Compares two numbers: below zero, zero, or above.
    func order(
        _ text: UnsafeBufferPointer<UInt8>, to other: Number, _ otherText: UnsafeBufferPointer<UInt8>
    ) -> Int {
        if case .integer(let left) = self, case .integer(let right) = other {
            return left < right ? -1 : left > right ? 1 : 0
        }
        if let left = exactValue, let right = other.exactValue {
            return left < right ? -1 : left > right ? 1 : 0
        }
        // Both texts were read as numbers before.
        guard let left = Decimal(text), let right = Decimal(otherText) else { return 0 }
        if case .inexact(let number) = self, right.isExactly(number) { return 0 }
        if case .inexact(let number) = other, left.isExactly(number) { return 0 }
        return left.order(to: right)
    }
}
