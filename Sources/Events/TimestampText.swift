public import EventLoops
internal import TimeZones

/// Times as texts and numbers of events have them.
public enum TimestampText {
    /// The time of an RFC 3339 text: `2026-11-20T10:00:00.123Z`, with any offset and any number of digits
    /// after the point; digits beyond nanoseconds are ignored.
    ///
    /// `t`, `z`, and a blank between date and time are accepted. A leap second counts as the second after it.
    /// Years beyond the range of `Timestamp` become its ends.
    /// - Returns: nil for anything else.
    public static func parse(_ text: UnsafeBufferPointer<UInt8>) -> Timestamp? {
        guard text.count >= 20, let p = text.baseAddress else { return nil }
        guard let century = two(p), let year = two(p + 2), p[4] == UInt8(ascii: "-"), let month = two(p + 5),
            p[7] == UInt8(ascii: "-"), let day = two(p + 8), let hour = two(p + 11), p[13] == .colon,
            let minute = two(p + 14), p[16] == .colon, let second = two(p + 17)
        else { return nil }
        guard p[10] | 0x20 == UInt8(ascii: "t") || p[10] == .blank else { return nil }
        let wholeYear = century * 100 + year
        let date = LocalDate(year: wholeYear, month: month, day: day)
        // A date that does not exist, such as 31 April, comes back as another date.
        guard date.parts == (wholeYear, month, day), hour <= 23, minute <= 59, second <= 60 else {
            return nil
        }
        var index = 19
        var nanoseconds = 0
        if p[19] == UInt8(ascii: ".") {
            index = 20
            var scale = 100_000_000
            while index < text.count, JSONScanner.isDigit(p[index]) {
                nanoseconds += Int(p[index] &- UInt8(ascii: "0")) * scale
                scale /= 10
                index += 1
            }
            guard index > 20, index < text.count else { return nil }
        }
        // bounded: a year has four digits.
        var seconds = date.dayNumber * 86_400 + hour * 3600 + minute * 60 + second
        if p[index] | 0x20 == UInt8(ascii: "z") {
            guard index + 1 == text.count else { return nil }
        } else {
            guard index + 6 == text.count, p[index] == UInt8(ascii: "+") || p[index] == UInt8(ascii: "-"),
                let hours = two(p + index + 1), p[index + 3] == .colon, let minutes = two(p + index + 4),
                hours <= 23, minutes <= 59
            else { return nil }
            // bounded: both have two digits.
            let offset = hours * 3600 + minutes * 60
            seconds += p[index] == UInt8(ascii: "+") ? -offset : offset
        }
        return Timestamp(seconds: seconds, nanoseconds: nanoseconds)
    }

    /// The time of a text in an everyday variant of RFC 3339: a comma before the fraction; an offset `+0000`
    /// or `+00`; ` UTC`, ` GMT` or a space before the offset; no offset, which means a time of `zone`; no
    /// fraction or no seconds.
    ///
    /// - Returns: nil for anything else.
    static func parseLoosely(_ text: UnsafeBufferPointer<UInt8>, in zone: TimeZoneRules) -> Timestamp? {
        guard text.count >= 16, text.count <= 48 else { return nil }
        var clock = Array(text)
        var offset: [UInt8]?
        for suffix in [" UTC", " GMT", "UTC"] where clock.suffix(suffix.utf8.count).elementsEqual(suffix.utf8)
        {
            clock.removeLast(suffix.utf8.count)
            offset = [UInt8(ascii: "Z")]
        }
        if offset == nil, let sign = clock[16...].lastIndex(where: { $0 == 0x2B || $0 == 0x2D }) {
            var digits = clock[(sign + 1)...].filter { $0 != .colon }
            if digits.count == 2 {
                digits += [0x30, 0x30]
            }
            guard digits.count == 4 else { return nil }
            offset = [clock[sign]] + digits[..<2] + [.colon] + digits[2...]
            clock.removeLast(clock.count - sign)
            if clock.last == .blank {
                clock.removeLast()
            }
        } else if offset == nil, clock.last.map({ $0 | 0x20 }) == UInt8(ascii: "z") {
            clock.removeLast()
            offset = [UInt8(ascii: "Z")]
        }
        if clock.count == 16 {
            clock += [.colon, 0x30, 0x30]
        }
        if clock.count > 19, clock[19] == .comma {
            clock[19] = UInt8(ascii: ".")
        }
        guard let time = (clock + (offset ?? [UInt8(ascii: "Z")])).withUnsafeBufferPointer({ parse($0) })
        else {
            return nil
        }
        guard offset == nil else { return time }
        let midnight = time.nanoseconds / 86_400_000_000_000
        let rest = time.nanoseconds % 86_400_000_000_000
        guard rest >= 0 else { return nil }
        let local = zone.instant(
            of: LocalDate(dayNumber: Int(midnight)), secondOfDay: Int(rest / 1_000_000_000))
        return Timestamp(nanoseconds: local.nanoseconds + rest % 1_000_000_000)
    }

    /// The time of a number since 1970: in seconds below 10¹¹, in milliseconds below 10¹⁴, in microseconds
    /// below 10¹⁷, otherwise in nanoseconds.
    ///
    /// So each of the four units is read correctly from 3 March 1973 on, until the year 5138. A fraction is
    /// read; a sign or an exponent is not, because loggers do not write times with them.
    /// - Returns: nil for anything else.
    public static func parseNumber(_ text: UnsafeBufferPointer<UInt8>) -> Timestamp? {
        var whole: Int64 = 0
        var index = 0
        while index < text.count, JSONScanner.isDigit(text[index]) {
            let (tens, overflow) = whole.multipliedReportingOverflow(by: 10)
            let (sum, past) = tens.addingReportingOverflow(Int64(text[index] &- UInt8(ascii: "0")))
            guard !overflow, !past else { return nil }
            whole = sum
            index += 1
        }
        guard index > 0 else { return nil }
        let unit: Int64 =
            whole < 100_000_000_000
            ? 1_000_000_000
            : whole < 100_000_000_000_000 ? 1_000_000 : whole < 100_000_000_000_000_000 ? 1000 : 1
        var fraction: Int64 = 0
        if index < text.count {
            guard text[index] == UInt8(ascii: ".") else { return nil }
            index += 1
            var scale = unit / 10
            while index < text.count {
                guard JSONScanner.isDigit(text[index]) else { return nil }
                fraction += Int64(text[index] &- UInt8(ascii: "0")) * scale
                scale /= 10
                index += 1
            }
        }
        return Timestamp(nanoseconds: whole.multipliedSaturating(by: unit).addingSaturating(fraction))
    }

    /// The number of two digits; nil if one of the bytes is not a digit.
    @inline(__always)
    private static func two(_ p: UnsafePointer<UInt8>) -> Int? {
        let tens = p[0] &- UInt8(ascii: "0")
        let ones = p[1] &- UInt8(ascii: "0")
        return tens < 10 && ones < 10 ? Int(tens) * 10 + Int(ones) : nil
    }
}
