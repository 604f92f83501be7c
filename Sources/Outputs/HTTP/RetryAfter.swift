internal import CCurl
internal import EventLoops

/// When a destination wants to be asked again.
enum RetryAfter {
    /// The shortest and the longest wait that is obeyed: a second, an hour. A server that wants more is asked again then, and may say so.
    static let bounds: ClosedRange<Duration> = .seconds(1) ... .seconds(3600)

    /// How long to wait, by the headers of an answer.
    ///
    /// `x-ms-retry-after-ms`, which says it in milliseconds, takes precedence over `Retry-After`, which says it in seconds or as
    /// a date. A date is measured against the answer's own `Date`, so that a clock that is wrong on either side does not
    /// matter.
    /// - Returns: nil when neither header says anything that can be read.
    static func wait(retryAfter: String?, milliseconds: String?, date: String?, now: Timestamp) -> Duration? {
        if let milliseconds, let count = number(milliseconds) {
            return clamp(.milliseconds(count))
        }
        guard let retryAfter else { return nil }
        if let count = number(retryAfter) { return clamp(.seconds(count)) }
        guard let until = point(retryAfter) else { return nil }
        return clamp(until - (date.flatMap(point) ?? now))
    }

    /// A date of HTTP in any of its three forms; nil for nonsense. Source: RFC 9110, section 5.6.7.
    private static func point(_ text: String) -> Timestamp? {
        let seconds = curl_getdate(text, nil)
        return seconds < 0 ? nil : Timestamp(seconds: seconds, nanoseconds: 0)
    }

    private static func clamp(_ wait: Duration) -> Duration {
        min(max(wait, bounds.lowerBound), bounds.upperBound)
    }

    /// A number without sign; what is beyond an hour is as good as an hour.
    private static func number(_ text: String) -> Int64? {
        let digits = text.utf8.drop { $0 == 0x20 || $0 == 0x09 }.prefix { (0x30...0x39).contains($0) }
        let rest = text.utf8[digits.endIndex...]
        guard !digits.isEmpty, rest.allSatisfy({ $0 == 0x20 || $0 == 0x09 }) else { return nil }
        return digits.count > 15 ? 1_000_000_000_000 : Int64(String(decoding: digits, as: UTF8.self))
    }
}
