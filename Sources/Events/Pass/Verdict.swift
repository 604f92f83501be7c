public import EventLoops
public import Model

/// What happened to one line. Small, because there is one for each event: what is wrong is in `EventPass.problem`.
public struct Verdict: Sendable {
    /// What happened to it.
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

    package let kind: Kind
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
    package let app: String
    /// The member: `name`, or a property.
    public let member: String
    package let limit: LimitKind
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
    /// Why it is in quarantine: `refused` for refused lines.
    public let reason: QuarantineRecord.Reason
    /// The limit that it passes, where that is the reason.
    public let limit: LimitKind?
    /// What exactly, for a person; never the content.
    public let detail: String
}

/// What was corrected or ignored in an event or a line. Closed, because each is a metric label.
public enum Oddity: String, Sendable, CaseIterable {
    /// A priority that is neither `normal` nor `critical`; such an event is normal.
    case unknownPriority = "unknown_priority"
    /// An event that called itself critical and may not be.
    case criticalDenied = "critical_denied"
    /// A timestamp that cannot be read stays, and the event counts from its observation; such an `observed_at` goes.
    case unreadableTime = "unreadable_time"
    /// A country that is none; the member is taken out.
    case unknownCountry = "unknown_country"
    case unknownAddress = "unknown_address"
    /// An `app` member that named another app and was replaced.
    case replacedApp = "replaced_app"
    /// A member that the agent reads and that a later one of the same name replaced.
    case repeatedMember = "repeated_member"
    /// A property merged into an earlier one of the same name.
    case mergedProperty = "merged_property"
    /// A `start_session` event that began none, because sessions are automatic or off, or the id it gave cannot be used.
    case ignoredSessionStart = "ignored_session_start"
    /// An `id` or `session_id` that is neither a number nor a text with something in it; the member is taken out.
    case unusableID = "unusable_id"
    /// A record in which no usable time was found: its time is when it was read.
    case noTime = "no_time"
    /// A name that is no text, or an empty one: data of a record, whose name is the app's default.
    case unusableName = "unusable_name"
    /// A line with bytes that are not UTF-8, which became U+FFFD.
    case repairedUTF8 = "repaired_utf8"
    /// A line of text that became the `message` of a record.
    case wrappedText = "wrapped_text"
}

/// What happened to the events that were read; each figure is a counter that never decreases.
public struct EventCounts: Sendable, Equatable {
    /// Events beyond a limit, by what happened to them; of cuts one for each name, key or value cut, and for each property left out.
    public var limited: [LimitConsequence: [LimitKind: Int]] = [:]
    /// One of the latest cuts.
    public var lastCut: LimitCut?
    /// What was corrected or passed over.
    public var oddities: [Oddity: Int] = [:]
    /// Sessions begun, by the raw value of `SessionMode`.
    public var sessions: [String: Int] = [:]
    /// Records, of all the lines that were judged.
    public var records = 0

    package init() {}

    /// Of how many events something was corrected or passed over.
    public subscript(_ oddity: Oddity) -> Int {
        get { oddities[oddity] ?? 0 }
        set { oddities[oddity] = newValue }
    }

    /// How often a limit had that consequence.
    public subscript(_ consequence: LimitConsequence, _ kind: LimitKind) -> Int {
        get { limited[consequence]?[kind] ?? 0 }
        set { limited[consequence, default: [:]][kind] = newValue }
    }

    package var cuts: Int { limited[.cut, default: [:]].values.reduce(0, +) }

    /// Adds those of another pass.
    public mutating func add(_ other: EventCounts) {
        limited.merge(other.limited) { $0.merging($1, uniquingKeysWith: +) }
        lastCut = lastCut ?? other.lastCut
        oddities.merge(other.oddities, uniquingKeysWith: +)
        sessions.merge(other.sessions, uniquingKeysWith: +)
        records += other.records
    }
}

/// Different names of an app's events within a day.
public struct NameCount: Sendable, Equatable {
    /// The UTC day, counted from 1970.
    public let day: Int64
    package let names: Int
}
