/// `[session]`: which events belong together.
public struct SessionSettings: Sendable, Equatable {
    /// Who starts sessions.
    public enum Mode: String, SettingChoice {
        /// The agent, by who writes and when.
        case automatic
        /// The apps, by `start_session` events, and the command.
        case manual
        /// Nobody.
        case off
    }

    /// Who starts sessions.
    public var mode = Mode.automatic
    /// How long a producer may be silent before its next event starts a session.
    public var timeout = Duration.seconds(20)

    /// The defaults.
    public init() {}
}

extension SessionSettings: SettingsSection {
    static let entries: [Entry<SessionSettings>] = [
        .setting(
            "mode", \.mode, .choice,
            "manual leaves the start to the apps; off adds no session. An event's own id always wins."),
        .setting(
            "timeout", \.timeout, .duration(.seconds(1) ... .seconds(86_400)),
            "How long a producer that is gone may be silent before its next event starts a session."),
    ]
}
