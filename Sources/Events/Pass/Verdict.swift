public import EventLoops
public import Model
public import TextFormats

/// What happened to one line. A small value, because there is one for each event: what is wrong with a line
/// is in `EventPass.problem`.
public struct Verdict: Sendable {
    /// The outcome for the line.
    public enum Kind: UInt8, Sendable {
        /// An event or a record: `EventPass.write` appends it.
        case accepted
        /// An event older than `maxAge`: it counts as accepted and, at once, as expired.
        case expired
        /// A push to the containers' data layer, `{"type": "data_layer", …}`; not an event.
        case dataLayer
        /// Not an event, for the reason in `EventPass.problem`.
        case quarantined
        /// An event beyond a limit whose consequence is `refuse`.
        case refused
        /// White space only; nothing to count.
        case blank
    }

    package let kind: Kind
    /// The event's priority; meaningful for `accepted` and `expired`.
    public let priority: Priority
    /// The event's own time, or the time of its observation if it has none; meaningful for `accepted` and
    /// `expired`.
    public let eventTime: Timestamp
    /// Whether a session begins with the event. `EventPass.writeSessionStart` must then be called before
    /// `write`.
    public let startsSession: Bool
    /// The offset in the block after the line.
    public let next: Int
}

/// A cut by a limit, for the log.
public struct LimitCut: Sendable, Equatable {
    package let app: String
    /// The member that was cut: `name`, or `properties.` with a name that is safe to log.
    public let member: String
    package let limit: LimitKind
}

/// What was found in a line, and in which members.
public struct LineFindings: Sendable, Equatable {
    /// The member or path whose time counts; nil if no time is usable.
    public var timeMember: String?
    /// The severity; nil if the line has none that is known.
    public var level: SeverityLevel?
    /// The member or path that holds the severity.
    public var levelMember: String?
}

/// What is wrong with a line, for the quarantine.
public struct Problem: Sendable, Equatable {
    /// Why the line is in quarantine; `refused` for refused lines.
    public let reason: QuarantineRecord.Reason
    /// The limit that the event passes, if that is the reason.
    public let limit: LimitKind?
    /// One sentence for a person; never the line's content.
    public let detail: String

    /// A text must not leave, because tags could not find in it what they hide.
    static let withheld = Problem(
        reason: .unredactable, limit: nil,
        detail: "text that may contain members, some of which containers hide")
}

/// What was corrected or ignored in an event or a line. A closed list, because each case is the value of a
/// metric's label.
public enum Oddity: String, Sendable, CaseIterable {
    /// A priority that is neither `normal` nor `critical`; such an event is normal.
    case unknownPriority = "unknown_priority"
    /// An event that called itself critical although its app may not send critical events.
    case criticalDenied = "critical_denied"
    /// A time that cannot be read. A `timestamp` stays in the event, which counts from its observation; an
    /// `observed_at` is removed.
    case unreadableTime = "unreadable_time"
    /// A country that ISO 3166-1 does not have; the member is removed.
    case unknownCountry = "unknown_country"
    /// An address for which the database has no country.
    case unknownAddress = "unknown_address"
    /// An `app` member that named another app and was replaced.
    case replacedApp = "replaced_app"
    /// A member that the agent reads and that a later one of the same name replaced.
    case repeatedMember = "repeated_member"
    /// A property merged into an earlier one of the same name.
    case mergedProperty = "merged_property"
    /// A `start_session` event that began no session: sessions are automatic, or its `session_id` cannot be
    /// used.
    case ignoredSessionStart = "ignored_session_start"
    /// An `id` or `session_id` that is neither a number nor a text that is not empty; the member is taken
    /// out.
    case unusableID = "unusable_id"
    /// A record without a usable time: it counts from its observation.
    case noTime = "no_time"
    /// A `name` that is not a text, or is empty. It is data of a record, whose name is the app's default.
    case unusableName = "unusable_name"
    /// A line with bytes that are not UTF-8, which became U+FFFD.
    case repairedUTF8 = "repaired_utf8"
    /// A line of text that became the `message` of a record.
    case wrappedText = "wrapped_text"

    /// Index of the case in the order of declaration, which is how the compiler numbers cases without
    /// associated values.
    @inline(__always) var index: Int { Int(unsafeBitCast(self, to: UInt8.self)) }
}

/// What happened to the events that were read. Each figure is a counter that never decreases.
public struct EventCounts: Sendable, Equatable {
    /// Events beyond a limit, by consequence and limit. For `cut` it counts each name, key and value that was
    /// cut and each property left out.
    public var limited: [LimitConsequence: [LimitKind: Int]] = [:]
    /// One of the latest cuts.
    public var lastCut: LimitCut?
    /// Counts by `Oddity.index`. An array, because a dictionary would hash for each line of text several
    /// times.
    private(set) var oddities = [Int](repeating: 0, count: Oddity.allCases.count)
    /// Sessions that have begun, by the raw value of `SessionMode`.
    public var sessions: [String: Int] = [:]
    /// Records among the lines that were judged.
    public var records = 0
    /// Lines of text that a format has parsed, of all apps.
    public var parsed = 0
    /// Lines that did not match their app's settings, by app.
    public var texts: [String: TextCounts] = [:]

    package init() {}

    /// Number of events or lines with this oddity.
    public subscript(_ oddity: Oddity) -> Int {
        get { oddities[oddity.index] }
        set { oddities[oddity.index] = newValue }
    }

    /// Number of events for which a limit had this consequence.
    public subscript(_ consequence: LimitConsequence, _ kind: LimitKind) -> Int {
        get { limited[consequence]?[kind] ?? 0 }
        set { limited[consequence, default: [:]][kind] = newValue }
    }

    /// Number of cuts by all limits.
    package var cuts: Int { limited[.cut, default: [:]].values.reduce(0, +) }

    /// Adds the counts of another pass.
    public mutating func add(_ other: EventCounts) {
        limited.merge(other.limited) { $0.merging($1, uniquingKeysWith: +) }
        lastCut = lastCut ?? other.lastCut
        for (index, count) in other.oddities.enumerated() { oddities[index] += count }
        sessions.merge(other.sessions, uniquingKeysWith: +)
        records += other.records
        parsed += other.parsed
        for (app, counts) in other.texts { texts[app, default: TextCounts()].add(counts) }
    }

    /// Takes counts away that were added before.
    public mutating func remove(_ other: EventCounts) {
        limited.merge(other.limited) { $0.merging($1, uniquingKeysWith: -) }
        for (index, count) in other.oddities.enumerated() { oddities[index] -= count }
        sessions.merge(other.sessions, uniquingKeysWith: -)
        records -= other.records
        parsed -= other.parsed
        for (app, counts) in other.texts {
            texts[app]?.notParsed -= counts.notParsed
            texts[app]?.brokenJSON -= counts.brokenJSON
        }
    }
}

/// Counts of an app's lines that were not what its settings say.
public struct TextCounts: Sendable, Equatable {
    /// Lines that do not match the format which `parse` or `pattern` names.
    public var notParsed = 0
    /// Lines that begin with `{` and are not JSON, in an app whose lines are JSON.
    public var brokenJSON = 0
    /// Where the last such line stopped matching the format.
    public var last: TextFailure?

    package init() {}

    mutating func add(_ other: TextCounts) {
        notParsed += other.notParsed
        brokenJSON += other.brokenJSON
        last = other.last ?? last
    }
}

/// Number of different names of an app's events in a day.
public struct NameCount: Sendable, Equatable {
    /// The UTC day, counted from 1970.
    public let day: Int64
    package let names: Int
}
