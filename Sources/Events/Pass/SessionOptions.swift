public import Model

/// How sessions are made.
public struct SessionOptions: Sendable, Equatable {
    /// Default automatic.
    public var mode = SessionMode.automatic
    /// How long a producer must be silent, and gone, for its next event to begin a new session; default 20 s.
    public var timeout: Duration = .seconds(20)
}
