package import Model

/// `[dead_letters]`: events that a destination rejected permanently.
public struct DeadLetterSettings: SettingsSection {
    /// Most bytes that are kept, 1 MiB.
    package var maxSize = 1 << 20

    static let entries: [Entry<DeadLetterSettings>] = [
        .setting(
            "max_size", \.maxSize, .size(64 << 10...1 << 40),
            "How much is kept; the app that has most gives up its oldest first, counted. Raise it to have "
                + "time to send them again."
        )
    ]
}

/// A service whose limits can be set with one word.
public enum LimitPreset: String, Sendable, CaseIterable {
    /// Limits of App Center: 200 event names, 256 characters a name, 20 properties, 125 characters a key or
    /// text.
    case appCenter = "app_center"
}

/// `[limits]`, and `[apps.NAME.limits]`, where nil follows `[limits]`. By default nothing is limited; 0 turns
/// a limit off.
public struct LimitSettings: SettingsSection {
    /// A service whose limits apply where no other value is set.
    package var like: LimitPreset?
    /// Distinct names of events of an app in a day (UTC).
    package var eventNames = LimitSetting()
    /// Length of an event's name in UTF-16 code units, the unit in which App Center counts characters.
    package var nameLength = LimitSetting()
    /// Properties of an event.
    package var properties = LimitSetting()
    /// Length of a property's key in UTF-16 code units.
    package var propertyKeyLength = LimitSetting()
    /// Length of a property's text in UTF-16 code units.
    package var propertyValueLength = LimitSetting()
    /// How far in the future an event's time may be; nil is 3 days.
    package var maxTimeAhead: Duration?

    /// These limits with those of an app over them.
    public func overridden(by own: LimitSettings) -> LimitSettings {
        LimitSettings(
            like: own.like ?? like, eventNames: eventNames.overridden(by: own.eventNames),
            nameLength: nameLength.overridden(by: own.nameLength),
            properties: properties.overridden(by: own.properties),
            propertyKeyLength: propertyKeyLength.overridden(by: own.propertyKeyLength),
            propertyValueLength: propertyValueLength.overridden(by: own.propertyValueLength),
            maxTimeAhead: own.maxTimeAhead ?? maxTimeAhead)
    }

    static let entries: [Entry<LimitSettings>] =
        limitEntries + [
            old(
                "event_names", \.eventNames.beyond, LimitConsequence.settingType(.refuse, .quarantine, .allow)
            ),
            old("name_length", \.nameLength.beyond), old("properties", \.properties.beyond),
            old("property_key_length", \.propertyKeyLength.beyond),
            old("property_value_length", \.propertyValueLength.beyond),
        ]

    /// The row of an old key, `beyond_NAME`.
    private static func old(
        _ name: String,
        _ place: @autoclosure @escaping @Sendable () -> Entry<LimitSettings>.Place<LimitConsequence?>,
        _ type: ValueType<LimitConsequence> = LimitConsequence.settingType(.cut, .refuse, .quarantine, .allow)
    ) -> Entry<LimitSettings> {
        .setting("beyond_\(name)", place(), optional: type, "Now \(name).beyond.")
            .renamed(to: "\(name).beyond")
    }

    private static let limitEntries: [Entry<LimitSettings>] = [
        .setting(
            "like", \.like, optional: .choice,
            "Limits of a service: 200 names, of 256 characters; 20 properties; keys and texts of 125.",
            example: "\"app_center\""),
        .pair(
            "event_names",
            .init("max", \.eventNames.value, optional: .count(1...1_000_000, zero: "no limit")),
            .init(
                "beyond", \.eventNames.beyond,
                optional: LimitConsequence.settingType(.refuse, .quarantine, .allow)),
            "Distinct event names an app in a UTC day. An event with another one is refused by default.",
            example: "{ max = 200, beyond = \"quarantine\" }"),
        .pair(
            "name_length", .init("max", \.nameLength.value, optional: .count(1...65_536, zero: "no limit")),
            .init(
                "beyond", \.nameLength.beyond,
                optional: LimitConsequence.settingType(.cut, .refuse, .quarantine, .allow)),
            "The length of an event's name, in UTF-16 code units. A longer one is cut by default.",
            example: "{ max = 256, beyond = \"refuse\" }"),
        .pair(
            "properties", .init("max", \.properties.value, optional: .count(1...100_000, zero: "no limit")),
            .init(
                "beyond", \.properties.beyond,
                optional: LimitConsequence.settingType(.cut, .refuse, .quarantine, .allow)),
            "Properties an event. cut, the default, keeps the first ones, in the order of the event.",
            example: "20"),
        .pair(
            "property_key_length",
            .init("max", \.propertyKeyLength.value, optional: .count(1...65_536, zero: "no limit")),
            .init(
                "beyond", \.propertyKeyLength.beyond,
                optional: LimitConsequence.settingType(.cut, .refuse, .quarantine, .allow)),
            "The length of a property's key, in UTF-16 code units. A longer one is cut by default.",
            example: "125"),
        .pair(
            "property_value_length",
            .init("max", \.propertyValueLength.value, optional: .count(1...1_000_000, zero: "no limit")),
            .init(
                "beyond", \.propertyValueLength.beyond,
                optional: LimitConsequence.settingType(.cut, .refuse, .quarantine, .allow)),
            "The length of a property's text, in UTF-16 code units. A longer one is cut by default.",
            example: "125"),
        .setting(
            "max_time_ahead", \.maxTimeAhead,
            optional: .duration(.seconds(60) ... .seconds(3650 * 86_400), zero: "no limit"),
            "Events whose time is further ahead are quarantined: 3 days by default.", example: "\"3d\""),
    ]
}

/// A limit, and what happens beyond it; nil if it is not set.
public struct LimitSetting: Sendable, Equatable {
    /// The limit; 0 for no limit.
    package var value: Int?
    /// What happens beyond it.
    package var beyond: LimitConsequence?

    /// This limit with that of an app over it.
    fileprivate func overridden(by own: LimitSetting) -> LimitSetting {
        LimitSetting(value: own.value ?? value, beyond: own.beyond ?? beyond)
    }
}

extension LimitConsequence {
    /// One of some consequences.
    static func settingType(_ allowed: LimitConsequence...) -> ValueType<LimitConsequence> {
        .choice(by: \.rawValue, of: allowed)
    }
}
