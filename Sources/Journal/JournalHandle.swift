internal import CJournal
internal import EventLoops
internal import Glibc

/// An open journal of the library's. Used by one thread at a time.
struct JournalHandle: ~Copyable {
    private let raw: OpaquePointer

    /// Opens files, all or none, or the journals of a directory, or this machine's.
    init(_ files: [String]? = nil, directory: String? = nil, longest: Int = 64) throws(JournalError) {
        var words = [CChar](repeating: 0, count: 256)
        guard cjournal_load(&words, words.count) else {
            let reason = String(decoding: words.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            throw JournalError(.library, "libsystemd cannot be loaded (\(reason)); install the package libsystemd0")
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

    private static func error(_ result: Int32, _ path: String?) -> JournalError {
        switch -result {
        case ENOENT: JournalError(.missing, "there is no directory \(path ?? "of a journal")")
        // A file that is being made.
        case ENODATA: JournalError(.missing, "there is nothing in \(path ?? "the journal") yet")
        case EACCES, EPERM:
            JournalError(.noPermission, "\(path ?? "the journal") may not be read by the agent's user")
        default:
            JournalError(.failed, "the journal cannot be opened: \(SystemError("sd_journal_open", number: -result))")
        }
    }

    /// Lets the index find the entries with all matches of one of the groups; all if there are none. It loses its place: seek after it.
    func match(_ groups: [[String]]) throws(JournalError) {
        cjournal_match_all(raw)
        for (number, group) in groups.enumerated() {
            if number > 0 { _ = try checked(cjournal_or(raw)) }
            for match in group { _ = try checked(cjournal_match(raw, match, match.utf8.count)) }
        }
    }

    func seekHead() throws(JournalError) { _ = try checked(cjournal_seek_head(raw)) }
    func seek(_ cursor: String) throws(JournalError) { _ = try checked(cjournal_seek_cursor(raw, cursor)) }

    /// Goes to an entry; false: it is not there, and the one that would follow it is the next.
    func find(_ position: JournalPosition) throws(JournalError) -> Bool {
        try seek(position.cursor)
        if try next(), self.position?.entry == position.entry { return true }
        try seek(position.cursor)
        return false
    }

    /// Goes to the first entry; false where there is none.
    func goToFirst() throws(JournalError) -> Bool {
        try seekHead()
        return try next()
    }

    /// Goes to the last entry; false where there is none.
    func goToLast() throws(JournalError) -> Bool {
        _ = try checked(cjournal_seek_tail(raw))
        return try checked(cjournal_previous(raw)) > 0
    }

    /// Goes to the next entry; false at the end.
    func next() throws(JournalError) -> Bool { try checked(cjournal_next(raw)) > 0 }

    /// Goes to the entry before; false at the beginning.
    func previous() throws(JournalError) -> Bool { try checked(cjournal_previous(raw)) > 0 }

    /// Where it is; by its time, all before it was looked at.
    var position: JournalPosition? {
        var cursor: UnsafeMutablePointer<CChar>?
        guard cjournal_cursor(raw, &cursor) >= 0, let cursor else { return nil }
        defer { free(cursor) }
        return JournalPosition(String(cString: cursor), seenUntil: time ?? Timestamp(nanoseconds: 0))
    }

    /// When journald took the entry.
    var time: Timestamp? {
        var microseconds: UInt64 = 0
        guard cjournal_time(raw, &microseconds) >= 0 else { return nil }
        return JournalHandle.time(microseconds)
    }

    private static func time(_ microseconds: UInt64) -> Timestamp {
        Timestamp(nanoseconds: Int64(clamping: microseconds).multipliedSaturating(by: 1000))
    }

    /// Calls `body` for each field of the entry, as `NAME=value`.
    func forEachField(_ body: (UnsafeBufferPointer<UInt8>) -> Void) {
        var data: UnsafeRawPointer?
        var length = 0
        while cjournal_field(raw, &data, &length) > 0, let start = data {
            body(UnsafeBufferPointer(start: start.assumingMemoryBound(to: UInt8.self), count: length))
        }
    }

    /// The times of the oldest and of the newest entry; nil where there is none.
    var times: (from: Timestamp, until: Timestamp)? {
        var (from, until): (UInt64, UInt64) = (0, 0)
        guard cjournal_times(raw, &from, &until) > 0 else { return nil }
        return (JournalHandle.time(from), JournalHandle.time(until))
    }

    /// Readable when something has changed. The journal's own: not to be closed.
    func descriptor() throws(JournalError) -> Int32 { try checked(cjournal_descriptor(raw)) }

    /// Takes up what has changed: whether files have come or gone.
    func process() throws(JournalError) -> Bool { try checked(cjournal_process(raw)) == 2 }

    /// After how long to look even so, on a file system without notice; nil: not by time.
    var patience: Duration? {
        let microseconds = cjournal_patience(raw)
        return microseconds < 0 ? nil : .microseconds(microseconds)
    }

    private func checked(_ result: Int32) throws(JournalError) -> Int32 {
        guard result < 0 else { return result }
        throw JournalError(.failed, "the journal cannot be read: \(SystemError("sd_journal", number: -result))")
    }
}
