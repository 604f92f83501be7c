internal import EventLoops
internal import Logs

/// Reports the values of containers to people and apps: refused settings in the log, and all values
/// in a file of the runtime directory. Each piece of news once.
struct ContainerNews {
    /// File in the runtime directory that publishes the containers' values to apps.
    private var file: ValuesFile
    /// Whether the log has reported that the file cannot be written.
    private var hasFailed = false
    /// Settings of containers that were refused, by container and setting, with the message that the log has
    /// reported. Without it each round would log them again.
    private var refused: [String: [String: String]] = [:]

    init(in directory: String) { file = ValuesFile(in: directory) }

    /// Logs each refused value once, not at each round: containers are published often, and the refusal stays
    /// in `status`.
    mutating func report(_ overlay: SettingsOverlay, _ log: Log) {
        for (container, refusals) in overlay.refused {
            for (setting, message) in refusals where refused[container]?[setting] != message {
                log.warning(
                    "value of a container refused, the configuration's value stays in force",
                    ["container": container, "setting": setting, "hint": message])
            }
        }
        refused = overlay.refused
    }

    /// Writes the values to the file that apps read. A failure is logged once until a write succeeds; apps
    /// keep the last values.
    mutating func publish(_ states: [ContainerState], _ log: Log) {
        // Without containers there are no values, and no file for them unless one was written before.
        guard !states.isEmpty || file.written != nil else { return }
        do throws(SystemError) {
            try file.write(states)
            hasFailed = false
        } catch {
            if !hasFailed {
                log.warning("values not published for apps", ["file": file.path, "hint": error.description])
            }
            hasFailed = true
        }
    }
}
