package import Logs

/// `[agent]`: the process: its state directory, its log, how it stops.
public struct AgentSettings: SettingsSection {
    package var stateDirectory = "/var/lib/spoolship"
    package var runtimeDirectory = "/run/spoolship"
    package var logLevel = LogLevel.warning
    package var logFormat = LogFormat.text
    package var shutdownDrainTimeout = Duration.seconds(10)

    static let entries: [Entry<AgentSettings>] = [
        .setting(
            "state_directory", \.stateDirectory, .path,
            "Queue, install id, saved containers. Put it on a disk with enough space and write endurance.",
            restart: true),
        .setting(
            "runtime_directory", \.runtimeDirectory, .path,
            "Values of containers are published here for apps to read.", restart: true),
        .setting(
            "log_level", \.logLevel, .choice(by: \.name),
            "Use info to see rotations and reloads, debug for each step; `spoolship log-level` changes it for a while."),
        .setting("log_format", \.logFormat, .choice, "json is for programs that read the log."),
        .setting(
            "shutdown_drain_timeout", \.shutdownDrainTimeout, .duration(.zero ... .seconds(3600)),
            "How long the agent keeps sending after it was told to stop; 0 sends nothing. Nothing is lost either way."),
    ]
}
