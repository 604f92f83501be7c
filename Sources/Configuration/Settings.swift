package import Model

/// All settings of the agent, with defaults for those that are not set.
public struct Settings: SettingsSection {
    package var agent = AgentSettings()
    package var spool = SpoolSettings()
    package var deadLetters = DeadLetterSettings()
    package var limits = LimitSettings()
    package var dispatch = DispatchSettings()
    package var queue = QueueSettings()
    package var retry = RetrySettings()
    package var priorities = PrioritySettings()
    package var country = CountrySettings()
    package var session = SessionSettings()
    package var device = DeviceSettings()
    package var apps: [String: AppSettings] = [:]
    package var destinations: [DestinationSettings] = []
    package var deadlines: [DeadlineSettings] = []
    package var functions: [String: FunctionSettings] = [:]
    package var containers: [ContainerSettings] = []
    package var stats = StatsSettings()
    package var control = ControlSettings()

    /// Where the settings and sections that somebody set come from, by path: `queue.max_size`.
    public internal(set) var origins: [String: Origin] = [:]

    package init() {}

    /// Where a setting comes from.
    public func origin(of path: String) -> Origin { origins[path] ?? .standard }

    /// Every setting with the value in force, in the order of the shipped file. Secrets are masked when printed.
    public var effective: [EffectiveSetting] { effective(in: .root) }

    /// The sections and their settings, in the order of the shipped file: what help and manuals are made of.
    package static var description: [SectionDescription] {
        entries.compactMap { entry in
            guard case .section(let section) = entry.description else { return nil }
            return section
        }
    }

    static let entries: [Entry<Settings>] = [
        .section("agent", \.agent, "The process: state directory, log, shutdown."),
        .section("spool", \.spool, "Reading the spool, the directory where apps write their events."),
        .list(
            "destination", \.destinations, key: "name", .destinationName, { $0.name },
            "Where events go. Without any destination the spool is not read."),
        .section("queue", \.queue, "The queue on disk, between the spool and the destinations."),
        .section("dispatch", \.dispatch, "When batches are sent, and how large they are."),
        .section("retry", \.retry, "What happens after a failed attempt."),
        .section("dead_letters", \.deadLetters, "Dead letters: events that a destination rejected permanently."),
        .section("limits", \.limits, "Limits of events, by app; anything beyond them is cut or refused, and counted."),
        .section("priorities", \.priorities, "Which events are critical: sent first, evicted last."),
        .section("session", \.session, "Sessions: which events belong together."),
        .section("country", \.country, "The country that events carry; none by default."),
        .section("device", \.device, "Host properties that are added to events."),
        .named("apps", \.apps, "Settings for one app; NAME is its directory in the spool."),
        .list(
            "deadline", \.deadlines, key: "name", .destinationName, { $0.name },
            "Times by which events must have arrived; for reports with a time zone."),
        .list(
            "container", \.containers, key: "id", .containerID, { $0.id },
            "Remotely managed containers, in the order in which they apply."),
        .named("functions", \.functions, "The commands that containers may call. A container cannot name a command."),
        .section("stats", \.stats, "The port for monitoring: metrics, health, the status page."),
        .section("control", \.control, "The Unix socket that the commands use."),
    ]
}
