internal import CJournal
internal import EventLoops
internal import Glibc

/// An open journal of libsystemd (sd-journal(3)), closed with the value. Used by one thread at a time, the
/// one that opened it: only there does `CJournal` map zeros for pages of a truncated file.
struct JournalHandle: ~Copyable {
    /// The library's object; owned.
    private let raw: OpaquePointer

    /// Opens a journal.
    ///
    /// - Parameters:
    ///   - files: the files to open, all or none; nil opens a directory.
    ///   - directory: the directory to open, if `files` is nil; nil for the journal of this machine.
    ///   - longest: bytes of a field that are read; longer fields come cut. 64 is enough for cursors and
    ///     times.
    init(_ files: [String]? = nil, directory: String? = nil, longest: Int = 64) throws(JournalError) {
        var words = [CChar](repeating: 0, count: 256)
        guard cjournal_load(&words, words.count) else {
            let reason = String(
                decoding: words.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            throw JournalError(
                .library, "libsystemd cannot be loaded (\(reason)); install the package libsystemd0")
        }
        var opened: OpaquePointer?
        let result: Int32
        if let files {
            let paths = files.map { strdup($0) }
            defer { for path in paths { free(path) } }
            var list = paths.map { UnsafePointer($0) } + [nil]
            result = cjournal_open_files(&opened, &list, longest)
        } else {
            result = cjournal_open(&opened, directory, longest)
        }
        guard result >= 0, let opened else { throw JournalHandle.error(result, files?.first ?? directory) }
        raw = opened
    }

    deinit { cjournal_close(raw) }

    /// The error for the errno with which opening the journal failed.
    private static func error(_ result: Int32, _ path: String?) -> JournalError {
        switch -result {
        case ENOENT: JournalError(.missing, "there is no directory \(path ?? "of a journal")")
        // A file that is being made has no header yet.
        case ENODATA: JournalError(.missing, "there is nothing in \(path ?? "the journal") yet")
        case EACCES, EPERM:
            JournalError(.noPermission, "\(path ?? "the journal") may not be read by the agent's user")
        default:
            JournalError(
                .failed, "the journal cannot be opened: \(SystemError("sd_journal_open", number: -result))")
        }
    }

    /// Lets only entries pass that have all matches of at least one group; all entries if there are no
    /// groups. The position is lost, so a seek must follow.
    func match(_ groups: [[String]]) throws(JournalError) {
        cjournal_match_all(raw)
        for (number, group) in groups.enumerated() {
            if number > 0 {
                _ = try checked(cjournal_or(raw))
            }
            for match in group { _ = try checked(cjournal_match(raw, match, match.utf8.count)) }
        }
    }

    /// Goes before the first entry, so that `next` reads it.
    func seekHead() throws(JournalError) { _ = try checked(cjournal_seek_head(raw)) }
    /// Goes before the entry of a cursor, which need not exist: then before the entry that would follow it.
    func seek(_ cursor: String) throws(JournalError) { _ = try checked(cjournal_seek_cursor(raw, cursor)) }

    /// Makes the entry of a position the current one. Returns false if it is not there; then the entry that
    /// would follow it is the next.
    func find(_ position: JournalPosition) throws(JournalError) -> Bool {
        try seek(position.cursor)
        if try next(), self.position?.entry == position.entry { return true }
        try seek(position.cursor)
        return false
    }

    /// Goes to the first entry; returns false if the journal is empty.
    func goToFirst() throws(JournalError) -> Bool {
        try seekHead()
        return try next()
    }

    /// Goes to the last entry; returns false if the journal is empty.
    func goToLast() throws(JournalError) -> Bool {
        _ = try checked(cjournal_seek_tail(raw))
        return try checked(cjournal_previous(raw)) > 0
    }

    /// Goes to the next entry; returns false at the end.
    func next() throws(JournalError) -> Bool { try checked(cjournal_next(raw)) > 0 }

    /// Goes to the previous entry; returns false at the beginning.
    func previous() throws(JournalError) -> Bool { try checked(cjournal_previous(raw)) > 0 }

    /// The position of the current entry; nil before the first `next`. All before the entry's time counts as
    /// seen.
    var position: JournalPosition? {
        var cursor: UnsafeMutablePointer<CChar>?
        guard cjournal_cursor(raw, &cursor) >= 0, let cursor else { return nil }
        defer { free(cursor) }
        return JournalPosition(String(cString: cursor), seenUntil: time ?? Timestamp(nanoseconds: 0))
    }

    /// The time at which journald received the entry.
    var time: Timestamp? {
        var microseconds: UInt64 = 0
        guard cjournal_time(raw, &microseconds) >= 0 else { return nil }
        return JournalHandle.time(microseconds)
    }

    /// A time of microseconds since 1970.
    private static func time(_ microseconds: UInt64) -> Timestamp {
        Timestamp(nanoseconds: Int64(clamping: microseconds).multipliedSaturating(by: 1000))
    }

    /// Calls `body` for each field of the current entry, `NAME=value`. The bytes are valid until `body`
    /// returns.
    func forEachField(_ body: (UnsafeBufferPointer<UInt8>) -> Void) {
        var data: UnsafeRawPointer?
        var length = 0
        while cjournal_field(raw, &data, &length) > 0, let start = data {
            body(UnsafeBufferPointer(start: start.assumingMemoryBound(to: UInt8.self), count: length))
        }
    }

    /// Times of the oldest and the newest entry; nil if the journal is empty.
    var times: (from: Timestamp, until: Timestamp)? {
        var (from, until): (UInt64, UInt64) = (0, 0)
        guard cjournal_times(raw, &from, &until) > 0 else { return nil }
        return (JournalHandle.time(from), JournalHandle.time(until))
    }

    /// A file descriptor that is readable when the journal has changed. It belongs to the handle and must not
    /// be closed.
    func descriptor() throws(JournalError) -> Int32 { try checked(cjournal_descriptor(raw)) }

    /// Reads the pending changes; returns whether files were added or removed (SD_JOURNAL_INVALIDATE).
    func process() throws(JournalError) -> Bool { try checked(cjournal_process(raw)) == 2 }

    /// Time after which to look although the descriptor is not readable, on a file system without inotify, as
    /// NFS; nil if the descriptor is enough.
    var patience: Duration? {
        let microseconds = cjournal_patience(raw)
        return microseconds < 0 ? nil : .microseconds(microseconds)
    }

    /// A result of the library, or an error for a negative one.
    private func checked(_ result: Int32) throws(JournalError) -> Int32 {
        guard result < 0 else { return result }
        throw JournalError(
            .failed, "the journal cannot be read: \(SystemError("sd_journal", number: -result))")
    }
}
