internal import CSQLite
internal import EventLoops
internal import Glibc

/// One SQLite connection to the queue's file. It knows pages, transactions and error codes, and nothing
/// of events.
///
/// The connection is opened without SQLite's mutex: it must be used on the store's loop only.
final class Database {
    /// SQLite's connection; nil after `close`.
    private(set) var handle: OpaquePointer?
    let path: String
    /// Pages in the WAL after the last commit, counted by the hook that `watchWAL` sets.
    fileprivate(set) var walPages = 0
    private let walPath: String
    /// Inode of the WAL when it was first seen, to notice that another file has taken its place.
    private var walInode: UInt64?
    /// Whether the WAL was missing or replaced when `lookForWAL` last checked.
    private(set) var hasLostWAL = false
    /// BEGIN and COMMIT, prepared once: they run for each transaction.
    private var begun: Statement?
    private var committed: Statement?
    /// True during a COMMIT or a sync, when `errno` is more reliable than SQLite's own error number.
    private var isEnding = false

    /// Opens a file and creates it if it is missing.
    ///
    /// - Parameters:
    ///   - vfs: name of the SQLite VFS; nil for the system's. A VFS for tests creates its file itself.
    ///   - readOnly: opens an existing file for reading; `path` may then be a `file:` URI.
    ///   - isScratch: a database in memory, which has no file to protect.
    init(path: String, vfs: String?, readOnly: Bool = false, isScratch: Bool = false) throws(QueueError) {
        self.path = path
        walPath = "\(path)-wal"
        // Created here with mode 0600, whatever the umask: the events must not be readable for others.
        // SQLite gives the WAL and its index the mode of the database.
        if !readOnly, !isScratch, vfs == nil {
            let made = Glibc.open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
            if made >= 0 {
                Glibc.close(made)
            }
        }
        let access =
            readOnly ? SQLITE_OPEN_READONLY | SQLITE_OPEN_URI : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
        let code = sqlite3_open_v2(path, &handle, access | SQLITE_OPEN_NOMUTEX, vfs)
        guard code == SQLITE_OK else {
            let error = error(code)
            sqlite3_close_v2(handle)
            handle = nil
            throw error
        }
        sqlite3_extended_result_codes(handle, 1)
        // Another program's lock, such as that of `sqlite3 queue.sqlite`, lasts for a moment; 5 s
        // outlast it.
        sqlite3_busy_timeout(handle, 5_000)
    }

    deinit { sqlite3_close_v2(handle) }

    /// Closes the connection after a last WAL checkpoint. Statements that still exist keep the
    /// connection open until they are freed: https://www.sqlite.org/c3ref/close.html
    func close() {
        begun = nil
        committed = nil
        sqlite3_close_v2(handle)
        handle = nil
    }

    /// Runs statements whose results are not needed.
    func execute(_ sql: String) throws(QueueError) {
        let code = sqlite3_exec(handle, sql, nil, nil, nil)
        guard code == SQLITE_OK else { throw error(code) }
    }

    /// Compiles a statement for repeated use.
    func prepare(_ sql: String) throws(QueueError) -> Statement { try Statement(sql, in: self) }

    /// The first column of the first row; nil without a row.
    func integer(_ sql: String) throws(QueueError) -> Int? { try prepare(sql).first { $0.integer(0) } }

    /// Whether the file was removed or replaced while open. Anything written now is lost once the file
    /// is closed.
    var hasMoved: Bool { csqlite_has_moved(handle) != 0 }

    /// Checks whether the WAL was removed or replaced. If so, the next process would not find the
    /// transactions that are only in it.
    func lookForWAL() {
        var status = stat()
        let isThere = stat(walPath, &status) == 0
        // If the directory is not accessible, nothing can be concluded.
        guard isThere || errno == ENOENT else { return }
        let inode = isThere ? UInt64(status.st_ino) : nil
        if walInode == nil {
            walInode = inode
        }
        hasLostWAL = inode != walInode
    }

    /// Rows that the last writing statement changed.
    var changes: Int { Int(sqlite3_changes(handle)) }

