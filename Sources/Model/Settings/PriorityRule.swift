/// Gives a priority to the events it matches (ac26).
public struct PriorityRule: Sendable, Equatable {
    /// The app; nil fits every one.
    public var app: String?
    /// The event's name; a `*` at its end fits every name that begins so; nil fits every one.
    public var event: String?
    /// The least severity; nil fits events without one too.
    public var level: SeverityLevel?
    package var priority: Priority
    /// Whether it counts more than what the event says of itself. Default false.
    public var force: Bool

    package init(
        app: String? = nil, event: String? = nil, level: SeverityLevel? = nil, priority: Priority, force: Bool = false
    ) {
        (self.app, self.event, self.level, self.priority, self.force) = (app, event, level, priority, force)
    }
}
