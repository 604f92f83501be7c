internal import EventLoops
internal import Glibc
internal import TimeZones

/// The member `timestamp` as it is written: a time as RFC 3339 in UTC, with its name and a comma.
///
/// The text is kept, because the next line often has the same time, and the date of it, because nearly all
/// lines are of one day.
struct TimestampMember {
    /// Most bytes of the text: 45 with nine digits of the second, and a few that do not count. `copy` writes
    /// all of them, because a fixed length is copied without a call.
    static let most = 48
    /// Length of `"timestamp":`.
    static let nameLength = 12

    /// The time that the text says; nil before the first.
    private var time: Timestamp?
    /// The text, of which `count` bytes count.
    private var text: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0, 0, 0)
    /// Number of bytes of the text.
    private(set) var count = 0
    /// Number of the day whose date the text has (days since 1970). `Int64.min` is not a day.
    private var day = Int64.min

    /// Makes the text say a time.
    @inline(__always)
    mutating func set(_ new: Timestamp) {
        if new != time {
            write(new)
        }
    }

    /// Copies the text, and what follows it up to `most` bytes.
    @inline(__always)
    func copy(to target: UnsafeMutablePointer<UInt8>) {
        withUnsafeBytes(of: text) { bytes in
            _ = memcpy(target, bytes.baseAddress.unsafelyUnwrapped, TimestampMember.most)
        }
    }

    /// Writes the text. The fraction has 3, 6 or 9 digits, whichever shows the time without loss.
    @inline(never)
    private mutating func write(_ new: Timestamp) {
        time = new
        let seconds = new.nanoseconds.floored(by: 1_000_000_000)
        let days = seconds.quotient.floored(by: 86_400)
        let isNewDay = days.quotient != day
        day = days.quotient
        let second = Int(days.remainder)
        let rest = Int(seconds.remainder)
        let digits = rest % 1_000_000 == 0 ? 3 : rest % 1000 == 0 ? 6 : 9
        let fraction = digits == 3 ? rest / 1_000_000 : digits == 6 ? rest / 1000 : rest
        let day = day
        count = withUnsafeMutableBytes(of: &text) { bytes in
            var writer = TimestampWriter(bytes)
            if isNewDay {
                writer.write("\"timestamp\":\"")
                writer.write(LocalDate(dayNumber: Int(day)).description.utf8.prefix(10))
                writer.write("T")
            } else {
                writer.skip(TimestampMember.nameLength + 12)
            }
            writer.write(second / 3600, digits: 2)
            writer.write(":")
            writer.write(second / 60 % 60, digits: 2)
            writer.write(":")
            writer.write(second % 60, digits: 2)
            writer.write(".")
            writer.write(fraction, digits: digits)
            writer.write("Z\",")
            return writer.count
        }
    }
}

/// Writes the parts of a text one after the other.
private struct TimestampWriter {
    private let bytes: UnsafeMutableRawBufferPointer
    private(set) var count = 0

    init(_ bytes: UnsafeMutableRawBufferPointer) { self.bytes = bytes }

    mutating func skip(_ length: Int) { count += length }

    mutating func write(_ text: StaticString) {
        memcpy(bytes.baseAddress.unsafelyUnwrapped + count, text.utf8Start, text.utf8CodeUnitCount)
        count += text.utf8CodeUnitCount
    }

    @inline(never)
    mutating func write(_ text: Substring.UTF8View) {
        for byte in text {
            bytes[count] = byte
            count += 1
        }
    }

    /// Writes a number with leading zeros.
    @inline(__always)
    mutating func write(_ number: Int, digits: Int) {
        var left = number
        for index in (count..<count + digits).reversed() {
            // bounded: the rest of a division by ten.
            bytes[index] = 0x30 + UInt8(left % 10)
            left /= 10
        }
        count += digits
    }
}
