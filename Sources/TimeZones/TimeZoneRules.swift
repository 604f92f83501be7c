//  TimeZones: the system's zone files: which offset holds at an instant, which instant a local date and time is.
//
//  It promises right answers for every instant, those after a file's last transition included, and no crash on any bytes.
//  It knows nothing of the process's own zone beyond the files that say it; libc's TZ is global and is never touched.

public import EventLoops

/// The rules of one time zone: a pure value.
///
/// Source: RFC 9636 (TZif), versions 1 to 4; leap seconds are not applied, since no time of day of the agent counts them.
public struct TimeZoneRules: Sendable, Equatable {
    /// The zone's name, such as `Europe/Rome`.
    public let name: String

    /// When the offset changes, in seconds since 1970 in UTC, in order; and the offset from each on.
    private let transitions: [Int64]
    private let offsets: [Int32]
    /// The offset before the first transition.
    private let first: Int32
    private let footer: FooterRule?

    /// UTC.
    public static let utc = TimeZoneRules(name: "UTC", first: 0)

    private init(name: String, first: Int32) {
        self.name = name
        self.first = first
        transitions = []
        offsets = []
        footer = nil
    }

    /// A rule for all times, as `TZ` may have one: `CET-1CEST,M3.5.0,M10.5.0/3`; nil when it is none.
    init?(rule text: String) {
        guard let rule = FooterRule(text.utf8) else { return nil }
        name = text
        first = Int32(rule.standard)
        transitions = []
        offsets = []
        footer = rule
    }

    /// The rules that a TZif file holds.
    ///
    /// - Throws: `TimeZoneError` with code `malformed`.
    public init(name: String, tzif bytes: [UInt8]) throws(TimeZoneError) {
        self.name = name
        var reader = TZifReader(bytes: bytes)
        guard let file = reader.read() else {
            throw TimeZoneError(
                .malformed, "the file of time zone \(name) is damaged; install the package tzdata again")
        }
        transitions = file.transitions
        offsets = file.offsets
        first = file.first
        footer = file.footer
    }

    // MARK: From instants to local time

    /// How far local time is ahead of UTC at an instant, in seconds.
    public func offset(at time: Timestamp) -> Int { span(at: time).offset }

    /// The offset at an instant, and the time around it in which it holds without a change.
    ///
    /// - Returns: `from` is included, `until` is not; the ends of what `Timestamp` can say stand for "always".
    public func span(at time: Timestamp) -> (offset: Int, from: Timestamp, until: Timestamp) {
        let found = span(at: TimeZoneRules.seconds(of: time))
        return (found.offset, TimeZoneRules.timestamp(found.from), TimeZoneRules.timestamp(found.until))
    }

    /// The local date at an instant.
    public func date(at time: Timestamp) -> LocalDate {
        let local = TimeZoneRules.seconds(of: time) + Int64(offset(at: time))
        return LocalDate(dayNumber: Int(TimeZoneRules.floor(local, 86_400)))
    }

    // MARK: From local time to instants

    /// The instant of a local date and time.
    ///
    /// A time that the clocks skip is the first instant after the gap; one that comes twice is the earlier (ga08).
    /// - Parameter secondOfDay: 0…86,399.
    public func instant(of date: LocalDate, secondOfDay: Int) -> Timestamp {
        // bounded: as in FooterRule.
        let local = Int64(date.dayNumber) * 86_400 + Int64(secondOfDay)
        // No zone is more than a day and a few hours away from UTC.
        var span = span(at: local - 2 * 86_400)
        while true {
            let instant = local - Int64(span.offset)
            if instant < span.until { return TimeZoneRules.timestamp(max(instant, span.from)) }
            span = self.span(at: span.until)
        }
    }

    // MARK: The rules

    private typealias Span = (offset: Int, from: Int64, until: Int64)

    private func span(at seconds: Int64) -> Span {
        // The number of transitions at or before the instant.
        var low = 0
        var high = transitions.count
        while low < high {
            let middle = (low + high) / 2
            if transitions[middle] <= seconds { low = middle + 1 } else { high = middle }
        }
        if low < transitions.count {
            return (Int(low == 0 ? first : offsets[low - 1]), low == 0 ? .min : transitions[low - 1], transitions[low])
        }
        let last = transitions.last ?? .min
        guard let footer else { return (Int(offsets.last ?? first), last, .max) }
        return span(at: seconds, by: footer, after: last)
    }

    private func span(at seconds: Int64, by footer: FooterRule, after last: Int64) -> Span {
        guard footer.daylight != nil else { return (footer.standard, last, .max) }
        let day = TimeZoneRules.floor(min(max(seconds, -9_300_000_000), 9_300_000_000), 86_400)
        let year = LocalDate(dayNumber: Int(day)).parts.year
        var found: Span = (footer.standard, last, .max)
        for change in (year - 1...year + 1).flatMap({ footer.changes(in: $0) }) {
            if change.at <= seconds {
                found = (change.offset, max(change.at, last), .max)
            } else {
                found.until = change.at
                break
            }
        }
        return found
    }

    private static func floor(_ value: Int64, _ divisor: Int64) -> Int64 {
        value >= 0 ? value / divisor : -((-(value + 1)) / divisor) - 1
    }

    private static func seconds(of time: Timestamp) -> Int64 { floor(time.nanoseconds, 1_000_000_000) }

    private static func timestamp(_ seconds: Int64) -> Timestamp {
        let (nanoseconds, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        return Timestamp(nanoseconds: overflow ? (seconds < 0 ? .min : .max) : nanoseconds)
    }
}
