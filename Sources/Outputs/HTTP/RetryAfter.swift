internal import CCurl
internal import EventLoops

/// Reads how long a destination wants to be left alone.
enum RetryAfter {
    /// Shortest and longest wait that is obeyed. A server that needs more than an hour can repeat its wish
    /// then; without the limit a wrong header could stop a destination for years.
    static let bounds: ClosedRange<Duration> = .seconds(1) ... .seconds(3600)

    /// The wait that the headers of an answer ask for.
    ///
    /// `x-ms-retry-after-ms` (milliseconds) takes precedence over `Retry-After` (seconds or a date, RFC
    /// 9110, section 10.2.3). A date is compared with the answer's own `Date`, so that a wrong clock on
    /// either side does not matter.
    /// - Parameter now: the time of day, used if the answer has no `Date`.
    /// - Returns: nil if neither header is readable.
    static func wait(retryAfter: String?, milliseconds: String?, date: String?, now: Timestamp) -> Duration? {
        if let milliseconds, let count = number(milliseconds) {
            return clamp(.milliseconds(count))
        }
        guard let retryAfter else { return nil }
        if let count = number(retryAfter) { return clamp(.seconds(count)) }
        guard let until = point(retryAfter) else { return nil }
        return clamp(until - (date.flatMap(point) ?? now))
    }

    /// A date of HTTP in any of the three forms of RFC 9110, section 5.6.7; nil for anything else.
    private static func point(_ text: String) -> Timestamp? {
        let seconds = curl_getdate(text, nil)
        return seconds < 0 ? nil : Timestamp(seconds: seconds, nanoseconds: 0)
    }

    /// The wait within `bounds`.
    private static func clamp(_ wait: Duration) -> Duration {
        min(max(wait, bounds.lowerBound), bounds.upperBound)
    }

    /// A number without a sign, with blanks around it; nil for anything else. More than 15 digits become a
    /// large number that `clamp` reduces, instead of an overflow.
    private static func number(_ text: String) -> Int64? {
        let digits = text.utf8.drop { $0 == 0x20 || $0 == 0x09 }.prefix { (0x30...0x39).contains($0) }
        let rest = text.utf8[digits.endIndex...]
        guard !digits.isEmpty, rest.allSatisfy({ $0 == 0x20 || $0 == 0x09 }) else { return nil }
        return digits.count > 15 ? 1_000_000_000_000 : Int64(String(decoding: digits, as: UTF8.self))
    }
}
