package import Logs

/// `[agent]`: the process, its directories, its log and how it stops.
public struct AgentSettings: SettingsSection {
    /// Directory of the queue, the install id and saved containers. One agent owns it.
    package var stateDirectory = "/var/lib/spoolship"
    /// Directory in which values of containers are published for apps.
    package var runtimeDirectory = "/run/spoolship"
    /// The least severe messages that are logged.
    package var logLevel = LogLevel.warning
    /// Text or JSON.
    package var logFormat = LogFormat.text
    /// How long the agent sends after it was asked to stop; zero sends nothing.
    package var shutdownDrainTimeout = Duration.seconds(10)
    /// Key for the digests of rules that hash; nil if it is not set.
    package var hashKey: SecretFile?

    static let entries: [Entry<AgentSettings>] = [
        .setting(
            "state_directory", \.stateDirectory, .path,
            "Queue, install id, saved containers. Put it on a disk with enough space and write endurance.",
            restart: true),
        .setting(
            "runtime_directory", \.runtimeDirectory, .path,
            "Values of containers are published here for apps to read.", restart: true),
        .pair(
            "log", .init("level", \.logLevel, .choice(by: \.name)), .init("format", \.logFormat, .choice),
            "The least severe messages of its log: info also shows rotations and reloads, debug each step;"
                + " `spoolship log-level` changes it for a while. Format json is for programs that read the"
                + " log."),
        .setting("log_level", \.logLevel, .choice(by: \.name), "Now log.level.").renamed(to: "log.level"),
        .setting("log_format", \.logFormat, .choice, "Now log.format.").renamed(to: "log.format"),
        .setting(
            "shutdown_drain_timeout", \.shutdownDrainTimeout, .duration(.zero ... .seconds(3600)),
            "How long the agent keeps sending once it is stopped; 0 sends nothing. Nothing is lost either "
                + "way."
        ),
        .setting(
            "hash_key", \.hashKey, optional: SecretFile.valueType,
            "The key for the digests of rules that hash: 32 bytes or more that others cannot read (openssl "
                + "rand -hex 32).",
            example: "\"file:/etc/spoolship/hash.key\""),
    ]
}
