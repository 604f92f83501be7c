/// Gives a priority to the events that it matches.
public struct PriorityRule: Sendable, Equatable {
    /// The app; nil matches every app.
    public var app: String?
    /// The event's name. A `*` at the end matches all names with that prefix; nil matches every name.
    public var event: String?
    /// The least severity; nil also matches events without a severity.
    public var level: SeverityLevel?
    package var priority: Priority
    /// Whether the rule overrides the priority that the event states. Default false.
    public var force: Bool

    package init(
        app: String? = nil, event: String? = nil, level: SeverityLevel? = nil, priority: Priority,
        force: Bool = false
    ) {
        self.app = app
        self.event = event
        self.level = level
        self.priority = priority
        self.force = force
    }
}
