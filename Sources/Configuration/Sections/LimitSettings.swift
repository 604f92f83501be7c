public import Model

/// `[dead_letters]`: what a destination rejected for good.
public struct DeadLetterSettings: Sendable, Equatable {
    /// How many bytes of dead letters are kept; the oldest are purged first.
    public var maxSize = 1 << 20
}

extension DeadLetterSettings: SettingsSection {
    static let entries: [Entry<DeadLetterSettings>] = [
        .setting(
            "max_size", \.maxSize, .size(64 << 10...1 << 40),
            "How much is kept; the oldest is purged first, and counted. Raise it to have time to look and send again.")
    ]
}

/// Limits that a service sets.
public enum LimitPreset: String, SettingChoice {
    /// 200 names, names of 256, 20 properties, keys and texts of 125.
    case appCenter = "app_center"
}

/// `[limits]` and `[apps.NAME.limits]`: limits of events; of an app what is nil follows `[limits]`. There are none by default, and
/// 0 turns one off.
public struct LimitSettings: Sendable, Equatable {
    /// Whose limits hold where nothing else is set.
    public var like: LimitPreset?
    /// Distinct event names an app in a UTC day.
    public var eventNames: Int?
    /// What happens beyond it.
    public var beyondEventNames: LimitConsequence?
    /// The length of an event's name, in UTF-16 code units.
    public var nameLength: Int?
    /// What happens beyond it.
    public var beyondNameLength: LimitConsequence?
    /// Properties an event.
    public var properties: Int?
    /// What happens beyond it.
    public var beyondProperties: LimitConsequence?
    /// The length of a property's key, in UTF-16 code units.
    public var propertyKeyLength: Int?
    /// What happens beyond it.
    public var beyondPropertyKeyLength: LimitConsequence?
    /// The length of a property's text, in UTF-16 code units.
    public var propertyValueLength: Int?
    /// What happens beyond it.
    public var beyondPropertyValueLength: LimitConsequence?
    /// How far ahead an event's time may lie; 0 for any, nil for three days.
    public var maxTimeAhead: Duration?

    /// The limits of one app.
    public func overridden(by own: LimitSettings) -> LimitSettings {
        var limits = self
        limits.like = own.like ?? like
        limits.eventNames = own.eventNames ?? eventNames
        limits.beyondEventNames = own.beyondEventNames ?? beyondEventNames
        limits.nameLength = own.nameLength ?? nameLength
        limits.beyondNameLength = own.beyondNameLength ?? beyondNameLength
        limits.properties = own.properties ?? properties
        limits.beyondProperties = own.beyondProperties ?? beyondProperties
        limits.propertyKeyLength = own.propertyKeyLength ?? propertyKeyLength
        limits.beyondPropertyKeyLength = own.beyondPropertyKeyLength ?? beyondPropertyKeyLength
        limits.propertyValueLength = own.propertyValueLength ?? propertyValueLength
        limits.beyondPropertyValueLength = own.beyondPropertyValueLength ?? beyondPropertyValueLength
        limits.maxTimeAhead = own.maxTimeAhead ?? maxTimeAhead
        return limits
    }
}

extension LimitSettings: SettingsSection {
    static let entries: [Entry<LimitSettings>] = [
        .setting(
            "like", \.like, optional: .choice,
            "Limits of a service: 200 names, of 256 characters; 20 properties; keys and texts of 125.",
            example: "\"app_center\""),
        .setting(
            "event_names", \.eventNames, optional: .count(1...1_000_000, zero: "no limit"),
            "Distinct event names an app in a UTC day.", example: "200"),
        .setting(
            "beyond_event_names", \.beyondEventNames, optional: .consequence(.refuse, .quarantine, .allow),
            "What happens to an event with one name too many: refuse by default.", example: "\"refuse\""),
        .setting(
            "name_length", \.nameLength, optional: .count(1...65_536, zero: "no limit"),
            "The length of an event's name, in UTF-16 code units.", example: "256"),
        .setting(
            "beyond_name_length", \.beyondNameLength, optional: .consequence(.cut, .refuse, .quarantine, .allow),
            "What happens to a longer name: cut by default.", example: "\"cut\""),
        .setting(
            "properties", \.properties, optional: .count(1...100_000, zero: "no limit"), "Properties an event.",
            example: "20"),
        .setting(
            "beyond_properties", \.beyondProperties, optional: .consequence(.cut, .refuse, .quarantine, .allow),
            "cut, the default, keeps the first ones, in the order of the event.", example: "\"cut\""),
        .setting(
            "property_key_length", \.propertyKeyLength, optional: .count(1...65_536, zero: "no limit"),
            "The length of a property's key, in UTF-16 code units.", example: "125"),
        .setting(
            "beyond_property_key_length", \.beyondPropertyKeyLength,
            optional: .consequence(.cut, .refuse, .quarantine, .allow),
            "What happens to a longer key: cut by default.", example: "\"cut\""),
        .setting(
            "property_value_length", \.propertyValueLength, optional: .count(1...1_000_000, zero: "no limit"),
            "The length of a property's text, in UTF-16 code units.", example: "125"),
        .setting(
            "beyond_property_value_length", \.beyondPropertyValueLength,
            optional: .consequence(.cut, .refuse, .quarantine, .allow),
            "What happens to a longer text: cut by default.", example: "\"cut\""),
        .setting(
            "max_time_ahead", \.maxTimeAhead,
            optional: .duration(.seconds(60) ... .seconds(3650 * 86_400), zero: "no limit"),
            "Events whose time lies further ahead are quarantined: 3 days by default.", example: "\"3d\""),
    ]
}

extension ValueType where Value == LimitConsequence {
    static func consequence(_ allowed: LimitConsequence...) -> ValueType {
        let names = allowed.map(\.name).joined(separator: ", ")
        return ValueType("choice", range: names) { node throws(ValueMistake) in
            let value = try ValueType.choice.parse(node)
            guard allowed.contains(value) else {
                throw ValueMistake(
                    .outOfRange, "is \"\(value.name)\", which makes no sense here; must be one of \(names)")
            }
            return value
        } print: {
            .string($0.name)
        }
    }
}