    /// Begins a transaction, unless one is open. It only reads until its first write.
    ///
    /// Reads happen in a transaction that stays open, which saves the locks that SQLite would take and
    /// release for each statement. This blocks no other writer, because the agent is the only one.
    func begin() throws(QueueError) {
        guard sqlite3_get_autocommit(handle) != 0 else { return }
        if begun == nil {
            begun = try prepare("BEGIN")
        }
        try begun?.run()
    }

    /// Ends the open transaction and makes its changes durable, as far as `synchronous` says.
    func commit() throws(QueueError) {
        if committed == nil {
            committed = try prepare("COMMIT")
        }
        // `errno` is cleared, because `error` reads it if the COMMIT fails, and an older value would
        // mislead.
        isEnding = true
        errno = 0
        defer { isEnding = false }
        try committed?.run()
    }

    /// Discards the open transaction, if there is one.
    func rollback() {
        // SQLite rolls back by itself after some errors, such as SQLITE_FULL:
        // https://www.sqlite.org/lang_transaction.html#response_to_errors_within_a_transaction
        guard handle != nil, sqlite3_get_autocommit(handle) == 0 else { return }
        // A failure is harmless: nothing was committed, and SQLite discards the changes at the next use
        // or close.
        _ = sqlite3_exec(handle, "ROLLBACK", nil, nil, nil)
    }

    /// Counts the WAL's pages at each commit. The hook replaces SQLite's automatic checkpoints;
    /// `checkpointIfDue` decides when to checkpoint instead.
    func watchWAL() {
        let me = Unmanaged.passUnretained(self).toOpaque()
        sqlite3_wal_hook(
            handle,
            { context, _, _, pages in
                // The context is this database, which owns the connection; SQLite calls the hook during
                // COMMIT only.
                if let context {
                    Unmanaged<Database>.fromOpaque(context).takeUnretainedValue().walPages = Int(pages)
                }
                return SQLITE_OK
            }, me)
    }

    /// Writes the WAL's content into the database file, as far as readers of older states allow.
    ///
    /// Once all of it is written, the next commit starts the WAL from its beginning.
    ///
    /// - Parameter empties: whether the WAL is also truncated. Otherwise it keeps deleted texts until
    ///   other pages overwrite them.
    func checkpointWAL(empties: Bool = false) throws(QueueError) {
        // A transaction that only read may still be open, and SQLite does not checkpoint within a
        // transaction.
        if sqlite3_get_autocommit(handle) == 0 {
            try commit()
        }
        var pages: Int32 = 0
        var written: Int32 = 0
        let mode = empties ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE
        let code = sqlite3_wal_checkpoint_v2(handle, nil, mode, &pages, &written)
        guard code == SQLITE_OK || code == SQLITE_BUSY else { throw error(code) }
        if code == SQLITE_OK, pages >= 0 {
            walPages = pages == written ? 0 : Int(pages)
        }
    }

    /// Frees the cached pages. The next transaction reads those that it needs from the file again.
    func releasePages() throws(QueueError) {
        // A transaction that only read may still be open. It holds the first page, and while one page is held
        // SQLite keeps the block of memory that they all are in.
        if sqlite3_get_autocommit(handle) == 0 {
            try commit()
        }
        sqlite3_db_release_memory(handle)
    }

    /// Makes durable what was committed with `synchronous = NORMAL`.
    func syncWAL() throws(QueueError) {
        isEnding = true
        errno = 0
        defer { isEnding = false }
        let code = csqlite_sync_wal(handle)
        guard code == SQLITE_OK else { throw error(code) }
    }

