internal import Model

/// `[session]`: which events belong together. The struct is in `Model`, because `Events` uses it.
extension SessionSettings: SettingsSection {
    static let entries: [Entry<SessionSettings>] = [
        .pair(
            "mode", .init("start", \.mode, .choice), .init("timeout", \.timeout, timeoutType),
            "How sessions start: manual leaves it to the apps; off adds no session. An event's own id always"
                + " wins. timeout: how long a producer that has exited may be silent before its next event"
                + " starts a session."),
        .setting("timeout", \.timeout, timeoutType, "Now mode.timeout.").renamed(to: "mode.timeout"),
    ]

    private static let timeoutType = ValueType<Duration>.duration(.seconds(1) ... .seconds(86_400))
}
