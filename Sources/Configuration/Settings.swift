//  Configuration: reads TOML files and makes typed settings of them.
//
//  What it promises. All mistakes of all files are found at once, and each says where it is and what to write
//  instead. A configuration takes effect as a whole or not at all. `check`, a start and a reload judge alike,
//  because they read through here. A secret is never printed: values have types that mask it, and source
//  lines are hidden where one may be.
//
//  What it knows. It knows no caller: modules that use settings get them as values. Types of settings that
//  other modules share are in `Model`; here are their rows. It reads files, and no other I/O; whether a path
//  or a certificate that a setting names is good is judged by `check` (`spoolship/Startup`).
//
//  Parts:
//  - `Settings`: all sections; its `entries` are the sections in the order of the shipped file. Begin reading
//    here, then a section, such as `Sections/QueueSettings.swift`.
//  - `Entry`, `Entry+Rows`: a row of the table: a key with its property, type, range and reason. Everything
//    is made of these rows: parsing, defaults, `check --print`, the comparison at a reload, the shipped file,
//    the manual, `help configuration`.
//  - `ValueType`: how a value is read, printed and described, with its range.
//  - `SettingsLoader`: from files to `LoadedSettings`. `Settings+Consistency`: what is missing or
//    contradicts.
//  - `TOML/`: the text as a tree with positions (toml++ behind `CTOML`), environment variables, problems with
//    source lines.
//  - `Sections/`: a file for each section. `Sections/Destination/`: those of destinations.
//
//  Rules:
//  - The default of a setting is the initial value of its property, and is written nowhere else.
//  - A new setting is a property with its default and a row; then run `scripts/generate`. CONTRIBUTING.md has
//    the whole list.
//  - A setting that is nil is not set: the general setting, or no limit, applies, as its row says.
//  - Files are trusted only if no other user can write them (`FileTrust`). Their text may still be anything:
//    a file that is not TOML must not end the process, and its size is bounded (1 MiB).

package import Model

/// All settings of the agent. Each property is a section; a new value holds the defaults.
public struct Settings: SettingsSection {
    /// `[agent]`: directories, log, identity.
    package var agent = AgentSettings()
    /// `[spool]`: where apps write, and how it is read.
    package var spool = SpoolSettings()
    /// `[dead_letters]`: events that destinations rejected.
    package var deadLetters = DeadLetterSettings()
    /// `[limits]`: bounds for events; an app can have its own.
    package var limits = LimitSettings()
    /// `[dispatch]`: when batches are sent, and how large they are; a destination can have its own.
    package var dispatch = DispatchSettings()
    /// `[queue]`: size and age of waiting events.
    package var queue = QueueSettings()
    /// `[retry]`: waits after failures.
    package var retry = RetrySettings()
    /// `[priorities]`: which events are critical.
    package var priorities = PrioritySettings()
    /// `[country]`: the country that events carry.
    package var country = CountrySettings()
    /// `[session]`: which events belong together.
    package var session = SessionSettings()
    /// `[device]`: properties of the host that events carry.
    package var device = DeviceSettings()
    /// `[apps.NAME]`, by the app's name.
    package var apps: [String: AppSettings] = [:]
    /// `[[destination]]`, in the order of the files.
    package var destinations: [DestinationSettings] = []
    /// `[[deadline]]`.
    package var deadlines: [DeadlineSettings] = []
    /// `[[rule]]`, `[[container]]` and `[functions.NAME]`; one property, because a type may have only so
    /// many.
    private var ruling = RulingSettings()
    /// `[stats]`: the port for monitoring.
    package var stats = StatsSettings()
    /// `[control]`: the Unix socket that the commands use.
    package var control = ControlSettings()

    /// Where settings and sections that are set come from, by path: `queue.max_size`. Absent paths have their
    /// defaults.
    public internal(set) var origins: [String: Origin] = [:]

    /// The defaults.
    package init() {}

    /// `[functions.NAME]`, by name.
    package var functions: [String: FunctionSettings] {
        get { ruling.functions }
        set { ruling.functions = newValue }
    }
    /// `[[rule]]`, in the order in which they apply.
    package var rules: [RuleSettings] {
        get { ruling.rules }
        set { ruling.rules = newValue }
    }
    /// `[[container]]`, in the order in which they apply.
    package var containers: [ContainerSettings] {
        get { ruling.containers }
        set { ruling.containers = newValue }
    }

