public import Model

/// How events are read: plain values, mapped from the configuration.
public struct EventOptions: Sendable, Equatable {
    /// What holds for apps that have no settings of their own.
    public var defaults = AppSettings()
    /// The settings of the apps that have some, by name.
    public var apps: [String: AppSettings] = [:]
    /// Rules that give events a priority; the first that fits counts.
    public var priorityRules: [PriorityRule] = []
    /// Older events expire; exactly this old is kept. Default 25 days; nil keeps them all.
    public var maxAge: Duration? = .seconds(25 * 86_400)
    /// Events further ahead than this are quarantined. Default 3 days.
    public var maxAhead: Duration = .seconds(3 * 86_400)
    /// How sessions are made.
    public var session = SessionOptions()
    /// The country that a person has set; it counts more than any rule.
    public var countryOverride: CountryCode?
    /// The member that holds an address, at the top or in the properties; empty for none.
    public var addressMember = ""
    /// Whether that member is taken out of each event, after the look-up.
    public var removesAddress = false
    /// What is known of the machine; nil adds no `device`.
    public var device: DeviceText?
    /// How deeply an event may be nested, 1…64; default 64.
    public var maxDepth = 64

    /// The defaults.
    public init() {}
}

/// How one app's events are read.
public struct AppSettings: Sendable, Equatable {
    /// The name of events that have none; nil quarantines them.
    public var defaultEventName: String?
    /// The priority of events that neither name one nor fit a rule.
    public var priority = Priority.normal
    /// Whether the app's own `"priority": "critical"` (and `"type": "crash"`) counts. Nil means: yes, but not for what comes
    /// through the drop box that everybody may write to.
    public var mayBeCritical: Bool?
    /// Whether the app's own `app` member counts. Default false: the directory says whose an event is, and nobody can write
    /// as another app; a member that says otherwise is replaced, and counted.
    public var mayNameApp = false
    /// The country of events that name none; nil leaves it to the look-up of an address, if there is one.
    public var country: CountryCode?
    /// What happens to events that are too long or too rich.
    public var limits = EventLimits()
    /// Its version, where its events do not say one.
    public var version: String?
    /// Its build, where its events do not say one.
    public var build: String?

    /// The defaults.
    public init() {}
}

/// Gives a priority to the events it fits (ac26).
public struct PriorityRule: Sendable, Equatable {
    /// The app; nil fits every one.
    public var app: String?
    /// The event's name; a `*` at its end fits every name that begins so; nil fits every one.
    public var event: String?
    /// The priority.
    public var priority: Priority
    /// Whether it counts more than what the event says of itself. Default false.
    public var force: Bool

    /// A rule of known parts.
    public init(app: String? = nil, event: String? = nil, priority: Priority, force: Bool = false) {
        self.app = app
        self.event = event
        self.priority = priority
        self.force = force
    }
}
