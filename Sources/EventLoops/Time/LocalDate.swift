/// A date of the Gregorian calendar, without a time zone.
public struct LocalDate: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// Days since 1 January 1970.
    public let dayNumber: Int

    package init(dayNumber: Int) { self.dayNumber = dayNumber }

    /// A date from its parts. Months and days outside their range count into the neighbouring ones.
    ///
    /// Source: Howard Hinnant, "chrono-compatible low-level date algorithms", `days_from_civil`,
    /// https://howardhinnant.github.io/date_algorithms.html.
    public init(year: Int, month: Int, day: Int) {
        let month0 = month - 1
        let carried = month0 >= 0 ? month0 / 12 : (month0 - 11) / 12
        let monthOfYear = month0 - carried * 12 + 1
        let shiftedYear = year + carried - (monthOfYear <= 2 ? 1 : 0)
        let era = (shiftedYear >= 0 ? shiftedYear : shiftedYear - 399) / 400
        let yearOfEra = shiftedYear - era * 400
        let dayOfYear = (153 * (monthOfYear > 2 ? monthOfYear - 3 : monthOfYear + 9) + 2) / 5 + day - 1
        dayNumber = era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    /// Year, month (1…12) and day (1…31): `civil_from_days` of the same source.
    public var parts: (year: Int, month: Int, day: Int) {
        let shifted = dayNumber + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        return (
            yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * shiftedMonth + 2) / 5 + 1
        )
    }

    /// The day of the week: 0 is Sunday.
    public var weekday: Int { ((dayNumber % 7) + 11) % 7 }

    package func advanced(by days: Int) -> LocalDate { LocalDate(dayNumber: dayNumber + days) }

    /// `2026-11-20`.
    public var description: String {
        let (year, month, day) = parts
        return "\(year.digits(4))-\(month.digits(2))-\(day.digits(2))"
    }

    /// Whether the left date is earlier.
    public static func < (left: LocalDate, right: LocalDate) -> Bool { left.dayNumber < right.dayNumber }
}
