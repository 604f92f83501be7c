public import EventLoops
internal import Glibc
public import TimeZones

/// The times of text logs.
///
/// The first bytes of a text decide which form it must have. So a text is read once, and no list of formats
/// is tried one after the other.
public enum TextTime {
    /// The time that a text says, in one of these forms:
    ///
    /// * `2026-11-29 10:00:00.123 Z` and its variants: `T` or a blank, `/` or `.` between the parts of the
    ///   date, a comma before the fraction, an hour of one digit, an offset with or without a colon, `UTC`, a
    ///   zone's letters (taken as `zone`'s)
    /// * `29/Nov/2026:10:00:00 +0000` (access logs), with a fraction or without an offset (HAProxy)
    /// * `Sun Nov 29 10:00:00.123456 2026` (ctime, Apache)
    /// * `Nov 29 10:00:00` (syslog), with a fraction: of the year that is nearest to `now`
    /// * `29 Nov 2026 10:00:00.123` (Redis), `29-Nov-2026 10:00:00.123` (Tomcat)
    /// * `1129 10:00:00.123456` (klog): of the year that is nearest to `now`
    /// * `20261129T100000Z`, `20261129 10:00:00.123456` (glog), `261129 10:00:00` (old MySQL)
    /// * `Sun, 29 Nov 2026 10:00:00 GMT` (RFC 1123), `Sun 2026-11-29 10:00:00 CET` (journalctl)
    /// * `Nov 29, 2026 10:00:00 AM` (java.util.logging)
    /// * `10:00:00.123`: of the last day on which it was, or today if it is within the next hour
    ///
    /// Letters such as `CST` name several zones, so a record that may come from another machine has no time
    /// by them: this function refuses them. A text log of this machine is written in its zone, so the formats
    /// take letters as `zone`'s; if that is UTC, as the zone that usually has them.
    ///
    /// - Returns: nil for anything else.
    public static func parse(
        _ text: UnsafeBufferPointer<UInt8>, zone: TimeZoneRules, now: Timestamp
    ) -> Timestamp? {
        guard let start = text.baseAddress else { return nil }
        let bytes = Bytes(start, text.count)
        return parse(bytes, zone: zone, isUTC: zone.isAlwaysUTC, now: now, takesLetters: false)
    }

    /// Whether a text has the form of a time, whatever zone its letters name. Used to find the beginnings of
    /// records, so it must not depend on the zone or the time of day.
    static func isTime(_ text: Bytes) -> Bool {
        guard text.count >= 8, text.count <= 48 else { return false }
        var reader = TimeReader(text)
        return reader.readForm()
    }

    /// Reads a text and computes its instant. A text of fewer than 8 or more than 48 bytes is not a time: the
    /// bound keeps the work small for long fields.
    ///
    /// - Parameter takesLetters: whether the text is of a log of this machine, in which letters of zones
    ///   count.
    static func parse(
        _ text: Bytes, zone: TimeZoneRules, isUTC: Bool, now: Timestamp, takesLetters: Bool
    ) -> Timestamp? {
        guard text.count >= 8, text.count <= 48 else { return nil }
        var reader = TimeReader(text)
        guard reader.readForm() else { return nil }
        if reader.hasLetters {
            // If the zone is UTC, then because the machine's clock is, while the program's zone is another
            // one: only letters that usually name one zone say which.
            guard takesLetters, !isUTC || reader.takeUsualOffset() else { return nil }
        }
        return reader.time(zone: zone, isUTC: isUTC, now: now)
    }
}

/// The parts of a time while it is read. `readForm` finds them, `time` makes an instant of them.
private struct TimeReader {
    /// The next byte to read.
    private var p: UnsafePointer<UInt8>
    /// Beginning of the text, from which the form is decided.
    private let start: UnsafePointer<UInt8>
    /// End of the text.
    private let end: UnsafePointer<UInt8>

    /// The year; nil if the form has none.
    private var year: Int?
    /// The month, from 1; 0 until it is read.
    private var month = 0
    /// The day of the month, from 1.
    private var day = 0
    /// Second of the day.
    private var second = 0
    /// The part of the second.
    private var nanoseconds = 0
    /// Seconds east of UTC; nil if the text names no offset, so that the zone decides.
    private var offset: Int?
    /// Letters of a zone other than UTC, or empty.
    private var letters = Bytes.none
    /// Whether the text names a zone by letters, such as `CET`.
    var hasLetters: Bool { !letters.isEmpty }
    /// Whether the form has a date. A time alone gets one by `timeOfDay`.
    private var hasDate = true

