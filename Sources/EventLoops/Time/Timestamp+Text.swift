extension Timestamp: CustomStringConvertible {
    /// Length of a time's text in bytes.
    package static let textLength = 24

    /// The time in RFC 3339 format, in UTC with milliseconds, rounded down: `2026-11-20T10:00:00.123Z`.
    public var description: String {
        String(unsafeUninitializedCapacity: Timestamp.textLength) { text in
            guard let start = text.baseAddress else { return 0 }
            write(to: start)
            return Timestamp.textLength
        }
    }

    /// Writes the 24 characters of `description` to memory of at least that size, without allocating a
    /// string.
    package func write(to text: UnsafeMutablePointer<UInt8>) {
        let (days, ofDay) = milliseconds.floored(by: 86_400_000)
        let (year, month, day) = LocalDate(dayNumber: Int(days)).parts
        let rest = Int(ofDay)
        var offset = 0
        /// Writes a number with leading zeros and the separator behind it.
        func put(_ value: Int, _ width: Int, then mark: UInt8) {
            var rest = value
            for digit in (offset..<offset + width).reversed() {
                // bounded: the rest of a division by ten.
                text[digit] = UInt8(ascii: "0") + UInt8(rest % 10)
                rest /= 10
            }
            text[offset + width] = mark
            offset += width + 1
        }
        // A time in nanoseconds lies between 1677 and 2262, so a year has four digits.
        put(year, 4, then: UInt8(ascii: "-"))
        put(month, 2, then: UInt8(ascii: "-"))
        put(day, 2, then: UInt8(ascii: "T"))
        put(rest / 3_600_000, 2, then: UInt8(ascii: ":"))
        put(rest / 60_000 % 60, 2, then: UInt8(ascii: ":"))
        put(rest / 1000 % 60, 2, then: UInt8(ascii: "."))
        put(rest % 1000, 3, then: UInt8(ascii: "Z"))
    }
}

extension BinaryInteger {
    /// The number's digits, with leading zeros up to `count`.
    public func digits(_ count: Int, radix: Int = 10) -> String {
        let text = String(self, radix: radix)
        return String(repeating: "0", count: max(0, count - text.utf8.count)) + text
    }
}
