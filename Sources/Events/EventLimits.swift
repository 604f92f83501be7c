package import Model

/// What is limited in an event, by the names of settings and metrics. A closed list, because each case is the
/// value of a metric's label.
public enum LimitKind: String, Sendable, CaseIterable {
    /// Distinct event names of an app in a UTC day.
    case eventNames = "event_names"
    /// Length of an event's name.
    case nameLength = "name_length"
    /// Number of an event's properties.
    case properties
    /// Length of a property's name.
    case propertyKeyLength = "property_key_length"
    /// Length of a property's value if it is a string.
    case propertyValueLength = "property_value_length"
}

/// One limit and its consequence.
public struct Limit: Sendable, Equatable {
    /// The greatest value that is allowed; 0 turns the limit off.
    public var value: Int
    /// What happens to an event beyond it: the text is cut, the event is allowed, refused or quarantined.
    package var consequence: LimitConsequence

    package init(_ value: Int, _ consequence: LimitConsequence) {
        self.value = value
        self.consequence = consequence
    }
}

/// Limits for the events of an app; by default all are off. Lengths are in UTF-16 code units, and no
/// surrogate pair is cut in two. Records have no limits.
public struct EventLimits: Sendable, Equatable {
    /// Distinct event names in a UTC day. Each name costs memory here and a series at many destinations.
    public var eventNames = Limit(0, .refuse)
    package var nameLength = Limit(0, .cut)
    /// Properties of an event. If there are more, the first ones in the order of the document stay.
    public var properties = Limit(0, .cut)
    /// Length of a property's name. Names that are equal once cut become one property, in the place of the
    /// first with the value of the last.
    public var propertyKeyLength = Limit(0, .cut)
    package var propertyValueLength = Limit(0, .cut)

    package init() {}

    /// The same limits, but texts that would be cut are allowed: a pattern of a tag would not find what is
    /// cut in two.
    var withWholeTexts: EventLimits {
        var limits = self
        for length in [\EventLimits.nameLength, \.propertyKeyLength, \.propertyValueLength]
        where limits[keyPath: length].consequence == .cut {
            limits[keyPath: length].consequence = .allow
        }
        return limits
    }

    /// App Center's limits for names, properties and lengths, with the consequences that it had.
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
