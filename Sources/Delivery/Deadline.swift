public import EventLoops
public import Model
public import TimeZones

/// When events must have arrived to count in a view that closes each day at a fixed local time.
///
/// An event belongs to its local date in the view's zone, and must be acknowledged before the deadline's time
/// on the next existing date. With 04:00, an event of 23:59 has 4 h 1 min, one of 00:00 has 28 h. If the
/// clocks skip that time, the deadline is the first instant after the gap; if it comes twice, the earlier
/// instant. A date that a zone skipped as a whole (Apia, 2011-12-30) is not a next date.
public struct Deadline: Sendable, Equatable {
    /// Name of the view, for counters.
    public let name: String
    /// Local time of the deadline, in seconds after midnight.
    public let secondOfDay: Int
    /// Rules of the view's time zone.
    package let zone: TimeZoneRules
    /// Events with less than this time left are sent without waiting for the interval. Default 30 min.
    public let margin: Duration
    /// Apps whose events the deadline concerns; empty for all.
    public let apps: Set<String>

    /// A deadline. Values are not checked here; the settings bound them.
    public init(
        name: String, secondOfDay: Int = 4 * 3600, zone: TimeZoneRules, margin: Duration = .seconds(1800),
        apps: Set<String> = []
    ) {
        self.name = name
        self.secondOfDay = secondOfDay
        self.zone = zone
        self.margin = margin
        self.apps = apps
    }

    /// The instant before which an event of the given time must be acknowledged.
    public func due(for eventTime: Timestamp) -> Timestamp { due(of: zone.date(at: eventTime)) }

    /// Whether the deadline concerns stored events; `names` are the deadlines that were stored with them.
    public func concerns(_ names: DeadlineNames?) -> Bool { apps.isEmpty || names?.contains(name) ?? false }

    /// The first instant whose events have a later deadline than events of the given time.
    func end(ofDayOf eventTime: Timestamp) -> Timestamp {
        zone.instant(of: next(after: zone.date(at: eventTime)), secondOfDay: 0)
    }

    /// Events from before this instant are late if they are acknowledged now.
    func lateBefore(at now: Timestamp) -> Timestamp {
        // Start far enough back that the deadline has certainly passed, whatever the clocks did: the deadline
        // of a date is on the next existing date, and a zone may skip one.
        var date = zone.date(at: now).advanced(by: -3)
        while due(of: date) <= now { date = next(after: date) }
        return zone.instant(of: date, secondOfDay: 0)
    }

    private func due(of date: LocalDate) -> Timestamp {
        zone.instant(of: next(after: date), secondOfDay: secondOfDay)
    }

    /// The next existing date.
    private func next(after date: LocalDate) -> LocalDate {
        let next = date.advanced(by: 1)
        // The midnight of a skipped date is the first instant after the gap, which has a later date.
        let found = zone.date(at: zone.instant(of: next, secondOfDay: 0))
        return max(next, found)
    }
}

/// Several deadlines, applied to the summary of a lane.
extension [Deadline] {
    /// When an event of the lane comes so close to its deadline that it no longer waits for the interval.
    func atRisk(_ lane: LaneSummary) -> Timestamp? {
        next(in: lane).map { $0.due - $0.deadline.margin }.min()
    }

    /// The events at risk with the earliest deadline; they are sent before all others of the lane.
    ///
    /// - Returns: the instant before which those events were made, and the deadline's name if it concerns
    ///   some apps only; nil if no event is at risk.
    func urgent(in lane: LaneSummary, at now: Timestamp) -> (before: Timestamp, deadline: String?)? {
        let risky = next(in: lane).filter { $0.due - $0.deadline.margin <= now }
        guard let first = risky.min(by: { $0.due < $1.due }) else { return nil }
        return (
            first.deadline.end(ofDayOf: first.earliest),
            first.deadline.apps.isEmpty ? nil : first.deadline.name
        )
    }

    /// Each deadline that concerns anything in the lane, with the earliest event that it concerns.
    private func next(in lane: LaneSummary) -> [(deadline: Deadline, earliest: Timestamp, due: Timestamp)] {
        compactMap { deadline in
            let earliest =
                deadline.apps.isEmpty
                ? lane.earliestEventTime
                : lane.earliestByDeadlines.filter { deadline.concerns($0.key) }.map(\.value).min()
            return earliest.map { (deadline, $0, deadline.due(for: $0)) }
        }
    }
}
