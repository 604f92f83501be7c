/// What is read of an entry: journald's fields, and the members that they become.
///
/// Where OpenTelemetry's semantic conventions have an attribute for a field, the member has its name; else it keeps journald's.
/// Source: systemd.journal-fields(7); OpenTelemetry semantic conventions 1.37, "General logs", "Process", "Code", "Container".
struct JournalField: Sendable, Equatable {
    /// journald's name.
    let name: [UInt8]
    let member: [UInt8]
    /// What goes before its value: a comma, and the member with its quotes and colon.
    let opening: [UInt8]
    let isNumber: Bool
    var isTrusted: Bool { JournalField.isTrusted(name[...]) }

    init(_ name: String) {
        let known = JournalField.known[name]
        self.name = Array(name.utf8)
        member = Array((known?.member ?? name).utf8)
        opening = JournalField.opening(member[...])
        isNumber = known?.isNumber ?? false
    }

    /// Whether only journald sets it, and no program can.
    static func isTrusted(_ name: ArraySlice<UInt8>) -> Bool { name.first == UInt8(ascii: "_") }

    static func opening(_ name: ArraySlice<UInt8>) -> [UInt8] { Array(",\"".utf8) + Array(name) + Array("\":".utf8) }

    /// The fields of each entry that has them, besides its message and its time.
    static let usual = [
        "PRIORITY", "_SYSTEMD_UNIT", "SYSLOG_IDENTIFIER", "_PID", "_HOSTNAME", "_BOOT_ID", "_LINE_BREAK",
    ]

    /// The fields whose members are named otherwise.
    static let withOtherNames = known.keys.sorted()

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
