package import Model

/// What is limited in an event, as settings and metrics name it. Closed, because each is a metric label.
public enum LimitKind: String, Sendable, CaseIterable {
    /// Distinct event names of an app in a UTC day.
    case eventNames = "event_names"
    case nameLength = "name_length"
    case properties
    case propertyKeyLength = "property_key_length"
    /// The length of a property's value, where that is a string.
    case propertyValueLength = "property_value_length"
}

/// One limit.
public struct Limit: Sendable, Equatable {
    /// The greatest value that is right; 0 turns the limit off.
    public var value: Int
    package var consequence: LimitConsequence

    package init(_ value: Int, _ consequence: LimitConsequence) {
        self.value = value
        self.consequence = consequence
    }
}

/// The limits for the events of an app; 0, the default, is none. Lengths are in UTF-16 code units, and no surrogate pair is ever
/// cut in two. Records have none.
public struct EventLimits: Sendable, Equatable {
    /// Distinct event names in a UTC day. Each costs memory here and a series at many destinations.
    public var eventNames = Limit(0, .refuse)
    package var nameLength = Limit(0, .cut)
    /// Properties of an event: the first in document order are kept.
    public var properties = Limit(0, .cut)
    /// The length of a property's name. Names that are equal once cut become one: the first one's place, the last one's value.
    public var propertyKeyLength = Limit(0, .cut)
    package var propertyValueLength = Limit(0, .cut)

    package init() {}

    /// The same, but texts stay whole: patterns would not find half of what they look for.
    var withWholeTexts: EventLimits {
        var limits = self
        for length in [\EventLimits.nameLength, \.propertyKeyLength, \.propertyValueLength]
        where limits[keyPath: length].consequence == .cut {
            limits[keyPath: length].consequence = .allow
        }
        return limits
    }

    /// App Center's (ac19), with its own consequences.
    public static var appCenter: EventLimits {
        var limits = EventLimits()
        limits.eventNames.value = 200
        limits.nameLength.value = 256
        limits.properties.value = 20
        limits.propertyKeyLength.value = 125
        limits.propertyValueLength.value = 125
        return limits
    }
}
