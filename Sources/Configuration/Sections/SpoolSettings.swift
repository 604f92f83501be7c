package import Model

/// `[spool]`: reading the spool, the directory where apps write their events.
public struct SpoolSettings: SettingsSection {
    /// What happens to a file that has been read.
    package enum AfterRead: String, Sendable, CaseIterable {
        /// `delete` removes it. `keep` leaves it where it is, for another program to remove.
        case delete, keep
        /// The file is moved into dated directories.
        case archive
    }

    /// Path of the spool.
    package var directory = "/var/spool/spoolship"
    /// What happens when the queue is full.
    package var whenFull = WhenFull.wait
    /// Bytes in the spool beyond which `wait` gives up the oldest events of destinations that acknowledge
    /// nothing; 0 for no bound.
    package var maxUnread = 0
    /// What happens to a file that has been read.
    package var afterRead = AfterRead.delete
    /// Directory of archived files; nil is `.spoolship/archive` in the spool.
    package var archiveDirectory: String?
    /// Age at which archived files are removed; zero keeps them.
    package var archiveMaxAge = Duration.seconds(30 * 86_400)
    /// Most bytes of archived files, 1 GiB; 0 for no bound.
    package var archiveMaxSize = 1 << 30
    /// Largest event in bytes, without its line feed.
    public var maxEventSize = 1_000_000
    /// Most files that are open at once.
    package var maxOpenFiles = 512
    /// Time between looks at file systems without inotify.
    package var pollInterval = Duration.seconds(5)
    /// Most bytes of quarantined lines, 10 MiB.
    package var quarantineMaxSize = 10 << 20

    /// The defaults.
    package init() {}

    private static let archiveAgeType = ValueType<Duration>.duration(
        .seconds(60) ... .seconds(3650 * 86_400), zero: "no limit")
    private static let unreadType = ValueType<Int>.size(1 << 20...1 << 47, zero: "no bound")
    private static let archiveSizeType = ValueType<Int>.size(1 << 20...1 << 47, zero: "no bound")

    static let entries: [Entry<SpoolSettings>] = [
        .setting("directory", \.directory, .path, "Where apps write their events.", restart: true),
        .pair(
            "when_full", .init("then", \.whenFull, .choice), .init("max_unread", \.maxUnread, unreadType),
            "When the queue is full: wait leaves events in the spool; evict gives up the lowest priority"
                + " first, then the oldest of the app that holds most. If more than max_unread is in the"
                + " spool, wait gives up the oldest events of destinations that acknowledge nothing: a dead"
                + " one cannot fill the disk."),
        .setting("max_unread", \.maxUnread, unreadType, "Now when_full.max_unread.")
            .renamed(to: "when_full.max_unread"),
        .setting(
            "after_read", \.afterRead, .choice,
            "keep if something else removes the files; archive to keep them for a while, in "
                + ".spoolship/archive.",
            restart: true),
        .setting(
            "archive_directory", \.archiveDirectory, optional: .path,
            "Where archive moves files; by default .spoolship/archive in the spool.", restart: true
        ).retired("it must be on the spool's file system, where .spoolship/archive in the spool is as good"),
        .pair(
            "archive", .init("max_age", \.archiveMaxAge, archiveAgeType),
            .init("max_size", \.archiveMaxSize, archiveSizeType),
            "How long archived files are kept, and how much space they may take; the oldest are removed"
                + " first.",
            restart: true),
        .setting("archive_max_age", \.archiveMaxAge, archiveAgeType, "Now archive.max_age.")
            .renamed(to: "archive.max_age"),
        .setting("archive_max_size", \.archiveMaxSize, archiveSizeType, "Now archive.max_size.")
            .renamed(to: "archive.max_size"),
        .setting(
            "max_event_size", \.maxEventSize, .size(1 << 10...64 << 20),
            "Larger events are quarantined with their first 4 KiB. Raise it if yours are larger; it costs "
                + "memory.",
            restart: true),
        .setting(
            "max_open_files", \.maxOpenFiles, .count(16...1_000_000),
            "Raise it when more files than this are written at once; the unit's LimitNOFILE must allow it.",
            restart: true),
        .setting(
            "poll_interval", \.pollInterval, .duration(.milliseconds(100) ... .seconds(3600)),
            "How often file systems without inotify are looked at.", restart: true
        ).retired("only file systems without inotify are polled, every 5s"),
        .setting(
            "quarantine_max_size", \.quarantineMaxSize, .size(64 << 10...1 << 40),
            "How much of the unreadable lines is kept; the app that holds most gives up its oldest, which "
                + "are counted."
        ),
    ]
}
