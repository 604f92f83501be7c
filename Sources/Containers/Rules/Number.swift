internal import Model

/// A number as it is compared: whole numbers exactly, all others as doubles.
enum Number {
    case integer(Int)
    case double(Double)

    /// The number that a text spells by the grammar of JSON; nil for any other text.
    init?(_ text: UnsafeBufferPointer<UInt8>) {
        guard let first = text.first, first == UInt8(ascii: "-") || (0x30...0x39).contains(first), text.count <= 64
        else { return nil }
        if let plain = Number(plain: text) {
            self = plain
            return
        }
        switch try? JSONValue(parsing: Array(text)) {
        case .integer(let number)?: self = .integer(number)
        case .double(let number)?: self = .double(number)
        default: return nil
        }
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
        self = .double(isNegative ? -value : value)
    }

    private static let powersOfTen: [Double] = [
        1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
    ]

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

    /// The number as a double that compares just as it does; nil for whole numbers of more digits than a double has.
    var exactValue: Double? {
        if case .integer(let number) = self, number.magnitude > 1 << 53 { return nil }
        return value
    }

    private var value: Double {
        switch self {
        case .integer(let number): Double(number)
        case .double(let number): number
        }
    }
}
