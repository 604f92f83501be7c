/// A number of any length, digit by digit, so that comparisons are exact.
struct Decimal {
    /// Whether the number is below zero.
    let isNegative: Bool
    /// Digits 0 to 9, without zeros at both ends; empty for zero.
    let digits: [UInt8]
    /// The number is 0.DIGITS times ten to this power.
    let exponent: Int

    /// The number that a text spells by JSON's grammar; nil for other texts, and for exponents of more than
    /// nine digits, which would be numbers of gigabytes.
    init?(_ text: UnsafeBufferPointer<UInt8>) {
        var offset = 0
        func next() -> UInt8? { offset < text.count ? text[offset] : nil }
        func takeDigits() -> Range<Int>? {
            let start = offset
            while let byte = next(), (0x30...0x39).contains(byte) { offset += 1 }
            return offset > start ? start..<offset : nil
        }
        let isNegative = next() == UInt8(ascii: "-")
        if isNegative {
            offset += 1
        }
        // JSON allows no zero in front of other digits (RFC 8259, section 6).
        guard let whole = takeDigits(), whole.count == 1 || text[whole.lowerBound] != UInt8(ascii: "0") else {
            return nil
        }
        var fraction = offset..<offset
        if next() == UInt8(ascii: ".") {
            offset += 1
            guard let found = takeDigits() else { return nil }
            fraction = found
        }
        var power = 0
        if let byte = next(), byte | 0x20 == UInt8(ascii: "e") {
            offset += 1
            let isDown = next() == UInt8(ascii: "-")
            if isDown || next() == UInt8(ascii: "+") {
                offset += 1
            }
            // Nine digits fit in an `Int`, and adding the length of the text below cannot overflow.
            guard let found = takeDigits(), found.count <= 9 else { return nil }
            power = found.reduce(0) { $0 * 10 + Int(text[$1] & 0x0F) }
            if isDown {
                power = -power
            }
        }
        guard offset == text.count else { return nil }
        var digits = (Array(whole) + Array(fraction)).map { text[$0] & 0x0F }
        // Zeros at both ends do not change the number; without them equal numbers have equal digits.
        let zeros = digits.prefix { $0 == 0 }.count
        digits.removeFirst(zeros)
        while digits.last == 0 { digits.removeLast() }
        self.digits = digits
        exponent = digits.isEmpty ? 0 : whole.count - zeros + power
        self.isNegative = isNegative && !digits.isEmpty
    }

    /// Magnitude as a whole number of 64 bits; nil for other numbers.
    private var size: UInt64? {
        guard !digits.isEmpty else { return 0 }
        // Digits after the point, or more than 20 digits before it, which are more than 64 bits.
        guard digits.count <= exponent, exponent <= 20 else { return nil }
        var number: UInt64 = 0
        for index in 0..<exponent {
            let (tens, isOver) = number.multipliedReportingOverflow(by: 10)
            let (sum, isBeyond) = tens.addingReportingOverflow(
                UInt64(index < digits.count ? digits[index] : 0))
            guard !isOver, !isBeyond else { return nil }
            number = sum
        }
        return number
    }

    /// The number as a whole number of 64 bits; nil for other numbers.
    var integer: Int? {
        guard let size else { return nil }
        guard isNegative else { return Int(exactly: size) }
        // -2^63 has no positive counterpart in 64 bits.
        return size == 1 << 63 ? .min : Int(exactly: size).map { -$0 }
    }

    /// Whether the number is exactly the whole number that a double holds, if that has 64 bits. The shortest
    /// spelling of a large double is another number.
    func isExactly(_ double: Double) -> Bool {
        isNegative == (double < 0) && size.flatMap { Double(exactly: $0) } == double.magnitude
    }

    /// The nearest double.
    var nearest: Double { Double(canonical) ?? .nan }

    /// The number as ECMAScript would write it, with all of its digits. Source: ECMA-262, Number::toString.
    var canonical: String {
        guard !digits.isEmpty else { return "0" }
        let text = digits.map { "\($0)" }.joined()
        func zeros(_ count: Int) -> String { String(repeating: "0", count: count) }
        let sign = isNegative ? "-" : ""
        switch exponent {
        // The limits of ECMAScript: from 1e-6 up to 1e21 without an exponent.
        case ...21 where exponent >= digits.count: return sign + text + zeros(exponent - digits.count)
        case 1...21: return "\(sign)\(text.prefix(exponent)).\(text.dropFirst(exponent))"
        case -5...0: return "\(sign)0.\(zeros(-exponent))\(text)"
        default:
            let power = exponent - 1
            return
                "\(sign)\(text.prefix(1))\(digits.count > 1 ? "." : "")\(text.dropFirst())e\(power < 0 ? "" : "+")\(power)"
        }
    }

    /// Compares with another number: below zero, zero, or above.
    func order(to other: Decimal) -> Int {
        guard isNegative == other.isNegative else { return isNegative ? -1 : 1 }
        let size = sizeOrder(to: other)
        return isNegative ? -size : size
    }

    /// Compares magnitudes.
    private func sizeOrder(to other: Decimal) -> Int {
        // Zero has no digits, and no exponent that could be compared.
        if digits.isEmpty || other.digits.isEmpty {
            return digits.isEmpty ? (other.digits.isEmpty ? 0 : -1) : 1
        }
        guard exponent == other.exponent else { return exponent < other.exponent ? -1 : 1 }
        if digits == other.digits { return 0 }
        // Both are 0.DIGITS with the same exponent, so the first difference decides.
        return digits.lexicographicallyPrecedes(other.digits) ? -1 : 1
    }
}
