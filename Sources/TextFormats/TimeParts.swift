internal import EventLoops
internal import TimeZones

/// The parts of a time, as a text has them, and the instant that they mean.
struct TimeParts {
    /// The year; nil if the form has none.
    var year: Int?
    /// The month, from 1; 0 until it is read.
    var month = 0
    /// The day of the month, from 1.
    var day = 0
    /// Second of the day.
    var second = 0
    /// The part of the second.
    var nanoseconds = 0
    /// Seconds east of UTC; nil if the text names no offset, so that the zone decides.
    var offset: Int?
    /// Letters of a zone other than UTC, or empty.
    var letters = Bytes.none
    /// Whether the form has a date. A time alone gets one by `timeOfDay`.
    var hasDate = true

    /// Whether the text names a zone by letters, such as `CET`.
    var hasLetters: Bool { !letters.isEmpty }

    // MARK: Letters of zones

    /// Hours east of UTC that letters usually mean, for machines whose clock is UTC while a program writes
    /// another zone's time. Source: RFC 2822, section 4.3; for Europe the directive 2000/84/EC; the others
    /// have one offset only in today's time zone database. `IST` has three, and stays unknown.
    private static let usualHours: [(letters: StaticString, hours: Int)] = [
        ("CET", 1), ("CEST", 2), ("EET", 2), ("EEST", 3), ("WET", 0), ("WEST", 1), ("MSK", 3), ("JST", 9),
        ("EST", -5), ("EDT", -4), ("CST", -6), ("CDT", -5), ("MST", -7), ("MDT", -6), ("PST", -8),
        ("PDT", -7), ("AKST", -9), ("AKDT", -8), ("HST", -10), ("BST", 1), ("AEST", 10), ("AEDT", 11),
        ("AWST", 8), ("NZST", 12), ("NZDT", 13), ("KST", 9), ("HKT", 8), ("PKT", 5), ("WIB", 7), ("SAST", 2),
        ("EAT", 3), ("CAT", 2), ("WAT", 1),
    ]

    /// Sets the offset that the letters usually mean; returns false for other letters.
    mutating func takeUsualOffset() -> Bool {
        guard let found = TimeParts.usualHours.first(where: { letters.equals($0.letters) }) else {
            return false
        }
        // bounded: hours of the table.
        offset = found.hours * 3600
        return true
    }

    // MARK: The instant

    /// The instant of the parts that were read; nil if the date does not exist.
    @inline(__always)
    func time(zone: TimeZoneRules, isUTC: Bool, now: Timestamp) -> Timestamp? {
        guard hasDate else { return timeOfDay(zone, now) }
        guard month >= 1, month <= 12, day >= 1, day <= 31 else { return nil }
        guard let year else { return withoutYear(zone, now) }
        return instant(year, zone, isUTC)
    }

    /// The instant of a date with a year. With an offset, or in UTC, no rules of a zone are needed.
    @inline(__always)
    private func instant(_ year: Int, _ zone: TimeZoneRules, _ isUTC: Bool) -> Timestamp? {
        let date = LocalDate(year: year, month: month, day: day)
        // The calendar moves day 30 of February to March: such a date is refused.
        if day > 28, date.parts != (year, month, day) { return nil }
        if isUTC || offset != nil {
            // bounded: a year of four digits.
            let seconds = date.dayNumber * 86_400 + second - (offset ?? 0)
            return Timestamp(seconds: seconds, nanoseconds: nanoseconds)
        }
        return local(date, zone)
    }

    /// The instant of a local date and time by the rules of a zone.
    private func local(_ date: LocalDate, _ zone: TimeZoneRules) -> Timestamp {
        let time = zone.instant(of: date, secondOfDay: min(second, 86_399))
        return Timestamp(nanoseconds: time.nanoseconds.addingSaturating(Int64(nanoseconds)))
    }

    /// The instant of a date without a year: of last year, this year and the next, the nearest to now. So a
    /// line of 31 December that is read on 1 January is not a year in the future.
    @inline(never)
    private func withoutYear(_ zone: TimeZoneRules, _ now: Timestamp) -> Timestamp? {
        let thisYear = zone.date(at: now).parts.year
        return TimeParts.nearest(to: now, (thisYear - 1...thisYear + 1).map { instant($0, zone, false) })
    }

    /// The instant of a time without a date: of yesterday, today and tomorrow, the nearest to now of those
    /// that are not in the future by more than an hour. Lines wait longer to be read than clocks are wrong.
    @inline(never)
    private func timeOfDay(_ zone: TimeZoneRules, _ now: Timestamp) -> Timestamp? {
        let today = zone.date(at: now)
        let latest = now.nanoseconds.addingSaturating(3600 * 1_000_000_000)
        let days = (-1...1).map { local(today.advanced(by: $0), zone) }
        return TimeParts.nearest(to: now, days.filter { $0.nanoseconds <= latest })
    }

    /// The time with the smallest distance to now. Times so far apart that the difference overflows are the
    /// farthest.
    private static func nearest(to now: Timestamp, _ times: [Timestamp?]) -> Timestamp? {
        func distance(_ time: Timestamp) -> UInt64 {
            let (difference, overflow) = time.nanoseconds.subtractingReportingOverflow(now.nanoseconds)
            return overflow ? .max : difference.magnitude
        }
        return times.compactMap { $0 }.min { distance($0) < distance($1) }
    }
}