    package var dedup: DedupSettings {
        get { ruling.dedup }
        set { ruling.dedup = newValue }
    }
    package var schemas: SchemaSettings {
        get { ruling.schemas }
        set { ruling.schemas = newValue }
    }

    /// The path of a `[[rule]]`: with its name, or with its number, from 1, if it has no name.
    public func path(ofRule place: Int) -> String {
        "rule.\(rules[place].name.map { SettingValue.key($0) } ?? "\(place + 1)")"
    }

    /// Where the value of a setting comes from.
    public func origin(of path: String) -> Origin { origins[path] ?? .standard }

    /// Each setting with its value in force, in the order of the shipped file. Secrets are masked when
    /// printed.
    public var effective: [EffectiveSetting] { effective(in: .root) }

    /// These settings as they are in force until a restart: with the values of `started` for settings that a
    /// reload cannot apply.
    package func untilRestart(since started: Settings) -> Settings { keeping(started) }

    /// The sections and their settings, in the order of the shipped file, for help and manuals.
    package static var description: [SectionDescription] {
        entries.compactMap { entry in
            guard case .section(let section) = entry.description else { return nil }
            return section
        }
    }

    /// The sections that help, the manual and the reference list.
    package static var listed: [SectionDescription] { description.filter { !$0.isListedElsewhere } }

    /// The sections, in the order of the shipped file. This order is that of help, manuals and `check
    /// --print`.
    static let entries: [Entry<Settings>] = [
        .section("agent", \.agent, "The process: state directory, log, shutdown."),
        .section("spool", \.spool, "Reading the spool, the directory where apps write their events."),
        .list(
            "destination", \.destinations, key: "name", .destinationName, { $0.name },
            "Where events go. Without any destination the spool is not read. The keys of [dispatch], and"
                + " max_age of [queue], may also be here, for this destination alone."),
        .section("queue", \.queue, "The queue on disk, between the spool and the destinations."),
        .section(
            "dispatch", \.dispatch,
            "When batches are sent, and how large they are. Each key may also be in a [[destination]], for it"
                + " alone."
        ),
        .section("retry", \.retry, "What happens after a failed attempt."),
        .section(
            "dead_letters", \.deadLetters, "Dead letters: events that a destination rejected permanently."),
        .section(
            "limits", \.limits,
            "Limits of events, by app; anything beyond them is cut or refused, and counted."),
        .section(
            "schemas", \.schemas,
            "What events may look like, by their names; without schemas nothing is checked."),
        .section(
            "dedup", \.dedup,
            "Events that an app has written more than once; by default all of them are sent."),
        .section("priorities", \.priorities, "Which events are critical: sent first, evicted last.")
            .listedElsewhere(),
        .section("session", \.session, "Sessions: which events belong together."),
        .section("country", \.country, "The country that events carry; none by default."),
        .section("device", \.device, "Host properties that are added to events."),
        .named("apps", \.apps, "Settings for one app; NAME is its directory in the spool."),
        .list(
            "deadline", \.deadlines, key: "name", .destinationName, { $0.name },
            "Times by which events must have arrived; for reports with a time zone."),
        .list(
            "rule", \.rules, key: "name", RuleSettings.nameType, { $0.name ?? "" },
            "What happens to events: each rule has a condition and actions, and all apply, in their order."),
        .list(
            "container", \.containers, key: "id", ContainerSettings.idType, { $0.id },
            "Remotely managed containers, in the order in which they apply."),
        .named(
            "functions", \.functions,
            "The commands that containers may call. A container cannot name a command."),
        .section("stats", \.stats, "The port for monitoring: metrics, health, the status page."),
        .section("control", \.control, "The Unix socket that the commands use."),
    ]
}

/// The sections with rules for events: which events are kept, changed, or repeats.
private struct RulingSettings: Sendable, Equatable {
    /// `[[rule]]`, in the order of the files, in which they act.
    var rules: [RuleSettings] = []
    /// `[[container]]`, in the order of the files, in which they act.
    var containers: [ContainerSettings] = []
    /// `[functions.NAME]`, by their names.
    var functions: [String: FunctionSettings] = [:]
    var dedup = DedupSettings()
    var schemas = SchemaSettings()
}
