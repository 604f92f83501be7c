/// `[dead_letters]`: what a destination rejected for good.
public struct DeadLetterSettings: Sendable, Equatable {
    /// How many bytes of dead letters are kept; the oldest are purged first.
    public var maxSize = 1 << 20

    /// The defaults.
    public init() {}
}

extension DeadLetterSettings: SettingsSection {
    static let entries: [Entry<DeadLetterSettings>] = [
        .setting(
            "max_size", \.maxSize, .size(64 << 10...1 << 40),
            "How much is kept; the oldest is purged first, and counted. Raise it to have time to look and send again.")
    ]
}

/// What happens to an event that is beyond a limit.
public enum LimitConsequence: String, SettingChoice {
    /// What is too much is cut away.
    case cut
    /// The event is not accepted; its line goes to quarantine, counted as refused.
    case refuse
    /// The event is quarantined.
    case quarantine
    /// The event stays as it is, counted.
    case allow
}

/// `[limits]`: limits of events, by app. 0 turns a limit off.
public struct LimitSettings: Sendable, Equatable {
    /// Distinct event names an app in a UTC day.
    public var eventNames = 200
    /// What happens beyond it.
    public var beyondEventNames = LimitConsequence.refuse
    /// The length of an event's name, in UTF-16 code units.
    public var nameLength = 256
    /// What happens beyond it.
    public var beyondNameLength = LimitConsequence.cut
    /// Properties an event.
    public var properties = 20
    /// What happens beyond it.
    public var beyondProperties = LimitConsequence.cut
    /// The length of a property's key, in UTF-16 code units.
    public var propertyKeyLength = 125
    /// What happens beyond it.
    public var beyondPropertyKeyLength = LimitConsequence.cut
    /// The length of a property's text, in UTF-16 code units.
    public var propertyValueLength = 125
    /// What happens beyond it.
    public var beyondPropertyValueLength = LimitConsequence.cut
    /// How far ahead an event's time may lie; 0 for any.
    public var maxTimeAhead = Duration.seconds(3 * 86_400)

    /// The defaults.
    public init() {}
}

extension LimitSettings: SettingsSection {
    static let entries: [Entry<LimitSettings>] = [
        .setting(
            "event_names", \.eventNames, .count(1...1_000_000, zero: "no limit"),
            "Distinct event names an app in a UTC day. Raise it if names are many by design, not by a number in them."),
        .setting(
            "beyond_event_names", \.beyondEventNames, .consequence(.refuse, .quarantine, .allow),
            "What happens to an event with one name too many."),
        .setting(
            "name_length", \.nameLength, .count(1...65_536, zero: "no limit"),
            "The length of an event's name, in UTF-16 code units."),
        .setting(
            "beyond_name_length", \.beyondNameLength, .consequence(.cut, .refuse, .quarantine, .allow),
            "What happens to a longer name."),
        .setting(
            "properties", \.properties, .count(1...100_000, zero: "no limit"),
            "Properties an event. 0 for records with many members that the destination takes."),
        .setting(
            "beyond_properties", \.beyondProperties, .consequence(.cut, .refuse, .quarantine, .allow),
            "cut keeps the first ones, in the order of the event."),
        .setting(
            "property_key_length", \.propertyKeyLength, .count(1...65_536, zero: "no limit"),
            "The length of a property's key, in UTF-16 code units."),
        .setting(
            "beyond_property_key_length", \.beyondPropertyKeyLength, .consequence(.cut, .refuse, .quarantine, .allow),
            "What happens to a longer key."),
        .setting(
            "property_value_length", \.propertyValueLength, .count(1...1_000_000, zero: "no limit"),
            "The length of a property's text, in UTF-16 code units. 0 for stack traces and other long texts."),
        .setting(
            "beyond_property_value_length", \.beyondPropertyValueLength,
            .consequence(.cut, .refuse, .quarantine, .allow), "What happens to a longer text."),
        .setting(
            "max_time_ahead", \.maxTimeAhead, .duration(.seconds(60) ... .seconds(3650 * 86_400), zero: "no limit"),
            "Events whose time lies further ahead are quarantined."),
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
