public import Model
public import TimeZones

/// How events are read: plain values, mapped from the configuration.
public struct EventOptions: Sendable, Equatable {
    /// What holds for apps that have no settings of their own.
    public var defaults = AppSettings()
    package var apps: [String: AppSettings] = [:]
    /// Rules that give events a priority; the first that fits counts.
    public var priorityRules: [PriorityRule] = []
    /// Older events expire; exactly this old is kept. Default 25 days; nil keeps them all.
    public var maxAge: Duration? = .seconds(25 * 86_400)
    package var session = SessionSettings()
    /// The country that a person has set; it counts more than any rule.
    public var countryOverride: CountryCode?
    /// The member that holds an address, at the top or in the properties; empty for none.
    public var addressMember = ""
    /// Whether that member is taken out of each event, after the look-up.
    public var removesAddress = false
    /// What is known of the machine; nil adds no `device`.
    public var device: DeviceText?
    /// The machine's name, which records carry; nil adds none.
    public var hostName: String?
    /// The zone of times that say none.
    public var zone = TimeZoneRules.utc

    /// The usual ones.
    public init() {}
}

/// How one app's lines are read.
public struct AppSettings: Sendable, Equatable {
    package var kind = LineKind.event
    /// Whether they are entries of a journal, whose message may be text.
    public var isJournal = false
    /// What they are wrapped in; nil for nothing.
    public var format: LineFormat?
    package var defaultEventName = "log"
    /// Where a record's name is; empty: its `name`. Like the next two members or paths with dots, the first usable one.
    public var nameMembers: [String] = []
    /// Where the time of a record is, and of an event without `timestamp`.
    public var timeMembers = AppSettings.usualTimes
    package var levelMembers = Severity.usualMembers
    package var levelScale = SeverityScale.auto
    /// The zone of times that say none; nil for the machine's.
    public var zone: TimeZoneRules?
    /// What happens to lines that are not JSON objects: a record is `{"message": …}`.
    public var text = TextHandling.quarantine
    /// Whether bytes that are not UTF-8 become U+FFFD; nil does so in records alone. False quarantines the line.
    public var repairsUTF8: Bool?
    /// The priority of events that neither name one nor fit a rule.
    public var priority = Priority.normal
    /// Whether the app's own `"priority": "critical"` (and `"type": "crash"`) counts. Nil means: yes, but not for what comes
    /// through the drop box that everybody may write to.
    public var mayBeCritical: Bool?
    /// The country of events that name none; nil leaves it to the look-up of an address, if there is one.
    public var country: CountryCode?
    /// Events further ahead than this are quarantined. Default 3 days.
    public var maxAhead: Duration = .seconds(3 * 86_400)
    package var limits = EventLimits()
    /// Its version, where its events do not say one.
    public var version: String?
    /// Its build, where its events do not say one.
    public var build: String?

    /// The members in which loggers write the time.
    public static let usualTimes = [
        "timestamp", "time", "ts", "@timestamp", "t", "@t", "datetime", "date", "asctime", "record.time.timestamp",
        "__REALTIME_TIMESTAMP", "__TIMESTAMP",
    ]

    var paths: [String] { ["severity"] + nameMembers + timeMembers + levelMembers }

    package init() {}
}
