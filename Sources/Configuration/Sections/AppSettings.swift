package import Model

/// `[apps.NAME]`: settings for one app. A setting that is nil follows the general settings.
public struct AppSettings: SettingsSection {
    // Files and the journal: where lines come from, beside the app's directory in the spool.
    /// Patterns of files that are read in place; their lines are records.
    package var read: [String]?
    /// Patterns of files that `read` leaves out.
    package var exclude: [String]?
    /// Directories into which symbolic links are followed.
    package var follow: [String]?
    /// What is read of files that exist already; nil is `beginning`.
    package var since: ReadStart?
    /// The encoding of the files, if not UTF-8.
    package var encoding: FileEncoding?
    /// Whether records have their file's path.
    package var filePath: Bool?
    /// The journal, if it is read for this app.
    package var journal = JournalSettings()
    // How lines become records: their format, and the members for name, time and level.
    /// Format in which a container's runtime wraps lines; nil for lines as they are.
    package var format: LineWrapper?
    /// Whether objects with a name are events.
    package var kind: LineKind?
    /// Name of records without a name.
    package var defaultEventName: String?
    /// Member or path of the name.
    package var name: String?
    /// Members or paths of the time, in order of priority.
    package var time: [String]?
    /// Members or paths of the severity, in order of priority.
    package var level: [String]?
    /// Members or paths of the message, in order of priority, before the usual ones.
    package var message: [String]?
    /// Scale of numeric severities.
    package var levelScale: SeverityScale?
    /// Zone of times that do not name one; nil is the machine's.
    package var timeZone: String?
    /// What happens to lines that are not JSON.
    package var text: TextHandling?
    // Text formats; see `TextFormatSettings` of TextFormats.
    /// Name of a built-in format, or a template.
    package var parse: String?
    /// A regular expression (RE2) whose named groups become members; instead of `parse`.
    package var pattern: String?
    /// A regular expression that matches the first line of a record, for formats of several lines.
    package var firstLine: String?
    /// Names of the columns of `csv` and `tsv`, or the member for `json_in`.
    package var columns: [String]?
    /// Members of a text format that become numbers.
    package var numbers: [String]?
    /// Name of the member that keeps the original line; nil keeps none.
    package var keepLine: String?
    /// What happens to lines that are not of the format.
    package var unmatched: UnmatchedHandling?
    /// What happens to bytes that are not UTF-8.
    package var notUTF8: BytesHandling?
    // What events get, and where they go.
    /// Priority of the app's events, if neither event nor rule sets it.
    package var priority: Priority?
    /// Whether events may declare themselves critical.
    package var mayBeCritical: Bool?
    /// Country of the app's events.
    package var country: String?
    /// Version of the app, for events without one.
    package var version: String?
    /// Build of the app, for events without one.
    package var build: String?
    /// Destinations of the app's events; nil for all with `by_default`.
    package var destinations: [String]?
    /// Purposes for which its events need consent, or the word `all`; nil: none.
    package var consent: [String]?
    /// Age at which its events expire, if it is below that of the queue or the destination; nil: theirs.
    package var maxAge: Duration?
    /// Limits of this app's events.
    package var limits = LimitSettings()

    /// An app that follows the general settings.
    public init() {}

    /// Whether text lines are parsed.
    package var isParsed: Bool { parse != nil || pattern != nil }