    /// A reader at the beginning of a text.
    init(_ text: Bytes) {
        start = text.start
        p = text.start
        end = text.end
    }

    /// The length of the text in bytes.
    private var count: Int { end - start }

    /// The byte at an offset, 0 beyond the end.
    @inline(__always)
    private func byte(_ index: Int) -> UInt8 { index < end - start ? start[index] : 0 }

    private static func isDigit(_ byte: UInt8) -> Bool { byte &- 0x30 < 10 }

    // MARK: Forms

    /// Decides the form by the first bytes, and reads the whole text by it. Returns false if any byte does
    /// not fit.
    mutating func readForm() -> Bool {
        guard TimeReader.isDigit(byte(0)) else { return wordForm() }
        let third = byte(2)
        if third == UInt8(ascii: "/"), !TimeReader.isDigit(byte(3)) {
            return dayMonthYear(UInt8(ascii: "/")) && skip(UInt8(ascii: ":")) && clock() && zoneAtEnd()
        }
        if third == UInt8(ascii: "-"), !TimeReader.isDigit(byte(3)) {
            return dayMonthYear(UInt8(ascii: "-")) && skip(UInt8(ascii: " ")) && clock() && zoneAtEnd()
        }
        if third == UInt8(ascii: " ") || byte(1) == UInt8(ascii: " ") {
            return dayMonthYear(UInt8(ascii: " ")) && skip(UInt8(ascii: " ")) && clock() && zoneAtEnd()
        }
        if third == UInt8(ascii: ":") {
            hasDate = false
            return clock() && p == end
        }
        if byte(4) == UInt8(ascii: " ") { return klog() }
        if byte(6) == UInt8(ascii: " ") { return oldMySQL() }
        if byte(8) | 0x20 == UInt8(ascii: "t") { return compact() }
        if byte(8) == UInt8(ascii: " ") { return glog() }
        return yearFirst()
    }

    /// `2026-11-29 10:00:00.123 Z`, with `-`, `/` or `.` in the date.
    private mutating func yearFirst() -> Bool {
        guard let century = two(), let rest = two() else { return false }
        year = century * 100 + rest
        let mark = p < end ? p.pointee : 0
        guard mark == UInt8(ascii: "-") || mark == UInt8(ascii: "/") || mark == UInt8(ascii: "."), skip(mark),
            let month = two(), skip(mark), let day = two()
        else { return false }
        self.month = month
        self.day = day
        guard p < end, p.pointee | 0x20 == UInt8(ascii: "t") || p.pointee == UInt8(ascii: " ") else {
            return false
        }
        p += 1
        return clock() && zoneAtEnd()
    }

    /// The date `29/Nov/2026`, with `mark` between its parts.
    private mutating func dayMonthYear(_ mark: UInt8) -> Bool {
        guard let day = oneOrTwo(), skip(mark), monthName(), skip(mark), let century = two(), let rest = two()
        else {
            return false
        }
        self.day = day
        year = century * 100 + rest
        return true
    }

    /// klog's `1129 10:00:00.123456`, without a year.
    private mutating func klog() -> Bool {
        guard let month = two(), let day = two(), skip(UInt8(ascii: " ")) else { return false }
        self.month = month
        self.day = day
        return clock() && p == end
    }

    /// glog's `20261129 10:00:00.123456`.
    private mutating func glog() -> Bool {
        guard let century = two(), let rest = two(), let month = two(), let day = two(),
            skip(UInt8(ascii: " "))
        else { return false }
        year = century * 100 + rest
        self.month = month
        self.day = day
        return clock() && p == end
    }

    /// `261129 10:00:00` of MySQL before 5.7: the year has two digits and is of this century.
    private mutating func oldMySQL() -> Bool {
        guard let rest = two(), let month = two(), let day = two(), skip(UInt8(ascii: " ")) else {
            return false
        }
        year = 2000 + rest
        self.month = month
        self.day = day
        return clock() && p == end
    }

    /// ISO 8601's basic form, `20261129T100000Z`.
    private mutating func compact() -> Bool {
        guard let century = two(), let rest = two(), let month = two(), let day = two() else { return false }
        year = century * 100 + rest
        self.month = month
        self.day = day
        p += 1
        guard let hour = two(), let minute = two(), let second = two(), sets(hour, minute, second), fraction()
        else {
            return false
        }
        return zoneAtEnd()
    }

