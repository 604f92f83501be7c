internal import Model

/// `[functions.NAME]`: commands that containers may call. The struct is in `Model`, because `Containers` uses
/// it.
extension FunctionSettings: SettingsSection {
    static let entries: [Entry<FunctionSettings>] = [
        .setting(
            "command", \.command,
            .list(of: .text("argument", maxLength: 4096), count: 1...64).standingForNothing([]),
            "The program (an absolute path) and its arguments; no shell. It gets JSON on standard input.",
            example: "[\"/usr/local/bin/lookup\", \"--json\"]"),
        .setting(
            // Bounded by a minute: events of the app wait for the answer, in their order.
            "timeout", \.timeout, .duration(.milliseconds(10) ... .seconds(60)),
            "A call that takes longer is killed and gives null; meanwhile the file of the calling event "
                + "waits."
        ),
        .setting("parallel", \.parallel, .count(1...64), "How many calls may run at once."),
        .setting(
            "cache", \.cache, .duration(.seconds(1) ... .seconds(86_400), zero: "not at all"),
            "How long a result is reused for the same parameters."),
    ]
}
