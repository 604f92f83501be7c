package import EventLoops

/// Reads times of events, most of which are on the same day as the one before.
///
/// A text such as `2026-11-20T10:00:00.123Z`, as nearly all events have, or one with six or nine digits after
/// the point, is read eight bytes at a time. Its date is read only if it differs from the last one. Any other
/// text goes to `TimestampText.parse`; both give the same result.
package struct TimestampReader {
    /// Nanoseconds of a day.
    static let day: Int64 = 86_400_000_000_000

    /// Text of the last date, up to the `T`, as two overlapping words; zero, which no JSON string can hold,
    /// before the first.
    private var dateStart: UInt64 = 0
    private var dateEnd: UInt64 = 0
    /// Beginning of that day, in nanoseconds since 1970.
    private var midnight: Int64 = 0

    package init() {}

    /// The time of an RFC 3339 text, as `TimestampText.parse` reads it.
    @inline(__always)
    package mutating func parse(_ text: UnsafeBufferPointer<UInt8>) -> Timestamp? {
        let length = text.count
        guard length == 24 || length == 27 || length == 30, let start = text.baseAddress else {
            return TimestampText.parse(text)
        }
        let p = UnsafeRawPointer(start)
        guard TimestampReader.word(p, 0) == dateStart, TimestampReader.word(p, 3) == dateEnd,
            let nanoseconds = TimestampReader.timeOfDay(p, length)
        else { return another(text) }
        return Timestamp(nanoseconds: midnight &+ nanoseconds)
    }

    /// Reads a text with another date or of another form; remembers the date if the form is the fast one.
    @inline(never)
    private mutating func another(_ text: UnsafeBufferPointer<UInt8>) -> Timestamp? {
        guard let time = TimestampText.parse(text) else { return nil }
        guard let p = UnsafeRawPointer(text.baseAddress), let ofDay = TimestampReader.timeOfDay(p, text.count)
        else {
            return time
        }
        let midnight = time.nanoseconds.subtractingReportingOverflow(ofDay)
        // A day that `Timestamp` cannot hold completely is not remembered: its times have to saturate one by
        // one.
        guard !midnight.overflow, midnight.partialValue % TimestampReader.day == 0,
            midnight.partialValue <= .max - TimestampReader.day
        else { return time }
        self.midnight = midnight.partialValue
        dateStart = TimestampReader.word(p, 0)
        dateEnd = TimestampReader.word(p, 3)
        return time
    }

    /// Nanoseconds since midnight of `HH:MM:SS.mmmZ`, from the twelfth byte on, or of the same with six or
    /// nine digits; nil for another form, and for a leap second.
    @inline(__always)
    private static func timeOfDay(_ p: UnsafeRawPointer, _ length: Int) -> Int64? {
        // Each byte becomes the value of its digit, and the bytes between digits become zero. The lowest byte
        // is the first.
        let clock = word(p, 11) ^ 0x3030_3A30_303A_3030  // 00:00:00
        let end = word(p, 16) & 0x00FF_FFFF_FFFF_FFFF ^ 0x0030_3030_2E30_303A  // :00.000
        // A bit is left in a high half of a byte if the byte is greater than nine, or if a separator is
        // wrong.
        let clockExcess =
            (clock &+ 0x0606_0006_0600_0606) & 0xF0F0_00F0_F000_F0F0 | clock & 0xF0F0_FFF0_F0FF_F0F0
        let endExcess = (end &+ 0x0006_0606_0006_0600) & 0x00F0_F0F0_00F0_F000 | end & 0xFFF0_F0F0_FFF0_F0FF
        guard clockExcess | endExcess == 0,
            p.load(fromByteOffset: length - 1, as: UInt8.self) == UInt8(ascii: "Z")
        else { return nil }
        // Each byte with a first digit now holds the number of two digits.
        let pairs = clock &* 10 &+ clock &>> 8
        let hour = pairs & 0xFF
        let minute = pairs &>> 24 & 0xFF
        let second = pairs &>> 48 & 0xFF
        guard hour <= 23, minute <= 59, second <= 59 else { return nil }
        let millisecond = (end &>> 32 & 0xFF) &* 100 &+ (end &>> 40 & 0xFF) &* 10 &+ (end &>> 48 & 0xFF)
        let total = ((hour &* 60 &+ minute) &* 60 &+ second) &* 1000 &+ millisecond
        var rest: UInt64 = 0
        var offset = 23
        while offset < length &- 1 {
            let digit = p.load(fromByteOffset: offset, as: UInt8.self) &- UInt8(ascii: "0")
            guard digit < 10 else { return nil }
            rest = rest &* 10 &+ UInt64(digit)
            offset &+= 1
        }
        return Int64(truncatingIfNeeded: total &* 1_000_000 &+ (length == 27 ? rest &* 1000 : rest))
    }

    /// Eight bytes as a little-endian number.
    @inline(__always)
    private static func word(_ p: UnsafeRawPointer, _ offset: Int) -> UInt64 {
        p.loadUnaligned(fromByteOffset: offset, as: UInt64.self).littleEndian
    }
}
