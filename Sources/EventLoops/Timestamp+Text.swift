extension Timestamp: CustomStringConvertible {
    /// The time as RFC 3339 writes it, in UTC with milliseconds: `2026-11-20T10:00:00.123Z`.
    public var description: String {
        let milliseconds = self.milliseconds
        let (days, rest) = Timestamp.floored(milliseconds, by: 86_400_000)
        let text = Timestamp.padded
        return "\(LocalDate(dayNumber: Int(days)))T\(text(rest / 3_600_000, 2)):"
            + "\(text(rest / 60_000 % 60, 2)):\(text(rest / 1000 % 60, 2)).\(text(rest % 1000, 3))Z"
    }

    private static func floored(_ value: Int64, by divisor: Int64) -> (quotient: Int64, remainder: Int64) {
        let (quotient, remainder) = value.quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
    }

    private static func padded(_ number: Int64, _ digits: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(0, digits - text.utf8.count)) + text
    }
}
