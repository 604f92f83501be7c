internal import CJournal
internal import EventLoops
internal import Glibc

/// An open journal of the library's. Used by one thread at a time.
struct JournalHandle: ~Copyable {
    private let raw: OpaquePointer

    /// Opens the journals of a directory, or this machine's.
    init(directory: String?, longest: Int) throws(JournalError) {
        var words = [CChar](repeating: 0, count: 256)
        guard cjournal_load(&words, words.count) else {
            let reason = String(decoding: words.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            throw JournalError(.library, "libsystemd cannot be loaded (\(reason)); install the package libsystemd0")
        }
        var opened: OpaquePointer?
        let result = cjournal_open(&opened, directory, longest)
        guard result >= 0, let opened else { throw JournalHandle.error(result, directory) }
        raw = opened
    }

    deinit { cjournal_close(raw) }

    private static func error(_ result: Int32, _ directory: String?) -> JournalError {
        switch -result {
        case ENOENT: JournalError(.missing, "there is no directory \(directory ?? "of a journal")")
        case EACCES, EPERM:
            JournalError(.noPermission, "\(directory ?? "the journal") may not be read by the agent's user")
        default:
            JournalError(.failed, "the journal cannot be opened: \(SystemError("sd_journal_open", number: -result))")
        }
    }

    /// Which files of a directory and the directories in it are journals that cannot be opened, and why.
    static func unreadable(in directories: [String]) -> (files: Int, bad: [(path: String, error: Int32)]) {
        var files = 0
        var bad: [(path: String, error: Int32)] = []
        for path in directories.flatMap({ journals(in: $0, depth: 1) }) {
            files += 1
            let result = cjournal_check(path)
            if result < 0, result != -ENODATA { bad.append((path, -result)) }
        }
        return (files, bad)
    }

    /// journald's files: `*.journal`. What it has moved aside ends with `~`, and is no more read than by journalctl.
    private static func journals(in directory: String, depth: Int) -> [String] {
        ((try? WholeFile.names(in: directory)) ?? []).flatMap { name -> [String] in
            if name.hasSuffix(".journal") { return ["\(directory)/\(name)"] }
            return depth > 0 && !name.hasPrefix(".") ? journals(in: "\(directory)/\(name)", depth: depth - 1) : []
        }
    }

    // MARK: Finding entries

    /// Lets the index find the entries that have all matches of one of the groups.
    func match(_ groups: [[String]]) throws(JournalError) {
        for (number, group) in groups.enumerated() {
            if number > 0 { _ = try checked(cjournal_or(raw)) }
            for match in group { _ = try checked(cjournal_match(raw, match, match.utf8.count)) }
        }
    }

    func seekHead() throws(JournalError) { _ = try checked(cjournal_seek_head(raw)) }
    func seek(_ cursor: String) throws(JournalError) { _ = try checked(cjournal_seek_cursor(raw, cursor)) }

    /// Goes to the last entry; false where there is none.
    func goToLast() throws(JournalError) -> Bool {
        _ = try checked(cjournal_seek_tail(raw))
        return try checked(cjournal_previous(raw)) > 0
    }

    /// Goes to the next entry; false at the end.
    func next() throws(JournalError) -> Bool { try checked(cjournal_next(raw)) > 0 }

    /// Goes to the entry before; false at the beginning.
    func previous() throws(JournalError) -> Bool { try checked(cjournal_previous(raw)) > 0 }

    /// Whether the entry is the one that a cursor names, or its copy: a journal that moves from memory to the disk is copied, and counted again.
    func isAt(_ cursor: String) -> Bool { self.cursor.map { JournalPlace.isSameEntry($0, cursor) } ?? false }

    // MARK: The entry

    var cursor: String? {
        var cursor: UnsafeMutablePointer<CChar>?
        guard cjournal_cursor(raw, &cursor) >= 0, let cursor else { return nil }
        defer { free(cursor) }
        return String(cString: cursor)
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

    // MARK: News

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
