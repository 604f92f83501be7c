internal import Model

/// A number as it is compared: exactly as its digits say, whatever they are.
///
/// A text spells a number when the whole of it is one by the grammar of JSON, in at most 1,024 bytes and with an exponent of
/// at most nine digits. So `"5.0"`, `"5e0"` and 5 are the same number, and `"+5"`, `"05"`, `"0x5"` and `" 5"` are none.
enum Number {
    /// A whole number of 64 bits.
    case integer(Int)
    /// A number of at most 15 digits: the double nearest to it is no other such number's, so doubles compare as they do.
    case short(Double)
    /// Any other number: only its text has all of its digits.
    case long
    /// A value that is held as a double, so large that its text says less than it holds: it equals what either says.
    case held(Double)

    /// The longest text that is taken for a number.
    static let longest = 1024

    /// The number that a text spells; nil for any other text.
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

    /// A value's own number, where that says more than its text.
    init?(held value: JSONValue) {
        guard case .double(let number) = value, number.magnitude > 0x1p53 else { return nil }
        self = .held(number)
    }

    /// What most numbers are: at most 15 digits, no exponent. Nil for all others, numbers or not.
    ///
    /// The digits as a whole number, and the power of ten to divide it by, are exact as doubles, so that the one division
    /// rounds as reading the text does.
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
            if behindPoint >= 0 { behindPoint += 1 }
            whole = whole * 10 + Int(byte & 0x0F)
        }
        // A zero in front stands alone.
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

    private static let powersOfTen: [Double] = [
        1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
    ]

    /// A double that compares just as the number does, with others that have one; nil where there is none.
    var exactValue: Double? {
        switch self {
        case .integer(let number): number.magnitude > 1 << 53 ? nil : Double(number)
        case .short(let number): number
        case .long, .held: nil
        }
    }

    /// How two numbers compare: below zero, zero, or above.
    func order(
        _ text: UnsafeBufferPointer<UInt8>, to other: Number, _ otherText: UnsafeBufferPointer<UInt8>
    ) -> Int {
        if case .integer(let left) = self, case .integer(let right) = other {
            return left < right ? -1 : left > right ? 1 : 0
        }
        if let left = exactValue, let right = other.exactValue { return left < right ? -1 : left > right ? 1 : 0 }
        // Both were read as numbers before.
        guard let left = Decimal(text), let right = Decimal(otherText) else { return 0 }
        if case .held(let number) = self, right.isExactly(number) { return 0 }
        if case .held(let number) = other, left.isExactly(number) { return 0 }
        return left.order(to: right)
    }
}
