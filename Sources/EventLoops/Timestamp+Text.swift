extension Timestamp: CustomStringConvertible {
    /// The time as RFC 3339 writes it, in UTC with milliseconds: `2026-11-20T10:00:00.123Z`.
    public var description: String {
        let milliseconds = self.milliseconds
        let (days, rest) = Timestamp.floored(milliseconds, by: 86_400_000)
        let date = Timestamp.date(ofDay: days)
        let text = Timestamp.padded
        return "\(text(date.year, 4))-\(text(date.month, 2))-\(text(date.day, 2))T\(text(rest / 3_600_000, 2)):"
            + "\(text(rest / 60_000 % 60, 2)):\(text(rest / 1000 % 60, 2)).\(text(rest % 1000, 3))Z"
    }

    /// The date of a day that is so many days after 1970-01-01, by the Gregorian calendar.
    ///
    /// Source: Howard Hinnant, "chrono-compatible low-level date algorithms", `civil_from_days`.
    private static func date(ofDay day: Int64) -> (year: Int64, month: Int64, day: Int64) {
        let shifted = day + 719_468  // days since 0000-03-01: leap days come last
        let (era, dayOfEra) = floored(shifted, by: 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let monthFromMarch = (5 * dayOfYear + 2) / 153
        let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
        return (
            year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month: month,
            day: dayOfYear - (153 * monthFromMarch + 2) / 5 + 1
        )
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
