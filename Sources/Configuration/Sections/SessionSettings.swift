internal import Model

/// `[session]`: which events belong together. The struct is in `Model`, because `Events` uses it.
extension SessionSettings: SettingsSection {
    static let entries: [Entry<SessionSettings>] = [
        .setting(
            "mode", \.mode, .choice,
            "manual leaves the start to the apps; off adds no session. An event's own id always wins."),
        .setting(
            "timeout", \.timeout, .duration(.seconds(1) ... .seconds(86_400)),
            "How long a producer that has exited may be silent before its next event starts a session."),
    ]
}
