public import EventLoops
public import TimeZones

/// By when events must have arrived to count in a view that closes its days at a fixed local time (ga08).
///
/// An event belongs to its local date in the view's zone. It must be acknowledged before the deadline's time on the next
/// date that exists there: with 04:00, an event of 23:59 has 4 h 1 min, one of 00:00 has 28 h. Where clocks skip that
/// time, the deadline is the first instant after the gap; where it comes twice, the earlier. A date that a zone skipped
/// as a whole (Apia, 2011-12-30) is nobody's next date.
public struct Deadline: Sendable, Equatable {
    /// The view's name, for counters.
    public let name: String
    /// The local time, in seconds after midnight.
    public let secondOfDay: Int
    /// The view's zone.
    public let zone: TimeZoneRules
    /// Events with less than this left go without waiting for the interval (ga09). Default 30 min.
    public let margin: Duration

    /// - Throws: `DeliveryError` with code `invalidDeadline` for a time that is none, or a negative margin.
    public init(
        name: String, secondOfDay: Int = 4 * 3600, zone: TimeZoneRules, margin: Duration = .seconds(1800)
    ) throws(DeliveryError) {
        guard (0..<86_400).contains(secondOfDay) else {
            throw DeliveryError(.invalidDeadline, "deadline \(name): give a time from \"00:00\" to \"23:59\"")
        }
        guard margin >= .zero else {
            throw DeliveryError(.invalidDeadline, "deadline \(name): give a margin such as \"30m\"")
        }
        self.name = name
        self.secondOfDay = secondOfDay
        self.zone = zone
        self.margin = margin
    }

    /// The instant before which an event of that time must be acknowledged.
    public func due(for eventTime: Timestamp) -> Timestamp { due(of: zone.date(at: eventTime)) }

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

    /// The next date that exists in the zone.
    private func next(after date: LocalDate) -> LocalDate {
        let next = date.advanced(by: 1)
        // The midnight of a skipped date is the first instant after the gap, which belongs to another date.
        let found = zone.date(at: zone.instant(of: next, secondOfDay: 0))
        return max(next, found)
    }
}

/// Several deadlines, as they concern what waits in a lane.
struct Deadlines: Sendable, Equatable {
    let all: [Deadline]

    /// When the lane's earliest event comes so near to a deadline that it no longer waits for the interval.
    func atRisk(_ earliest: Timestamp) -> Timestamp? {
        all.map { $0.due(for: earliest) - $0.margin }.min()
    }

    /// Events before this instant go first: those whose deadline is the next one to come (ga09).
    ///
    /// - Returns: nil when the earliest event is not at risk.
    func urgentBefore(_ earliest: Timestamp, at now: Timestamp) -> Timestamp? {
        let risky = all.map { (deadline: $0, due: $0.due(for: earliest)) }.filter { $0.due - $0.deadline.margin <= now }
        return risky.min { $0.due < $1.due }?.deadline.end(ofDayOf: earliest)
    }
}
