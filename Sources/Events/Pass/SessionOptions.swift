/// How sessions are made.
public struct SessionOptions: Sendable, Equatable {
    /// Who starts sessions. The raw value is a metric label.
    public enum Mode: String, Sendable, CaseIterable {
        /// The agent: one for each producer, and a new one when it was silent and is gone.
        case automatic
        /// The app, by `{"type": "start_session"}`, or a person, by command. Until then there is no session.
        case manual
        /// Nobody: no session ids but the events' own.
        case off
    }

    /// Default automatic.
    public var mode = Mode.automatic
    /// How long a producer must be silent, and gone, for its next event to begin a new session; default 20 s.
    public var timeout: Duration = .seconds(20)

    /// The defaults.
    public init() {}
}