    /// The rows of the section, in the order of the documentation.
    static let entries: [Entry<AppSettings>] =
        [
            // Where lines come from.
            .setting(
                "read", \.read,
                optional: .list(
                    of: .text(range: "an absolute path, with *, ?, [a-z], {a,b} or **"), unique: true),
                "Files that are read in place, and never changed. Their lines are records.",
                example: "[\"/var/log/shop/*.log\"]", restart: true),
            .setting(
                "exclude", \.exclude,
                optional: .list(
                    of: .text(range: "a pattern as in read, or one of names in any directory"), unique: true),
                "Files that read names and that are left out, with what rotation makes of them.",
                example: "[\"debug*.log\", \"/var/log/shop/old/**\"]", restart: true),
            .setting(
                "follow", \.follow,
                optional: .list(of: .path, unique: true),
                "Directories into which symbolic links to files and directories are followed,"
                    + " below the first wildcard of read. Other links are not.",
                example: "[\"/var/log/pods\"]", restart: true),
            .setting(
                "since", \.since, optional: ReadStart.settingType,
                "What is read of files that exist when the agent first sees a pattern: all"
                    + " (beginning), what is written from"
                    + " then on (now), or all of files that were changed within an age."
                    + " Remembered: a restart changes nothing.",
                example: "\"now\"", restart: true),
            .setting(
                "encoding", \.encoding, optional: .choice,
                "The encoding of files that are not UTF-8."
                    + " A byte order mark of UTF-16 is recognised without it.",
                example: "\"latin1\"", restart: true),
            .setting(
                "file_path", \.filePath, optional: .boolean,
                "false leaves the file's path out of records that were read in place, the member"
                    + " log.file.path.",
                example: "false"),
            // How lines become records.
            .setting(
                "format", \.format, optional: .choice,
                "The format in which a container's runtime wraps lines: docker for json-file,"
                    + " cri for containerd and"
                    + " CRI-O. The wrapped line is the record; lines that were split are joined.",
                example: "\"cri\"", restart: true),
            .setting(
                "kind", \.kind, optional: .choice,
                "event: an object with a name is an event, any other a record. log: each line is a record.",
                example: "\"log\""),
            .pair(
                "name", .init("member", \.name, optional: .text()),
                .init("default", \.defaultEventName, optional: .text()),
                "The member or path that holds a record's name, and the name of records without one: log by"
                    + " default.",
                example: "{ default = \"access\" }"),
            .setting("default_event_name", \.defaultEventName, optional: .text(), "Now name.default.")
                .renamed(to: "name.default"),
            .pair(
                "time", .init("members", \.time, optional: .list(of: .text(), unique: true)),
                .init("zone", \.timeZone, optional: .text()),
                "Members or paths of a record's time: the first usable is taken; by default"
                    + " those of common loggers."
                    + " The zone of times without one is by default the machine's.",
                example: "{ members = [\"when\", \"meta.time\"], zone = \"Europe/Berlin\" }"),
            .pair(
                "level", .init("members", \.level, optional: .list(of: .text(), unique: true)),
                .init("scale", \.levelScale, optional: .choice),
                "Members or paths of the severity: the first usable is taken; by default those"
                    + " of common loggers."
                    + " The scale of numbers: auto, the default, knows pino, bunyan, monolog and"
                    + " the journal.",
                example: "[\"meta.level\"]"),
            .setting(
                "message", \.message, optional: ValueType<[String]>.members,
                "Members or paths of the message, for what shows it apart from the event: OTLP's body,"
                    + " syslog's text, {{text:message}}. The first text that is not empty is taken, before"
                    + " those of common loggers.",
                example: "[\"event.original\"]"),
            .setting("level_scale", \.levelScale, optional: .choice, "Now level.scale.")
                .renamed(to: "level.scale"),
            .setting("time_zone", \.timeZone, optional: .text(), "Now time.zone.").renamed(to: "time.zone"),
            // Lines of text.
            .setting(
                "text", \.text, optional: .choice,
                "Lines that are not JSON: quarantine (default); lines: each becomes the message"
                    + " of a record; blocks, with"
                    + " read: consecutive ones become one record, until a JSON line, half a second"
                    + " of silence or 64 KiB;"
                    + " first_line is better.",
                example: "\"lines\""),
            .setting(
                "parse", \.parse, optional: .text(),
                "The format of text lines: a name (nginx, syslog, postgresql, java, csv, ...) or"
                    + " a template with $name.",
                example: "\"nginx\""),
            .setting(
                "pattern", \.pattern, optional: .text(),
                "An RE2 expression whose named groups are the members of a text line.",
                example: "'^(?P<time>\\S+) (?P<level>\\w+) (?P<message>.*)'"),
            .setting(
                "columns", \.columns, optional: .list(of: .text(), unique: true),
                "The names of the columns of csv and tsv; for json_in the member that holds the object.",
                example: "[\"time\", \"id\", \"note\"]"),
            .setting(
                "first_line", \.firstLine, optional: .text(),
                "An RE2 expression that the first line of a record matches: the lines after it"
                    + " belong to the record.",
                example: "'^\\d{4}-'"),
            .setting(
                "numbers", \.numbers, optional: .list(of: .text(), unique: true),
                "Fields of a template, pattern, csv or tsv that become numbers, if they are numbers in JSON.",
                example: "[\"status\"]"),
            .setting(
                "keep_line", \.keepLine, optional: .text(),
                "The member that keeps a parsed line as it was; by default none.",
                example: "\"raw\""),
            .setting(
                "unmatched", \.unmatched, optional: .choice,
                "Lines that are not of the format: message (default) sends them as text,"
                    + " quarantine keeps them.",
                example: "\"quarantine\""),
            .setting(
                "not_utf8", \.notUTF8, optional: .choice,
                "Lines with bytes that are not UTF-8: replace writes U+FFFD for them, quarantine"
                    + " keeps the line. By default records "
                    + "are repaired, events are not.", example: "\"replace\""),
            // What events get, and where they go.
            .pair(
                "priority", .init("default", \.priority, optional: .choice(by: \.name)),
                .init("may_be_critical", \.mayBeCritical, optional: .boolean),
                "The priority of its events, if neither the event nor a rule sets it; and whether its events"
                    + " may declare themselves critical: by default true, for incoming false.",
                example: "\"normal\""),
            .setting("may_be_critical", \.mayBeCritical, optional: .boolean, "Now priority.may_be_critical.")
                .renamed(to: "priority.may_be_critical"),
            .setting(
                "country", \.country, optional: .country, "The country of its events.", example: "\"IT\""),
            .setting(
                "version", \.version, optional: .text(), "Its version, if the events do not have it."
            ).retired(
                "a [[rule]] with when = \"app_version == null\" and set = { \"device.app_version\" = "
                    + "\"2.1.0\" } does the same"),
            .setting(
                "build", \.build, optional: .text(), "Its build, if the events do not have it."
            ).retired("a [[rule]] with set = { \"device.app_build\" = \"2107\" } does the same"),
            .setting(
                "destinations", \.destinations, optional: .list(of: .destinationName, unique: true),
                "The destinations of its events; by default all with by_default.", example: "[\"main\"]"),
            .setting(
                "consent", \.consent, optional: ConsentSettings.needs,
                "The purposes for which its events need consent, or all: where nobody gave it,"
                    + " they are withheld"
                    + " from destinations with that purpose. By default they go there unless"
                    + " somebody refused.",
                example: "\"all\""),
            .setting(
                "max_age", \.maxAge, optional: QueueSettings.maxAgeType,
                "Its events older than this expire, counted, if queue.max_age does not expire them before.",
                example: "\"7d\""),
            .section("limits", \.limits, "Limits of its events.", sameKeysAs: "[limits]"),
            .section(
                "journal", \.journal,
                "systemd's journal, which is read if this section is there; journal = true reads all of it."
                    + " The user spoolship must be in the group systemd-journal.",
                isOn: { \.read }),
        ]
        + JournalSettings.entries.dropFirst().map { row in
            // Keys of older configurations.
            row.inside(\.journal).called("journal_\(row.name)").renamed(to: "journal.\(row.name)")
        }
}

