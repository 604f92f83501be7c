/// A field of journald's entries, and the member of the event that it becomes.
///
/// If OpenTelemetry's semantic conventions have an attribute for the field, the member has its name;
/// otherwise it keeps journald's. Sources: systemd.journal-fields(7); OpenTelemetry semantic conventions
/// 1.37, "General logs", "Process", "Code", "Container".
struct JournalField: Sendable, Equatable {
    /// journald's name.
    let name: [UInt8]
    /// Name of the member.
    let member: [UInt8]
    /// Text before the value: a comma, and the member's name in quotes with a colon. Made once, not for each
    /// entry.
    let opening: [UInt8]
    /// Whether a value of digits becomes a JSON number.
    let isNumber: Bool
    /// Whether only journald can set the field.
    var isTrusted: Bool { JournalField.isTrusted(name[...]) }

    /// The field of a name of journald's.
    init(_ name: String) {
        let known = JournalField.known[name]
        self.name = Array(name.utf8)
        member = Array((known?.member ?? name).utf8)
        opening = JournalField.opening(member[...])
        isNumber = known?.isNumber ?? false
    }

    /// Whether a name is of a trusted field: it begins with an underscore, which journald accepts from no
    /// program (systemd.journal-fields(7)).
    static func isTrusted(_ name: ArraySlice<UInt8>) -> Bool { name.first == UInt8(ascii: "_") }

    /// A comma, and a name in quotes with a colon. Names need no escapes: they consist of capital letters,
    /// digits and underscores, or are in the table below.
    static func opening(_ name: ArraySlice<UInt8>) -> [UInt8] {
        Array(",\"".utf8) + Array(name) + Array("\":".utf8)
    }

    /// Fields that each entry with them keeps, beside its message and its time.
    static let usual = [
        "PRIORITY", "_SYSTEMD_UNIT", "SYSLOG_IDENTIFIER", "_PID", "_HOSTNAME", "_BOOT_ID", "_LINE_BREAK",
    ]

    /// Fields whose members have other names than journald's. With `*` they must be known, so that the member
    /// is renamed.
    static let withOtherNames = known.keys.sorted()

    /// Members by journald's names.
    private static let known: [String: (member: String, isNumber: Bool)] = [
        "MESSAGE": ("message", false),
        "PRIORITY": ("PRIORITY", true),
        "_PID": ("process.pid", true),
        "TID": ("thread.id", true),
        "_UID": ("process.user.id", true),
        "_EXE": ("process.executable.path", false),
        "_COMM": ("process.executable.name", false),
        "_CMDLINE": ("process.command_line", false),
        "_HOSTNAME": ("host.name", false),
        "_MACHINE_ID": ("host.id", false),
        "CODE_FILE": ("code.file.path", false),
        "CODE_LINE": ("code.line.number", true),
        "CODE_FUNC": ("code.function.name", false),
        "CONTAINER_ID_FULL": ("container.id", false),
        "CONTAINER_NAME": ("container.name", false),
        "IMAGE_NAME": ("container.image.name", false),
    ]
}