    /// The forms that begin with the name of a day or a month: syslog's, ctime's, RFC 1123's.
    private mutating func wordForm() -> Bool {
        if monthName() {
            guard skip(UInt8(ascii: " ")) else { return false }
            skipBlanks()
            guard let day = oneOrTwo() else { return false }
            self.day = day
            if skip(UInt8(ascii: ",")) { return yearAndHalfDay() }
            guard skip(UInt8(ascii: " ")) else { return false }
            // Cisco writes the year before the time.
            if end - p > 5, p[4] == UInt8(ascii: " "), let century = two(), let rest = two() {
                year = century * 100 + rest
                p += 1
            }
            return clock() && zoneAtEnd()
        }
        // The name of a day, short or long (RFC 850). It is not compared: the date says the day.
        while p < end, p.pointee | 0x20 >= 0x61, p.pointee | 0x20 <= 0x7A { p += 1 }
        guard p - start >= 3, p - start <= 9 else { return false }
        if skip(UInt8(ascii: ",")) {
            guard skip(UInt8(ascii: " ")), p + 3 < end else { return false }
            let mark = TimeReader.isDigit(p[1]) ? p[2] : p[1]
            return dayMonthYear(mark) && skip(UInt8(ascii: " ")) && clock() && zoneAtEnd()
        }
        guard skip(UInt8(ascii: " ")) else { return false }
        if p < end, TimeReader.isDigit(p.pointee) { return yearFirst() }
        guard monthName(), skip(UInt8(ascii: " ")) else { return false }
        skipBlanks()
        guard let day = oneOrTwo(), skip(UInt8(ascii: " ")), clock() else { return false }
        self.day = day
        guard skip(UInt8(ascii: " ")) else { return false }
        // date(1) writes the zone before the year.
        if p < end, !TimeReader.isDigit(p.pointee) {
            guard zoneWord(), skip(UInt8(ascii: " ")) else { return false }
        }
        guard let century = two(), let rest = two() else { return false }
        year = century * 100 + rest
        return p == end
    }

    /// ` 2026 10:00:00 AM` after the day of the month: java.util.logging counts hours from 12, 1, 2 to 11.
    private mutating func yearAndHalfDay() -> Bool {
        guard skip(UInt8(ascii: " ")), let century = two(), let rest = two(), skip(UInt8(ascii: " ")),
            clock(),
            skip(UInt8(ascii: " ")), end - p == 2, p[1] | 0x20 == UInt8(ascii: "m")
        else { return false }
        year = century * 100 + rest
        let half = 12 * 3600
        guard second >= 3600, second < half + 3600 else { return false }
        // Twelve is the first hour of its half of the day.
        if second >= half {
            second -= half
        }
        switch p[0] | 0x20 {
        case UInt8(ascii: "a"): return true
        case UInt8(ascii: "p"):
            second += half
            return true
        default: return false
        }
    }

    // MARK: Pieces

    /// Consumes a byte; returns false, and consumes nothing, if another byte is next.
    @inline(__always)
    private mutating func skip(_ byte: UInt8) -> Bool {
        guard p < end, p.pointee == byte else { return false }
        p += 1
        return true
    }

    /// Steps over blanks, if any.
    private mutating func skipBlanks() {
        while p < end, p.pointee == UInt8(ascii: " ") { p += 1 }
    }

    /// Reads two digits; nil if there are not two.
    @inline(__always)
    private mutating func two() -> Int? {
        guard end - p >= 2 else { return nil }
        let tens = p[0] &- 0x30
        let ones = p[1] &- 0x30
        guard tens < 10, ones < 10 else { return nil }
        p += 2
        return Int(tens) * 10 + Int(ones)
    }

    /// Reads a number of one or two digits.
    private mutating func oneOrTwo() -> Int? {
        if let value = two() { return value }
        guard p < end, TimeReader.isDigit(p.pointee) else { return nil }
        p += 1
        return Int(p[-1] &- 0x30)
    }

