public import EventLoops
public import Model

/// What became of one line. Small, because there is one for each event: what is wrong is in `EventPass.problem`.
public struct Verdict: Sendable {
    /// What became of it.
    public enum Kind: UInt8, Sendable {
        /// An event: `EventPass.write` appends it.
        case accepted
        /// An event older than `maxAge`: it counts as accepted and at once as expired.
        case expired
        /// `{"type": "data_layer", …}`: no event, a push to the containers' data layer.
        case dataLayer
        /// Not an event; see `EventPass.problem`.
        case quarantined
        /// Beyond a limit whose consequence is `refuse`; see `EventPass.problem`.
        case refused
        /// White space: no event, nothing to count.
        case blank
    }

    /// What became of it.
    public let kind: Kind
    /// How much it matters; for `accepted` and `expired`.
    public let priority: Priority
    /// Its own time, or that of observation if it has none; for `accepted` and `expired`.
    public let eventTime: Timestamp
    /// Whether a session begins with it: `EventPass.writeSessionStart` goes first, into the normal lane.
    public let startsSession: Bool
    /// The offset in the block after the line.
    public let next: Int
}

/// Something that a limit cut.
public struct LimitCut: Sendable, Equatable {
    /// Whose event it was.
    public let app: String
    /// The member: `name`, or a property.
    public let member: String
    /// The limit.
    public let limit: LimitKind
}

/// What was found in a line, and where.
public struct LineFindings: Sendable, Equatable {
    /// The member or path whose time counts; nil where none is usable.
    public var timeMember: String?
    /// How serious it is; nil where it does not say.
    public var level: SeverityLevel?
    /// The member or path that says so.
    public var levelMember: String?
}

/// What is wrong with a line.
public struct Problem: Sendable, Equatable {
    /// Why it lies in quarantine: `refused` for refused lines.
    public let reason: QuarantineRecord.Reason
    /// The limit that it passes, where that is the reason.
    public let limit: LimitKind?
    /// What exactly, for a person; never the content.
    public let detail: String
}

/// What happened to the events that were read; each figure is a counter that grows.
public struct EventCounts: Sendable, Equatable {
    /// Cuts, by the raw value of the limit: one for each name, key or value cut, and for each property left out.
    public var cut = [Int](repeating: 0, count: LimitKind.allCases.count)
    /// One of the latest cuts.
    public var lastCut: LimitCut?
    /// Events beyond a limit that is set to `allow`, by the raw value of the limit.
    public var allowed = [Int](repeating: 0, count: LimitKind.allCases.count)
    /// Events refused by a limit, by the raw value of the limit.
    public var refused = [Int](repeating: 0, count: LimitKind.allCases.count)
    /// Events quarantined by a limit, by the raw value of the limit.
    public var quarantined = [Int](repeating: 0, count: LimitKind.allCases.count)
    /// Properties merged into an earlier one of the same name.
    public var merged = 0
    /// Members that the agent reads and that a later one of the same name replaced.
    public var repeated = 0
    /// Priorities that are neither `normal` nor `critical`; such an event is normal.
    public var unknownPriorities = 0
    /// Events that called themselves critical and may not be.
    public var criticalDenied = 0
    /// Timestamps that cannot be read: the event keeps the text, and counts from its observation. An `observed_at` that
    /// cannot be read is taken out.
    public var unreadableTimes = 0
    /// Countries that are none; the member is taken out.
    public var unknownCountries = 0
    /// Sessions begun, by the raw value of `SessionMode`.
    public var sessions: [String: Int] = [:]
    /// `start_session` events that began none, because sessions are automatic or off, or the id they gave cannot be used.
    public var ignoredSessionStarts = 0
    /// Addresses whose country was not found.
    public var unknownAddresses = 0
    /// An `id` or `session_id` that is neither a number nor a text with something in it; the member is taken out.
    public var unusableIDs = 0
    /// Records, of all the lines that were judged.
    public var records = 0
    /// Records in which no usable time was found: theirs is when they were read.
    public var recordsWithoutTime = 0
    /// Names that are no text, or an empty one: data of a record, whose name is the app's default.
    public var unusableNames = 0
    /// Lines with bytes that are not UTF-8, which became U+FFFD.
    public var repairedLines = 0
    /// Lines of text that became the `message` of a record.
    public var wrappedLines = 0
    /// `app` members that named another app and were replaced.
    public var replacedApps = 0

    package init() {}

    /// Adds those of another pass.
    public mutating func add(_ other: EventCounts) {
        for list in [\EventCounts.cut, \.allowed, \.refused, \.quarantined] {
            for index in other[keyPath: list].indices { self[keyPath: list][index] += other[keyPath: list][index] }
        }
        for figure in [
            \EventCounts.merged, \.repeated, \.unknownPriorities, \.criticalDenied, \.unreadableTimes,
            \.unknownCountries,
            \.ignoredSessionStarts, \.unknownAddresses, \.unusableIDs, \.replacedApps, \.records, \.recordsWithoutTime,
            \.unusableNames, \.repairedLines, \.wrappedLines,
        ] { self[keyPath: figure] += other[keyPath: figure] }
        lastCut = lastCut ?? other.lastCut
        sessions.merge(other.sessions, uniquingKeysWith: +)
    }

    /// What events said that was corrected or passed over, by kind: the words are metric labels.
    public var oddities: [(kind: String, count: Int)] {
        [
            ("unknown_priority", unknownPriorities), ("critical_denied", criticalDenied),
            ("unreadable_time", unreadableTimes), ("unknown_country", unknownCountries),
            ("unknown_address", unknownAddresses), ("replaced_app", replacedApps), ("repeated_member", repeated),
            ("merged_property", merged), ("ignored_session_start", ignoredSessionStarts), ("unusable_id", unusableIDs),
            ("no_time", recordsWithoutTime), ("unusable_name", unusableNames), ("repaired_utf8", repairedLines),
            ("wrapped_text", wrappedLines),
        ]
    }
}

/// Different names of an app's events within a day.
public struct NameCount: Sendable, Equatable {
    /// The UTC day, counted from 1970.
    public let day: Int64
    /// How many.
    public let names: Int
}
