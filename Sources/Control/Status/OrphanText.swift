/// Texts about events that wait for a destination that the configuration no longer names. They would wait
/// for ever, so every place that shows them says how to send or discard them.
package enum OrphanText {
    /// For `check`, a reload and the log: how many events wait, and what to do.
    ///
    /// - Parameter configured: names of the configured destinations; a single one is suggested as the new
    ///   name.
    package static func warning(destination: String, events: Int, configured: [String]) -> String {
        "\(HumanText.plural(events, "event")) \(events == 1 ? "waits" : "wait") for destination "
            + "\(destination), which is not in the configuration: "
            + "\(advice(destination, configured: configured))"
    }

    /// The two commands that end the waiting.
    package static func advice(_ destination: String, configured: [String]) -> String {
        let target = configured.count == 1 ? configured[0] : "NAME"
        return
            "if it was renamed, `spoolship queue move --destination \(destination) --to \(target)` sends "
            + "them there; if it was removed, `spoolship queue purge --destination \(destination)` "
            + "discards them"
    }
}
