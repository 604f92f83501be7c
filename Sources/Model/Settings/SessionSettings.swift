/// `[session]`: which events belong together.
public struct SessionSettings: Sendable, Equatable {
    package var mode = SessionMode.automatic
    /// How long a producer must be silent, and gone, for its next event to begin a new session.
    public var timeout = Duration.seconds(20)

    package init() {}
}
