// TimeZones: the system's zone files: which offset holds at an instant, and which instant a local date
// and time is.
//
// It promises:
// - Right answers for every instant, including those after the last transition in a file.
// - No crash, whatever bytes a file contains.
// - The process's own zone is not touched: libc's `TZ` and `tzset` are global state of the process.
//
// Its parts:
// - TimeZoneRules.swift: the rules of a zone as a value, with all questions that callers ask.
// - TimeZoneLoader.swift: finds the file of a name, and the machine's own zone.
// - TZifReader.swift: parses a zone file (RFC 9636).
// - FooterRule.swift: the rule for the time after a file's last transition, a POSIX `TZ` string.
// - TimeZoneError.swift: the errors.
//
// Its rules:
// - Values only; files are read by the loader alone, when settings are read.
// - Leap seconds are ignored, as in all times of the agent.
// - Zone files are trusted to be right and not to be well-formed: each count is checked before it is
//   used.
//
// Begin with `TimeZoneRules.span` and `instant`.

public import EventLoops

/// The rules of one time zone: a pure value.
///
/// Source: RFC 9636 (TZif), versions 1 to 4.
public struct TimeZoneRules: Sendable, Equatable {
    /// The zone's name, such as `Europe/Rome`.
    public let name: String

    /// Transitions and footer of the zone file.
    private let file: TZifReader.File

    /// Whether local time is UTC at every instant, whatever the zone's name: also `Etc/UTC`, which is what
    /// most servers are set to.
    public let isAlwaysUTC: Bool

    /// UTC, which needs no file.
    public static let utc = TimeZoneRules(name: "UTC", file: TZifReader.File())

    private init(name: String, file: TZifReader.File) {
        self.name = name
        self.file = file
        let footer = file.footer
        isAlwaysUTC =
            file.first == 0 && file.offsets.allSatisfy { $0 == 0 }
            && (footer == nil || footer?.standard == 0 && footer?.daylight == nil)
    }

    /// A rule without transitions, as `TZ` may contain it: `CET-1CEST,M3.5.0,M10.5.0/3`. Nil if the
    /// text is not a rule.
    init?(rule text: String) {
        guard let rule = FooterRule(text.utf8) else { return nil }
        self.init(name: text, file: TZifReader.File(first: Int32(rule.standard), footer: rule))
    }

    /// The rules in a TZif file.
    ///
    /// - Throws: `TimeZoneError` with code `malformed`.
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

    /// The offset at an instant, and the period around the instant in which it does not change.
    ///
    /// - Returns: `from` is included in the period, `until` is not. The ends of `Timestamp`'s range
    ///   mean that there is no change before or after.
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
    /// A local time that is skipped when clocks go forward is the first instant after the gap. A local
    /// time that occurs twice is the earlier one. So each local time is exactly one instant, and a
    /// daily deadline neither fails nor repeats.
    /// - Parameter secondOfDay: 0…86,399.
    public func instant(of date: LocalDate, secondOfDay: Int) -> Timestamp {
        // bounded: as in FooterRule.
        let local = Int64(date.dayNumber) * 86_400 + Int64(secondOfDay)
        // The search starts two days earlier, because no zone is further than that from UTC.
        var span = span(at: local - 2 * 86_400)
        while true {
            let instant = local - Int64(span.offset)
            if instant < span.until {
                return Timestamp(seconds: Int(max(instant, span.from)), nanoseconds: 0)
            }
            span = self.span(at: span.until)
        }
    }

    /// Offset, first and last second (excluded) of a period; in seconds since 1970.
    private typealias Span = (offset: Int, from: Int64, until: Int64)

    /// The period that contains an instant.
    private func span(at seconds: Int64) -> Span {
        // Binary search for the number of transitions at or before the instant.
        var low = 0
        let transitions = file.transitions
        let offsets = file.offsets
        var high = transitions.count
        while low < high {
            let middle = (low + high) / 2
            if transitions[middle] <= seconds {
                low = middle + 1
            } else {
                high = middle
            }
        }
        if low < transitions.count {
            guard low > 0 else { return (Int(file.first), .min, transitions[0]) }
            return (Int(offsets[low - 1]), transitions[low - 1], transitions[low])
        }
        let last = transitions.last ?? .min
        guard let footer = file.footer else { return (Int(offsets.last ?? file.first), last, .max) }
        return span(at: seconds, by: footer, after: last)
    }

    /// The period that contains an instant after the last transition, by the footer's rule.
    private func span(at seconds: Int64, by footer: FooterRule, after last: Int64) -> Span {
        guard footer.daylight != nil else { return (footer.standard, last, .max) }
        // Clamped to the years 1675 to 2264, which cover the range of `Timestamp`: otherwise the
        // arithmetic on years could overflow.
        let day = min(max(seconds, -9_300_000_000), 9_300_000_000).floored(by: 86_400).quotient
        let year = LocalDate(dayNumber: Int(day)).parts.year
        var found: Span = (footer.standard, last, .max)
        // The neighbouring years are needed for periods that extend over the turn of the year, as in
        // the southern hemisphere.
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

    private static func seconds(of time: Timestamp) -> Int64 {
        time.nanoseconds.floored(by: 1_000_000_000).quotient
    }
}
