public import EventLoops
public import Model
public import TimeZones

/// When events must have arrived to count in a view that closes its days at a fixed local time (ga08).
///
/// An event belongs to its local date in the view's zone. It must be acknowledged before the deadline's time on the next
/// date that exists there: with 04:00, an event of 23:59 has 4 h 1 min, one of 00:00 has 28 h. Where clocks skip that
/// time, the deadline is the first instant after the gap; where it comes twice, the earlier. A date that a zone skipped
/// as a whole (Apia, 2011-12-30) is no date's next date.
public struct Deadline: Sendable, Equatable {
    /// The view's name, for counters.
    public let name: String
    /// The local time, in seconds after midnight.
    public let secondOfDay: Int
    package let zone: TimeZoneRules
    /// Events with less than this left go without waiting for the interval (ga09). Default 30 min.
    public let margin: Duration
    /// The apps whose events it concerns; empty for all.
    public let apps: Set<String>

    /// A deadline; the bounds of its values are those of the settings.
    public init(
        name: String, secondOfDay: Int = 4 * 3600, zone: TimeZoneRules, margin: Duration = .seconds(1800),
        apps: Set<String> = []
    ) {
        (self.name, self.secondOfDay, self.zone) = (name, secondOfDay, zone)
        (self.margin, self.apps) = (margin, apps)
    }

    /// The instant before which an event of that time must be acknowledged.
    public func due(for eventTime: Timestamp) -> Timestamp { due(of: zone.date(at: eventTime)) }

    /// Whether it concerns stored events, by the names that were stored with them.
    public func concerns(_ names: DeadlineNames?) -> Bool { apps.isEmpty || names?.contains(name) ?? false }

    /// The first instant whose events have a later deadline than events of that time.
    func end(ofDayOf eventTime: Timestamp) -> Timestamp {
        zone.instant(of: next(after: zone.date(at: eventTime)), secondOfDay: 0)
    }

    /// Events before this instant are late when they are acknowledged now.
    func lateBefore(at now: Timestamp) -> Timestamp {
        // Two dates back every deadline is over, whatever the clocks did.
        var date = zone.date(at: now).advanced(by: -3)
        while due(of: date) <= now { date = next(after: date) }
        return zone.instant(of: date, secondOfDay: 0)
    }

    private func due(of date: LocalDate) -> Timestamp {
        zone.instant(of: next(after: date), secondOfDay: secondOfDay)
    }

    private func next(after date: LocalDate) -> LocalDate {
        let next = date.advanced(by: 1)
        // The midnight of a skipped date is the first instant after the gap, which belongs to another date.
        let found = zone.date(at: zone.instant(of: next, secondOfDay: 0))
        return max(next, found)
    }
}

/// Several deadlines, as they concern what waits in a lane.
extension [Deadline] {
    /// When the first of the lane's events comes so near to its deadline that it no longer waits for the interval.
    func atRisk(_ lane: LaneSummary) -> Timestamp? {
        next(in: lane).map { $0.due - $0.deadline.margin }.min()
    }

    /// Events before this instant go first: those whose deadline is the next one to come (ga09).
    ///
    /// - Returns: also the deadline's name, where it concerns some apps only; nil when no event is at risk.
    func urgent(in lane: LaneSummary, at now: Timestamp) -> (before: Timestamp, deadline: String?)? {
        let risky = next(in: lane).filter { $0.due - $0.deadline.margin <= now }
        guard let first = risky.min(by: { $0.due < $1.due }) else { return nil }
        return (first.deadline.end(ofDayOf: first.earliest), first.deadline.apps.isEmpty ? nil : first.deadline.name)
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
