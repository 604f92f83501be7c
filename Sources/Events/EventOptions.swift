public import Model
public import TextFormats
public import TimeZones

/// How events are read. Plain values that `Agent` makes of the configuration.
public struct EventOptions: Sendable, Equatable {
    /// Settings of apps that have no entry in `apps`.
    public var defaults = AppOptions()
    /// Settings by app. An entry is complete: `defaults` adds nothing to it.
    package var apps: [String: AppOptions] = [:]
    /// Rules that give events a priority. The first that fits counts.
    public var priorityRules: [PriorityRule] = []
    /// Age beyond which events expire; an event of exactly this age is kept. Default: 25 days. Nil: no event
    /// expires.
    public var maxAge: Duration? = .seconds(25 * 86_400)
    package var session = SessionSettings()
    /// Country that an operator has set by command. It counts more than the apps' settings; nil without one.
    public var countryOverride: CountryCode?
    /// Name of the member that holds an address, in the event or in its properties; empty for none.
    public var addressMember = ""
    /// Whether that member is removed from each event after the lookup.
    public var removesAddress = false
    /// Properties of the machine; nil adds no `device`.
    public var device: DeviceText?
    /// The machine's name, which records get; nil adds none.
    public var hostName: String?
    /// Zone of times that do not name one, unless the app's settings have another.
    public var zone = TimeZoneRules.utc

    /// Options with the defaults above.
    public init() {}
}

/// How the lines of one app are read.
public struct AppOptions: Sendable, Equatable {
    /// Whether lines are events, or records of other loggers.
    package var kind = LineKind.event
    /// Whether the lines are entries of the systemd journal, whose message may be text.
    public var isJournal = false
    /// Format in which a container's runtime wraps the lines; nil if they are not wrapped.
    public var format: LineWrapper?
    /// Format of lines of text; nil if the lines are JSON, or are not parsed.
    public var textFormat: TextFormat?
    /// Whether a line that does not match the format goes to the quarantine. If false, it becomes the message
    /// of a record.
    public var quarantinesUnmatched = false
    package var defaultEventName = "log"
    /// Members of a record that may hold its name; empty: its `name`. Here and in the next two lists paths
    /// with dots lead into objects, and the first usable value counts.
    public var nameMembers: [String] = []
    /// Members that may hold the time of a record, or of an event without `timestamp`.
    public var timeMembers = AppOptions.usualTimes
    /// Members that may hold the severity.
    package var levelMembers = Severity.usualMembers
    /// Meaning of a severity that is a number; `auto` decides by the member's name.
    package var levelScale = SeverityScale.auto
    /// Zone of times that do not name one; nil: the zone of the options.
    public var zone: TimeZoneRules?
    /// What happens to lines that are not JSON objects: they are quarantined, or become records `{"message":
    /// …}`.
    public var text = TextHandling.quarantine
    /// Whether bytes that are not UTF-8 become U+FFFD. Nil: in records only. False: the line is quarantined.
    public var repairsUTF8: Bool?
    /// Priority of events that do not name one and fit no rule.
    public var priority = Priority.normal
    /// Whether the app's own `"priority": "critical"` and `"type": "crash"` count. Nil: yes, except for
    /// events from the drop box that everybody may write to.
    public var mayBeCritical: Bool?
    /// Country of events that do not name one; nil leaves it to the look-up of an address.
    public var country: CountryCode?
    /// Events that are further ahead of the clock are quarantined. Default: 3 days.
    public var maxAhead: Duration = .seconds(3 * 86_400)
    package var limits = EventLimits()
    /// Age at which the app's events expire, if it is below that of the options; nil: theirs.
    public var maxAge: Duration?
    /// The app's version, as `app_version` in the device; nil adds none.
    public var version: String?
    /// The app's build, as `app_build` in the device; nil adds none.
    public var build: String?
    /// Whether records get the path of the file that they were read from.
    public var addsFilePath = false

    /// Name of the member with that path: OpenTelemetry's semantic convention.
    static let filePath = Array("log.file.path".utf8)

    /// Members in which common loggers write the time.
    public static let usualTimes = [
        "timestamp", "time", "ts", "@timestamp", "t", "@t", "datetime", "date", "asctime",
        "record.time.timestamp",
        "__REALTIME_TIMESTAMP", "__TIMESTAMP", "instant", "Timestamp", "eventTime", "stageTimestamp",
        "start_time",
        "started_at", "time_iso8601", "timeMillis", "unixTime", "msec", "date_time", "published", "created",
    ]

    /// All paths that the scanner must look for with these settings. `severity` and `version` are looked for
    /// to know whether a record has a severity, and whether it is GELF.
    var paths: [String] {
        ["severity", "version"] + (addsFilePath ? ["log.file.path"] : []) + nameMembers + timeMembers
            + levelMembers
    }

    package init() {}
}
