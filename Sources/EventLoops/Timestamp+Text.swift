extension Timestamp: CustomStringConvertible {
    /// The time as RFC 3339 writes it, in UTC with milliseconds: `2026-11-20T10:00:00.123Z`.
    public var description: String {
        let milliseconds = self.milliseconds
        let (days, rest) = Timestamp.floored(milliseconds, by: 86_400_000)
        return "\(LocalDate(dayNumber: Int(days)))T\((rest / 3_600_000).digits(2)):"
            + "\((rest / 60_000 % 60).digits(2)):\((rest / 1000 % 60).digits(2)).\((rest % 1000).digits(3))Z"
    }

    private static func floored(_ value: Int64, by divisor: Int64) -> (quotient: Int64, remainder: Int64) {
        let (quotient, remainder) = value.quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }
}

extension BinaryInteger {
    /// The number's digits, at least so many: with zeros before them.
    public func digits(_ count: Int, radix: Int = 10) -> String {
        let text = String(self, radix: radix)
        return String(repeating: "0", count: max(0, count - text.utf8.count)) + text
    }
}
