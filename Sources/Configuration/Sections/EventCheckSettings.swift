/// `[schemas]`: what events may look like, by their names.
public struct SchemaSettings: SettingsSection {
    /// What happens to an event that its schema does not allow.
    package enum Mode: String, Sendable, CaseIterable {
        /// The event goes to the quarantine.
        case quarantine
        /// The event is sent, and counted.
        case report
    }

    /// Directory of the schemas; nil checks nothing.
    package var directory: String?
    /// What happens to an event that its schema does not allow.
    package var mode = Mode.quarantine

    static let entries: [Entry<SchemaSettings>] = [
        .setting(
            "directory", \.directory, optional: .path,
            "Where the schemas are: NAME.json for the events of that name, APP/NAME.json for those of one"
                + " app.",
            example: "\"/etc/spoolship/schemas\""),
        .setting(
            "mode", \.mode, .choice,
            "quarantine keeps events that their schema does not allow, with path and reason; report counts"
                + " them and sends them."),
    ]
}

/// `[dedup]`: events that an app has written more than once.
public struct DedupSettings: SettingsSection {
    /// How long the id of an event is remembered; zero: repeats are not looked for.
    package var window = Duration.zero
    /// How many ids are remembered at most.
    package var maxIDs = 250_000

    static let entries: [Entry<DedupSettings>] = [
        .pair(
            "window",
            .init(
                "time", \.window, .duration(.seconds(60) ... .seconds(30 * 86_400), zero: "not at all")),
            .init("max_ids", \.maxIDs, idsType),
            "How long the ids of an app's events are remembered, and how many at most, 8 bytes each in the"
                + " queue's file: the oldest are forgotten first. An event with a remembered id is discarded"
                + " as a repeat.",
            example: "\"24h\""),
        .setting("max_ids", \.maxIDs, idsType, "Now window.max_ids.").renamed(to: "window.max_ids"),
    ]

    private static let idsType = ValueType<Int>.count(1_000...10_000_000)
}
