package import Model

/// `[apps.NAME]`: settings for one app. Those that are nil follow the general settings.
public struct AppSettings: SettingsSection {
    package var read: [String]?
    package var journal: Bool?
    package var journalUnits: [String]?
    package var journalPriority: JournalPriority?
    package var journalSince: JournalStart?
    package var journalDirectory: String?
    package var journalFields: [String]?
    package var format: LineFormat?
    package var kind: LineKind?
    package var defaultEventName: String?
    package var name: String?
    package var time: [String]?
    package var level: [String]?
    package var levelScale: SeverityScale?
    package var timeZone: String?
    package var text: TextHandling?
    package var notUTF8: BytesHandling?
    package var priority: Priority?
    package var mayBeCritical: Bool?
    package var country: String?
    package var version: String?
    package var build: String?
    package var destinations: [String]?
    package var limits = LimitSettings()

    /// An app that follows the general settings.
    public init() {}

    /// The first setting of a journal that is set; nil: none is.
    public var journalSetting: String? {
        effective(in: .root).first { $0.name.hasPrefix("journal_") && $0.value != nil }?.name
    }

    static let entries: [Entry<AppSettings>] = [
        .setting(
            "read", \.read,
            optional: .list(of: .text(range: "an absolute path, with * in one or more parts"), unique: true),
            "Files that are read in place, and never changed. Their lines are records.",
            example: "[\"/var/log/shop/*.log\"]", restart: true),
        .setting(
            "journal", \.journal, optional: .boolean,
            "true reads systemd's journal. The user spoolship must be in the group systemd-journal.",
            example: "true", restart: true),
        .setting(
            "journal_units", \.journalUnits, optional: .list(of: .text(), unique: true),
            "The units whose entries are read; * and ? match any text and any character; by default all entries.",
            example: "[\"nginx.service\", \"app-*\"]", restart: true),
        .setting(
            "journal_priority", \.journalPriority, optional: .choice,
            "Entries of this severity or worse are read; by default all.", example: "\"info\"", restart: true),
        .setting(
            "journal_since", \.journalSince, optional: .choice,
            "Where reading begins the first time: now (the default), this boot, or the beginning of the journal.",
            example: "\"boot\"", restart: true),
        .setting(
            "journal_directory", \.journalDirectory, optional: .path,
            "The directory of another machine's journal; by default this machine's.",
            example: "\"/var/log/journal/remote\"", restart: true),
        .setting(
            "journal_fields", \.journalFields, optional: .list(of: .text(), unique: true),
            "Additional fields of an entry, by journald's names; [\"*\"] for all.",
            example: "[\"_CMDLINE\"]", restart: true),
        .setting(
            "format", \.format, optional: .choice,
            "The format in which a container's runtime wraps lines: docker for json-file, cri for containerd and"
                + " CRI-O. The wrapped line is the record; lines that were split are joined.",
            example: "\"cri\"", restart: true),
        .setting(
            "kind", \.kind, optional: .choice,
            "event: an object with a name is an event, any other a record. log: each line is a record.",
            example: "\"log\""),
        .setting(
            "default_event_name", \.defaultEventName, optional: .text(),
            "The name of records without one: log by default.",
            example: "\"access\""),
        .setting(
            "name", \.name, optional: .text(), "The member or path that holds a record's name.",
            example: "\"record.function\""),
        .setting(
            "time", \.time, optional: .list(of: .text(), unique: true),
            "Members or paths of a record's time: the first usable is taken; by default those of common loggers.",
            example: "[\"when\", \"meta.time\"]"),
        .setting(
            "level", \.level, optional: .list(of: .text(), unique: true),
            "Members or paths of the severity: the first usable is taken; by default those of common loggers.",
            example: "[\"meta.level\"]"),
        .setting(
            "level_scale", \.levelScale, optional: .choice,
            "The scale of numeric severities; auto knows pino, bunyan, monolog and the journal.",
            example: "\"syslog\""),
        .setting(
            "time_zone", \.timeZone, optional: .text(), "The zone of times without one; by default the machine's.",
            example: "\"Europe/Berlin\""),
        .setting(
            "text", \.text, optional: .choice,
            "Lines that are not JSON: quarantine (default); lines: each becomes the message of a record; blocks, with"
                + " read: consecutive ones become one record, until a JSON line, half a second of silence or 64 KiB.",
            example: "\"lines\""),
        .setting(
            "not_utf8", \.notUTF8, optional: .choice,
            "Lines with bytes that are not UTF-8: replace writes U+FFFD for them, quarantine keeps the line. By default records "
                + "are repaired, events are not.", example: "\"replace\""),
        .setting(
            "priority", \.priority, optional: .choice(by: \.name),
            "The priority of its events, if neither the event nor a rule sets it.",
            example: "\"normal\""),
        .setting(
            "may_be_critical", \.mayBeCritical, optional: .boolean,
            "true lets its events declare themselves critical; by default true, for incoming false.",
            example: "true"
        ),
        .setting("country", \.country, optional: .country, "The country of its events.", example: "\"IT\""),
        .setting(
            "version", \.version, optional: .text(), "Its version, if the events do not have it.", example: "\"2.1.0\""),
        .setting("build", \.build, optional: .text(), "Its build, if the events do not have it.", example: "\"2107\""),
        .setting(
            "destinations", \.destinations, optional: .list(of: .destinationName, unique: true),
            "The destinations of its events; by default all with by_default.", example: "[\"main\"]"),
        .section("limits", \.limits, "Limits of its events, as in [limits]."),
    ]
}

/// How severe an entry of the journal is, in journalctl's words, the most severe first.
package enum JournalPriority: String, Sendable, CaseIterable {
    case emerg, alert, crit, err, warning, notice, info, debug
}

/// What becomes of lines with bytes that are not UTF-8.
package enum BytesHandling: String, Sendable, CaseIterable {
    case quarantine
    /// Each such byte becomes U+FFFD.
    case replace
}