/// `[apps.NAME.journal]`: systemd's journal as the source of an app's records.
public struct JournalSettings: SettingsSection {
    /// Whether the journal is read.
    package var read: Bool?
    /// Patterns of the units whose entries are read; nil for all.
    package var units: [String]?
    /// The least severe entries that are read; nil for all.
    package var priority: JournalPriority?
    /// Where reading begins the first time; nil is `now`.
    package var since: JournalStart?
    /// Directory of another machine's journal; nil for this machine's.
    package var directory: String?
    /// Fields of entries that are added to those of every entry.
    package var fields: [String]?

    /// A journal that is not read.
    public init() {}

    /// Name of the first setting that has no effect, because the journal is not read; nil if none is set.
    public var uselessSetting: String? {
        // The rows are asked instead of each property, so that a new setting cannot be forgotten here.
        read == true ? nil : effective(in: .root).first { $0.name != "read" && $0.value != nil }?.name
    }

    static let entries: [Entry<JournalSettings>] = [
        .setting(
            "read", \.read, optional: .boolean,
            "true, unless it is set to false.", example: "true", restart: true
        ).listedElsewhere(),
        .setting(
            "units", \.units, optional: .list(of: .text(), unique: true),
            "The units whose entries are read; * and ? match any text and any character; by default all"
                + " entries.",
            example: "[\"nginx.service\", \"app-*\"]", restart: true),
        .setting(
            "priority", \.priority, optional: .choice,
            "Entries of this severity or worse are read; by default all.", example: "\"info\"",
            restart: true),
        .setting(
            "since", \.since, optional: .choice,
            "Where reading begins the first time: now (the default), this boot, or the beginning of the"
                + " journal.",
            example: "\"boot\"", restart: true),
        .setting(
            "directory", \.directory, optional: .path,
            "The directory of another machine's journal; by default this machine's.",
            example: "\"/var/log/journal/remote\"", restart: true),
        .setting(
            "fields", \.fields, optional: .list(of: .text(), unique: true),
            "Additional fields of an entry, by journald's names; [\"*\"] for all.",
            example: "[\"_CMDLINE\"]", restart: true),
    ]
}

/// Severity of journal entries in journalctl's words, the most severe first. The position is the number of
/// syslog's severity.
package enum JournalPriority: String, Sendable, CaseIterable {
    case emerg, alert, crit, err, warning, notice, info, debug
}

/// What happens to lines that are not of their app's format.
package enum UnmatchedHandling: String, Sendable, CaseIterable {
    /// As a message in text, or in the quarantine.
    case message, quarantine
}

/// What happens to lines with bytes that are not UTF-8.
package enum BytesHandling: String, Sendable, CaseIterable {
    /// The line is kept, and not sent.
    case quarantine
    /// Each such byte becomes U+FFFD.
    case replace
}
