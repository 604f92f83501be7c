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

    private let file: TZifReader.File

    /// UTC.
    public static let utc = TimeZoneRules(name: "UTC", file: TZifReader.File())

    private init(name: String, file: TZifReader.File) {
        self.name = name
        self.file = file
    }

    /// A rule for all times, as `TZ` may have one: `CET-1CEST,M3.5.0,M10.5.0/3`; nil when it is none.
    init?(rule text: String) {
        guard let rule = FooterRule(text.utf8) else { return nil }
        self.init(name: text, file: TZifReader.File(first: Int32(rule.standard), footer: rule))
    }

    /// The rules that a TZif file holds; throws `malformed`.
    public init(name: String, tzif bytes: [UInt8]) throws(TimeZoneError) {
        var reader = TZifReader(bytes: bytes)
        guard let file = reader.read() else {
            throw TimeZoneError(
                .malformed, "the file of time zone \(name) is damaged; install the package tzdata again")
        }
        self.init(name: name, file: file)
    }

    /// How far local time is ahead of UTC at an instant, in seconds.
    public func offset(at time: Timestamp) -> Int { span(at: time).offset }

    /// The offset at an instant, and the time around it in which it holds without a change.
    ///
    /// - Returns: `from` is included, `until` is not; the ends of what `Timestamp` can say stand for "always".
    public func span(at time: Timestamp) -> (offset: Int, from: Timestamp, until: Timestamp) {
        let found = span(at: TimeZoneRules.seconds(of: time))
        return (
            found.offset, Timestamp(seconds: Int(found.from), nanoseconds: 0),
            Timestamp(seconds: Int(found.until), nanoseconds: 0)
        )
    }

    /// The local date at an instant.
    public func date(at time: Timestamp) -> LocalDate {
        let local = TimeZoneRules.seconds(of: time) + Int64(offset(at: time))
        return LocalDate(dayNumber: Int(local.floored(by: 86_400).quotient))
    }

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
            if instant < span.until { return Timestamp(seconds: Int(max(instant, span.from)), nanoseconds: 0) }
            span = self.span(at: span.until)
        }
    }

    private typealias Span = (offset: Int, from: Int64, until: Int64)

    private func span(at seconds: Int64) -> Span {
        // The number of transitions at or before the instant.
        var low = 0
        let (transitions, offsets) = (file.transitions, file.offsets)
        var high = transitions.count
        while low < high {
            let middle = (low + high) / 2
            if transitions[middle] <= seconds { low = middle + 1 } else { high = middle }
        }
        if low < transitions.count {
            guard low > 0 else { return (Int(file.first), .min, transitions[0]) }
            return (Int(offsets[low - 1]), transitions[low - 1], transitions[low])
        }
        let last = transitions.last ?? .min
        guard let footer = file.footer else { return (Int(offsets.last ?? file.first), last, .max) }
        return span(at: seconds, by: footer, after: last)
    }

    private func span(at seconds: Int64, by footer: FooterRule, after last: Int64) -> Span {
        guard footer.daylight != nil else { return (footer.standard, last, .max) }
        let day = min(max(seconds, -9_300_000_000), 9_300_000_000).floored(by: 86_400).quotient
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

    private static func seconds(of time: Timestamp) -> Int64 { time.nanoseconds.floored(by: 1_000_000_000).quotient }
}
