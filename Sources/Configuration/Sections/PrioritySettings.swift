public import Model

/// `[priorities]`: which events are critical.
public struct PrioritySettings: SettingsSection {
    /// Priority of events for which nothing else decides.
    public var standard = Priority.normal
    /// Rules, of which the first that matches decides.
    package var rules: [PriorityRule] = []

    /// The rows of the section. These rules have no names, so they are identified by their numbers.
    static let entries: [Entry<PrioritySettings>] = [
        .setting(
            "default", \.standard, .choice(by: \.name),
            "The priority of events for which nothing else decides."
        ).retired("[apps.NAME] priority says it for the events of an app, [[rule]] priority for some events"),
        .list(
            "rule", \.rules, key: "", .text(), { _ in "" },
            "The priority of some events; the first rule that matches decides."
        ).retired("a [[rule]] with when and priority has a name, and is counted"),
    ]
}

/// `[[priorities.rule]]`: the priority of some events. The struct is in `Model`, because `Events` uses it.
extension PriorityRule: SettingsSection {
    init() { self.init(priority: .critical) }

    static let entries: [Entry<PriorityRule>] = [
        .setting("app", \.app, optional: .text(), "The app; all if not set.", example: "\"shop\""),
        .setting(
            "event", \.event, optional: .text(range: "a name, or its beginning and *"),
            "The event's name; all if not set.", example: "\"Payment*\""),
        .setting(
            "level", \.level, optional: .choice, "This severity and worse; if not set, any severity or none.",
            example: "\"error\""),
        .setting("priority", \.priority, .choice(by: \.name), "Their priority."),
        .setting("force", \.force, .boolean, "true overrides the event's own priority."),
    ]
}
