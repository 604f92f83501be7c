/// Reads the parts of a time from a text. The first bytes decide the form, so no list of forms is tried.
struct TimeReader {
    /// The next byte to read.
    private var p: UnsafePointer<UInt8>
    /// Beginning of the text, from which the form is decided.
    private let start: UnsafePointer<UInt8>
    /// End of the text.
    private let end: UnsafePointer<UInt8>

    /// The parts that were read so far.
    private(set) var parts = TimeParts()

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
            parts.hasDate = false
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
        parts.year = century * 100 + rest
        let mark = p < end ? p.pointee : 0
        guard mark == UInt8(ascii: "-") || mark == UInt8(ascii: "/") || mark == UInt8(ascii: "."), skip(mark),
            let month = two(), skip(mark), let day = two()
        else { return false }
        parts.month = month
        parts.day = day
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
        parts.day = day
        parts.year = century * 100 + rest
        return true
    }

    /// klog's `1129 10:00:00.123456`, without a year.
    private mutating func klog() -> Bool {
        guard let month = two(), let day = two(), skip(UInt8(ascii: " ")) else { return false }
        parts.month = month
        parts.day = day
        return clock() && p == end
    }

    /// glog's `20261129 10:00:00.123456`.
    private mutating func glog() -> Bool {
        guard let century = two(), let rest = two(), let month = two(), let day = two(),
            skip(UInt8(ascii: " "))
        else { return false }
        parts.year = century * 100 + rest
        parts.month = month
        parts.day = day
        return clock() && p == end
    }

    /// `261129 10:00:00` of MySQL before 5.7: the year has two digits and is of this century.
    private mutating func oldMySQL() -> Bool {
        guard let rest = two(), let month = two(), let day = two(), skip(UInt8(ascii: " ")) else {
            return false
        }
        parts.year = 2000 + rest
        parts.month = month
        parts.day = day
        return clock() && p == end
    }

    /// ISO 8601's basic form, `20261129T100000Z`.
    private mutating func compact() -> Bool {
        guard let century = two(), let rest = two(), let month = two(), let day = two() else { return false }
        parts.year = century * 100 + rest
        parts.month = month
        parts.day = day
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
            parts.day = day
            if skip(UInt8(ascii: ",")) { return yearAndHalfDay() }
            guard skip(UInt8(ascii: " ")) else { return false }
            // Cisco writes the year before the time.
            if end - p > 5, p[4] == UInt8(ascii: " "), let century = two(), let rest = two() {
                parts.year = century * 100 + rest
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
        parts.day = day
        guard skip(UInt8(ascii: " ")) else { return false }
        // date(1) writes the zone before the year.
        if p < end, !TimeReader.isDigit(p.pointee) {
            guard zoneWord(), skip(UInt8(ascii: " ")) else { return false }
        }
        guard let century = two(), let rest = two() else { return false }
        parts.year = century * 100 + rest
        return p == end
    }

    /// ` 2026 10:00:00 AM` after the day of the month: java.util.logging counts hours from 12, 1, 2 to 11.
    private mutating func yearAndHalfDay() -> Bool {
        guard skip(UInt8(ascii: " ")), let century = two(), let rest = two(), skip(UInt8(ascii: " ")),
            clock(),
            skip(UInt8(ascii: " ")), end - p == 2, p[1] | 0x20 == UInt8(ascii: "m")
        else { return false }
        parts.year = century * 100 + rest
        let half = 12 * 3600
        guard parts.second >= 3600, parts.second < half + 3600 else { return false }
        // Twelve is the first hour of its half of the day.
        if parts.second >= half {
            parts.second -= half
        }
        switch p[0] | 0x20 {
        case UInt8(ascii: "a"): return true
        case UInt8(ascii: "p"):
            parts.second += half
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
        case 0x6A_616E: parts.month = 1
        case 0x66_6562: parts.month = 2
        case 0x6D_6172: parts.month = 3
        case 0x61_7072: parts.month = 4
        case 0x6D_6179: parts.month = 5
        case 0x6A_756E: parts.month = 6
        case 0x6A_756C: parts.month = 7
        case 0x61_7567: parts.month = 8
        case 0x73_6570: parts.month = 9
        case 0x6F_6374: parts.month = 10
        case 0x6E_6F76: parts.month = 11
        case 0x64_6563: parts.month = 12
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
        parts.second = hour * 3600 + minute * 60 + second
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
            parts.nanoseconds += Int(p.pointee &- 0x30) * scale
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
            parts.offset = sign * (hours * 3600 + minutes * 60)
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
            parts.offset = 0
        case 3...5:
            if letters.equals("UTC") || letters.equals("GMT") {
                parts.offset = 0
            } else {
                parts.letters = letters
            }
        default: return false
        }
        return true
    }
}
