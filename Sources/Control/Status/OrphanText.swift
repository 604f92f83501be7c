/// The text about events that wait for a destination that the configuration does not name.
package enum OrphanText {
    /// For `check`, a reload and the log: how many wait, and the ways out by the configured destinations.
    package static func warning(destination: String, events: Int, configured: [String]) -> String {
        "\(HumanText.plural(events, "event")) \(events == 1 ? "waits" : "wait") for destination \(destination), which is not"
            + " in the configuration: \(advice(destination, configured: configured))"
    }

    package static func advice(_ destination: String, configured: [String]) -> String {
        let target = configured.count == 1 ? configured[0] : "NAME"
        return
            "if it was renamed, `spoolship queue move --destination \(destination) --to \(target)` sends them there; "
            + "if it was removed, `spoolship queue purge --destination \(destination)` discards them"
    }
}
