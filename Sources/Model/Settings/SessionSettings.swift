/// `[session]`: which events belong to one session.
public struct SessionSettings: Sendable, Equatable {
    package var mode = SessionMode.automatic
    /// How long a producer must have been silent, and ended, for its next event to begin a new session.
    public var timeout = Duration.seconds(20)

    package init() {}
}