    /// Reads the first three letters of a month's English name, in capitals or small letters.
    @inline(__always)
    private mutating func monthName() -> Bool {
        // The three letters as one number, in small letters: one switch instead of twelve comparisons of
        // texts.
        guard end - p >= 3 else { return false }
        let letters = UInt32(p[0] | 0x20) << 16 | UInt32(p[1] | 0x20) << 8 | UInt32(p[2] | 0x20)
        switch letters {
        case 0x6A_616E: month = 1
        case 0x66_6562: month = 2
        case 0x6D_6172: month = 3
        case 0x61_7072: month = 4
        case 0x6D_6179: month = 5
        case 0x6A_756E: month = 6
        case 0x6A_756C: month = 7
        case 0x61_7567: month = 8
        case 0x73_6570: month = 9
        case 0x6F_6374: month = 10
        case 0x6E_6F76: month = 11
        case 0x64_6563: month = 12
        default: return false
        }
        p += 3
        return true
    }

    /// Reads a time of day: `10:00:00` with or without a fraction, ` 9:00:00`, `10:00`.
    @inline(__always)
    private mutating func clock() -> Bool {
        skipBlanks()
        guard let hour = oneOrTwo(), skip(UInt8(ascii: ":")), let minute = two() else { return false }
        guard skip(UInt8(ascii: ":")) else { return sets(hour, minute, 0) }
        guard let second = two(), sets(hour, minute, second) else { return false }
        return fraction()
    }

    /// Sets the second of the day, if its parts are in range.
    @inline(__always)
    private mutating func sets(_ hour: Int, _ minute: Int, _ second: Int) -> Bool {
        // A leap second (60) counts as the first second of the next minute, as POSIX time does.
        guard hour <= 23, minute <= 59, second <= 60 else { return false }
        // bounded: hours, minutes and seconds of a day.
        self.second = hour * 3600 + minute * 60 + second
        return true
    }

    /// Reads a fraction after a point or a comma. Digits beyond nanoseconds are read and dropped; a point
    /// without digits is an error.
    @inline(__always)
    private mutating func fraction() -> Bool {
        guard p < end, p.pointee == UInt8(ascii: ".") || p.pointee == UInt8(ascii: ",") else { return true }
        p += 1
        var scale = 100_000_000
        let first = p
        while p < end, TimeReader.isDigit(p.pointee) {
            nanoseconds += Int(p.pointee &- 0x30) * scale
            scale /= 10
            p += 1
        }
        return p > first
    }

    /// Reads what follows the time of day: nothing, an offset (`+01`, `+0100`, `+01:00`), or a zone's
    /// letters. It must reach the end of the text.
    @inline(__always)
    private mutating func zoneAtEnd() -> Bool {
        if p == end { return true }
        _ = skip(UInt8(ascii: " "))
        if p < end, p.pointee == UInt8(ascii: "+") || p.pointee == UInt8(ascii: "-") {
            let sign = p.pointee == UInt8(ascii: "+") ? 1 : -1
            p += 1
            guard let hours = two(), hours <= 23 else { return false }
            var minutes = 0
            if p < end {
                _ = skip(UInt8(ascii: ":"))
                guard let found = two(), found <= 59 else { return false }
                minutes = found
            }
            // bounded: both have two digits.
            offset = sign * (hours * 3600 + minutes * 60)
            return p == end
        }
        return zoneWord() && p == end
    }

    /// Reads `Z`, `UTC` or `GMT` as an offset of 0; keeps three to five other letters in `letters`.
    private mutating func zoneWord() -> Bool {
        let word = p
        while p < end, p.pointee | 0x20 >= 0x61, p.pointee | 0x20 <= 0x7A { p += 1 }
        let letters = Bytes(word, p - word)
        switch letters.count {
        case 1:
            guard letters[0] | 0x20 == UInt8(ascii: "z") else { return false }
            offset = 0
        case 3...5:
            if letters.equals("UTC") || letters.equals("GMT") {
                offset = 0
            } else {
                self.letters = letters
            }
        default: return false
        }
        return true
    }

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
        guard let found = TimeReader.usualHours.first(where: { letters.equals($0.letters) }) else {
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
        return TimeReader.nearest(to: now, (thisYear - 1...thisYear + 1).map { instant($0, zone, false) })
    }

    /// The instant of a time without a date: of yesterday, today and tomorrow, the nearest to now of those
    /// that are not in the future by more than an hour. Lines wait longer to be read than clocks are wrong.
    @inline(never)
    private func timeOfDay(_ zone: TimeZoneRules, _ now: Timestamp) -> Timestamp? {
        let today = zone.date(at: now)
        let latest = now.nanoseconds.addingSaturating(3600 * 1_000_000_000)
        let days = (-1...1).map { local(today.advanced(by: $0), zone) }
        return TimeReader.nearest(to: now, days.filter { $0.nanoseconds <= latest })
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