    /// The error for a SQLite result code, with the system's message if there is one.
    ///
    /// - Parameter isReading: whether the failed statement only reads. It distinguishes a full file from a
    ///   damaged one.
    func error(_ code: Int32, isReading: Bool = false) -> QueueError {
        // When a COMMIT or a sync fails, SQLite does not record the error number:
        // `sqlite3_system_errno` would return that of an earlier failure.
        let number = isEnding && code & 0xFF == SQLITE_IOERR && code != Database.shortRead ? errno : 0
        let system = number == 0 ? sqlite3_system_errno(handle) : number
        let words = String(cString: handle == nil ? sqlite3_errstr(code) : sqlite3_errmsg(handle))
        let cause = system == 0 ? words : "\(words): \(SystemError.message(system))"
        switch code & 0xFF {
        case SQLITE_CORRUPT, SQLITE_NOTADB:
            return damage(cause)
        case SQLITE_FULL:
            guard hasDiskRoom else { return systemError(code, ENOSPC, cause) }
            // A read needs no room. It asked for a page far beyond the end of the file, so a page
            // number is damaged.
            guard !isReading else { return damage(cause) }
            return QueueError(.fileFull, "\(path) has reached its maximum size")
        case SQLITE_BUSY, SQLITE_LOCKED:
            let owner = WALReader.find(path) ?? "another program"
            return QueueError(.io, "\(path) is locked by \(owner): stop it")
        case SQLITE_READONLY, SQLITE_IOERR, SQLITE_CANTOPEN, SQLITE_PERM, SQLITE_AUTH:
            return systemError(code, system, cause)
        case SQLITE_ERROR, SQLITE_CONSTRAINT, SQLITE_MISMATCH, SQLITE_TOOBIG:
            // Our statements match our tables. If SQLite says otherwise, the schema was damaged.
            return QueueError(.io, "\(path): \(cause)", isDamage: system == 0)
        default:
            return QueueError(.io, "\(path): \(cause)")
        }
    }

    /// The error for a failure that the system reported, or seems to have reported.
    private func systemError(_ code: Int32, _ system: Int32, _ cause: String) -> QueueError {
        let directory = String(path[..<(path.lastIndex(of: "/") ?? path.endIndex)])
        return switch system {
        case ENOSPC, EDQUOT:
            QueueError(.diskFull, "no room for \(path); free some space on its file system")
        case _ where system == EROFS || code == SQLITE_READONLY && WholeFile.isReadOnly(directory):
            QueueError(
                .readOnly, "\(path) is on a read-only file system; remount it writable, if need be after fsck"
            )
        case EACCES, EPERM:
            QueueError(.noPermission, "\(path) may not be opened; run this as the agent's user or root")
        case _ where code == SQLITE_READONLY && access(path, W_OK) == 0:
            // The system would let us write, so it is the format's version number in the header that
            // makes SQLite open the file read-only.
            damage(cause)
        case _ where code & 0xFF == SQLITE_READONLY:
            QueueError(.readOnly, "\(path) cannot be written (\(cause)); check the file system and the owner")
        default:
            QueueError(.io, "\(path): \(cause)", isDamage: system == 0 && code == Database.shortRead)
        }
    }

    /// Whether SQLITE_FULL means that `max_page_count` is reached. SQLite uses the same code for a full
    /// disk and reports no cause.
    ///
    /// SQLite has already rolled the transaction back, so the number of used pages says nothing. The
    /// disk does: if it has room for more than any transaction writes, the file's own bound was
    /// reached. That happens only while rows are written, never in a COMMIT.
    private var hasDiskRoom: Bool {
        let flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW
        guard !isEnding, let file = try? Descriptor(checking: open("\(path).probe", flags, 0o600), "open")
        else {
            return false
        }
        unlink("\(path).probe")
        return posix_fallocate(file.raw, 0, Database.probed) == 0
    }

    /// Bytes that the file can still take: free pages, and pages up to its bound.
    func room() throws(QueueError) -> Int {
        let limit = try integer("PRAGMA max_page_count") ?? 0
        let used = try integer("PRAGMA page_count") ?? 0
        let free = try integer("PRAGMA freelist_count") ?? 0
        return (limit - used + free) * (try integer("PRAGMA page_size") ?? 4_096)
    }

    /// SQLITE_IOERR_SHORT_READ, a macro that Swift does not import: the file ends in the middle of a
    /// page.
    private static let shortRead = SQLITE_IOERR | 2 << 8

    /// Bytes that `hasDiskRoom` tries to allocate: more than any transaction writes.
    private static let probed: off_t = 8 << 20
}
