public import Model

/// `[priorities]`: which events are critical.
public struct PrioritySettings: Sendable, Equatable {
    /// The priority of events for which nothing else decides.
    public var standard = Priority.normal
    /// Rules, the first that fits decides.
    public var rules: [PriorityRule] = []

    /// The defaults.
    public init() {}
}

/// `[[priorities.rule]]`: the priority of some events.
public struct PriorityRule: Sendable, Equatable {
    /// The app; nil for every one.
    public var app: String?
    /// The event's name, or its beginning and a `*`; nil for every one.
    public var event: String?
    /// The least severity; nil for every one, and for none.
    public var level: SeverityLevel?
    /// Their priority.
    public var priority = Priority.critical
    /// Whether it overrides what the event itself says.
    public var force = false

    /// A rule for every event.
    public init() {}

    /// Whether the rule is for such an event.
    public func fits(app: String, event: String) -> Bool {
        if let wanted = self.app, wanted != app { return false }
        guard let wanted = self.event else { return true }
        return wanted.hasSuffix("*") ? event.hasPrefix(wanted.dropLast()) : event == wanted
    }
}

extension Priority: SettingChoice {}

/// How serious an event or a record is, as OpenTelemetry counts.
public enum SeverityLevel: String, SettingChoice {
    case trace, debug, info, warn, error, fatal
}

extension PrioritySettings: SettingsSection {
    static let entries: [Entry<PrioritySettings>] = [
        .setting("default", \.standard, .choice, "The priority of events for which nothing else decides."),
        .list(
            "rule", \.rules, key: "", .text(), { _ in "" },
            "The priority of some events; the first rule that fits decides."),
    ]
}

extension PriorityRule: SettingsSection {
    static let entries: [Entry<PriorityRule>] = [
        .setting("app", \.app, optional: .text(), "The app; every one when not set.", example: "\"shop\""),
        .setting(
            "event", \.event, optional: .text(range: "a name, or its beginning and *"),
            "The event's name; every one when not set.", example: "\"Payment*\""),
        .setting(
            "level", \.level, optional: .choice, "The severity, and what is worse; every one, and none, when not set.",
            example: "\"error\""),
        .setting("priority", \.priority, .choice, "Their priority."),
        .setting("force", \.force, .boolean, "true overrides what the event itself says."),
    ]
}
