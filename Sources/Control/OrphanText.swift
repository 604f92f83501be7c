/// What is said of events that wait for a destination which the configuration does not name.
public enum OrphanText {
    /// For `check`, a reload and the log: how many wait, and the two ways out.
    public static func warning(destination: String, events: Int) -> String {
        "\(HumanText.plural(events, "event")) \(events == 1 ? "waits" : "wait") for destination \(destination), which is not"
            + " in the configuration: \(advice(destination))"
    }

    /// The two ways out.
    public static func advice(_ destination: String) -> String {
        "name it again to send them, or `spoolship queue purge --destination \(destination)` discards them"
    }
}
