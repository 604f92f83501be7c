public import Model

/// `[apps.NAME]`: what holds for one app. What is nil follows the general settings.
public struct AppSettings: Sendable, Equatable {
    /// The name of events that have none.
    public var defaultEventName: String?
    /// The priority of its events, unless a rule or the event says otherwise.
    public var priority: Priority?
    /// Whether its events may call themselves critical; nil for yes, but not in `incoming/`.
    public var mayBeCritical: Bool?
    /// The country of its events.
    public var country: String?
    /// Its version, where the events do not say.
    public var version: String?
    /// Its build, where the events do not say.
    public var build: String?
    /// The destinations of its events; nil for all that take events by default.
    public var destinations: [String]?
    /// Limits of its events.
    public var limits = AppLimitSettings()

    /// An app that follows the general settings.
    public init() {}
}

/// `[apps.NAME.limits]`: limits of one app's events; what is nil follows `[limits]`.
public struct AppLimitSettings: Sendable, Equatable {
    /// Distinct event names in a UTC day.
    public var eventNames: Int?
    /// What happens beyond it.
    public var beyondEventNames: LimitConsequence?
    /// The length of an event's name.
    public var nameLength: Int?
    /// What happens beyond it.
    public var beyondNameLength: LimitConsequence?
    /// Properties an event.
    public var properties: Int?
    /// What happens beyond it.
    public var beyondProperties: LimitConsequence?
    /// The length of a property's key.
    public var propertyKeyLength: Int?
    /// What happens beyond it.
    public var beyondPropertyKeyLength: LimitConsequence?
    /// The length of a property's text.
    public var propertyValueLength: Int?
    /// What happens beyond it.
    public var beyondPropertyValueLength: LimitConsequence?

    /// An app that follows the general limits.
    public init() {}
}

extension LimitSettings {
    /// The limits of one app.
    public func overridden(by app: AppLimitSettings) -> LimitSettings {
        var limits = self
        limits.eventNames = app.eventNames ?? eventNames
        limits.beyondEventNames = app.beyondEventNames ?? beyondEventNames
        limits.nameLength = app.nameLength ?? nameLength
        limits.beyondNameLength = app.beyondNameLength ?? beyondNameLength
        limits.properties = app.properties ?? properties
        limits.beyondProperties = app.beyondProperties ?? beyondProperties
        limits.propertyKeyLength = app.propertyKeyLength ?? propertyKeyLength
        limits.beyondPropertyKeyLength = app.beyondPropertyKeyLength ?? beyondPropertyKeyLength
        limits.propertyValueLength = app.propertyValueLength ?? propertyValueLength
        limits.beyondPropertyValueLength = app.beyondPropertyValueLength ?? beyondPropertyValueLength
        return limits
    }
}

extension AppSettings: SettingsSection {
    static let entries: [Entry<AppSettings>] = [
        .setting(
            "default_event_name", \.defaultEventName, optional: .text(),
            "The name of objects that have none: accepts plain log records, which are quarantined otherwise.",
            example: "\"access\""),
        .setting(
            "priority", \.priority, optional: .choice, "The priority of its events, where neither event nor rule says.",
            example: "\"normal\""),
        .setting(
            "may_be_critical", \.mayBeCritical, optional: .boolean,
            "Whether its events may call themselves critical: by default true, but false for incoming.", example: "true"
        ),
        .setting("country", \.country, optional: .country, "The country of its events.", example: "\"IT\""),
        .setting(
            "version", \.version, optional: .text(), "Its version, where the events do not say.", example: "\"2.1.0\""),
        .setting("build", \.build, optional: .text(), "Its build, where the events do not say.", example: "\"2107\""),
        .setting(
            "destinations", \.destinations, optional: .list(of: .destinationName, unique: true),
            "Where its events go; by default to all destinations with by_default.", example: "[\"main\"]"),
        .section("limits", \.limits, "Limits of its events, as in [limits]."),
    ]
}

extension AppLimitSettings: SettingsSection {
    static let entries: [Entry<AppLimitSettings>] = [
        .setting(
            "event_names", \.eventNames, optional: .count(1...1_000_000, zero: "no limit"), "As in [limits].",
            example: "1000"),
        .setting(
            "beyond_event_names", \.beyondEventNames, optional: .consequence(.refuse, .quarantine, .allow),
            "As in [limits].", example: "\"allow\""),
        .setting(
            "name_length", \.nameLength, optional: .count(1...65_536, zero: "no limit"), "As in [limits].",
            example: "256"),
        .setting(
            "beyond_name_length", \.beyondNameLength, optional: .consequence(.cut, .refuse, .quarantine, .allow),
            "As in [limits].", example: "\"cut\""),
        .setting(
            "properties", \.properties, optional: .count(1...100_000, zero: "no limit"), "As in [limits].",
            example: "0"),
        .setting(
            "beyond_properties", \.beyondProperties, optional: .consequence(.cut, .refuse, .quarantine, .allow),
            "As in [limits].", example: "\"cut\""),
        .setting(
            "property_key_length", \.propertyKeyLength, optional: .count(1...65_536, zero: "no limit"),
            "As in [limits].", example: "125"),
        .setting(
            "beyond_property_key_length", \.beyondPropertyKeyLength,
            optional: .consequence(.cut, .refuse, .quarantine, .allow), "As in [limits].", example: "\"cut\""),
        .setting(
            "property_value_length", \.propertyValueLength, optional: .count(1...1_000_000, zero: "no limit"),
            "As in [limits].", example: "0"),
        .setting(
            "beyond_property_value_length", \.beyondPropertyValueLength,
            optional: .consequence(.cut, .refuse, .quarantine, .allow), "As in [limits].", example: "\"cut\""),
    ]
}
