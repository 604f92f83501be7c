internal import CSQLite
internal import EventLoops
internal import Glibc

/// One connection to the queue's file: opened, configured, closed. It knows pages and transactions, not events.
final class Database {
    /// SQLite's connection; open until `close`.
    private(set) var handle: OpaquePointer?
    let path: String
    /// Pages in the WAL after the last commit.
    fileprivate(set) var walPages = 0
    private let walPath: String
    /// The WAL that is written to, as it was first seen.
    private var walInode: UInt64?
    /// Whether another file is in its place, or none, as of the last look.
    private(set) var hasLostWAL = false
    private var begun: Statement?
    private var committed: Statement?
    private var isEnding = false

    /// Opens a file, makes it if it is missing.
    init(path: String, vfs: String?, readOnly: Bool = false, isScratch: Bool = false) throws(QueueError) {
        self.path = path
        walPath = "\(path)-wal"
        // Events are nobody else's, whatever the mask and the directory; SQLite gives its other files the same mode.
        if !readOnly, !isScratch, vfs == nil {
            let made = Glibc.open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
            if made >= 0 { Glibc.close(made) }
        }
        let access = readOnly ? SQLITE_OPEN_READONLY | SQLITE_OPEN_URI : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
        let code = sqlite3_open_v2(path, &handle, access | SQLITE_OPEN_NOMUTEX, vfs)
        guard code == SQLITE_OK else {
            let error = error(code)
            sqlite3_close_v2(handle)
            handle = nil
            throw error
        }
        sqlite3_extended_result_codes(handle, 1)
        sqlite3_busy_timeout(handle, 5_000)
    }

    deinit { sqlite3_close_v2(handle) }

    /// Closes the connection; statements end with their owners. A last WAL checkpoint is made.
    func close() {
        begun = nil
        committed = nil
        sqlite3_close_v2(handle)
        handle = nil
    }

    /// Runs statements that give nothing worth reading.
    func execute(_ sql: String) throws(QueueError) {
        let code = sqlite3_exec(handle, sql, nil, nil, nil)
        guard code == SQLITE_OK else { throw error(code) }
    }

    func prepare(_ sql: String) throws(QueueError) -> Statement { try Statement(sql, in: self) }

    /// The first column of the first row; nil without a row.
    func integer(_ sql: String) throws(QueueError) -> Int? { try prepare(sql).first { $0.integer(0) } }

    /// Whether somebody has removed or replaced the file. What is written goes nowhere then, as soon as it is closed.
    var hasMoved: Bool { csqlite_has_moved(handle) != 0 }

    /// Looks whether somebody has removed the WAL, or put another file in its place: the next process would not find what it holds.
    func lookForWAL() {
        var status = stat()
        let isThere = stat(walPath, &status) == 0
        // Of a directory that is closed to the agent nobody can tell.
        guard isThere || errno == ENOENT else { return }
        let inode = isThere ? UInt64(status.st_ino) : nil
        if walInode == nil { walInode = inode }
        hasLostWAL = inode != walInode
    }

    /// How many rows the last statement that writes has changed.
    var changes: Int { Int(sqlite3_changes(handle)) }

    /// Begins a transaction unless one runs. It reads until its first write, which then belongs to it.
    ///
    /// Reading in one that stays open saves the locks that SQLite would take and give back for each statement, and
    /// keeps nobody from anything: nobody else writes.
    func begin() throws(QueueError) {
        guard sqlite3_get_autocommit(handle) != 0 else { return }
        if begun == nil { begun = try prepare("BEGIN") }
        try begun?.run()
    }

    func commit() throws(QueueError) {
        if committed == nil { committed = try prepare("COMMIT") }
        (isEnding, errno) = (true, 0)
        defer { isEnding = false }
        try committed?.run()
    }

    func rollback() {
        // SQLite may have rolled back by itself; then there is nothing left to do.
        guard handle != nil, sqlite3_get_autocommit(handle) == 0 else { return }
        // What fails here was not committed, and SQLite forgets it when the connection is next used or closed.
        _ = sqlite3_exec(handle, "ROLLBACK", nil, nil, nil)
    }

    /// Counts the WAL's pages from here on, instead of SQLite's own checkpoints.
    func watchWAL() {
        let me = Unmanaged.passUnretained(self).toOpaque()
        sqlite3_wal_hook(
            handle,
            { context, _, _, pages in
                // The context is the database that owns the connection, which calls back during its own commit only.
                if let context { Unmanaged<Database>.fromOpaque(context).takeUnretainedValue().walPages = Int(pages) }
                return SQLITE_OK
            }, me)
    }

    /// Writes what the WAL holds into the database file, as far as readers let it.
    ///
    /// Once all of it is written, the WAL begins again with the next commit.
    ///
    /// - Parameter empties: whether the WAL is cut to nothing then: else it keeps removed texts until other pages replace them.
    func checkpointWAL(empties: Bool = false) throws(QueueError) {
        // A transaction that only read may still be open; within one SQLite does not checkpoint.
        if sqlite3_get_autocommit(handle) == 0 { try commit() }
        var pages: Int32 = 0
        var written: Int32 = 0
        let mode = empties ? SQLITE_CHECKPOINT_TRUNCATE : SQLITE_CHECKPOINT_PASSIVE
        let code = sqlite3_wal_checkpoint_v2(handle, nil, mode, &pages, &written)
        guard code == SQLITE_OK || code == SQLITE_BUSY else { throw error(code) }
        if code == SQLITE_OK, pages >= 0 { walPages = pages == written ? 0 : Int(pages) }
    }

    /// Makes durable what was committed with `synchronous` NORMAL.
    func syncWAL() throws(QueueError) {
        (isEnding, errno) = (true, 0)
        defer { isEnding = false }
        let code = csqlite_sync_wal(handle)
        guard code == SQLITE_OK else { throw error(code) }
    }

    /// The error of a result code, with the system's words where there are some.
    ///
    /// - Parameter isReading: whether the statement changes nothing.
    func error(_ code: Int32, isReading: Bool = false) -> QueueError {
        // Of what cannot be written in a COMMIT, or a sync, SQLite keeps no number: it would be an earlier failure's.
        let number = isEnding && code & 0xFF == SQLITE_IOERR && code != Database.shortRead ? errno : 0
        let system = number == 0 ? sqlite3_system_errno(handle) : number
        let words = String(cString: handle == nil ? sqlite3_errstr(code) : sqlite3_errmsg(handle))
        let cause = system == 0 ? words : "\(words): \(SystemError.message(system))"
        switch code & 0xFF {
        case SQLITE_CORRUPT, SQLITE_NOTADB:
            return damage(cause)
        case SQLITE_FULL:
            guard hasDiskRoom else { return systemError(code, ENOSPC, cause) }
            // A reader needs no room: a page far beyond the end is asked for, by a damaged number.
            guard !isReading else { return damage(cause) }
            return QueueError(.fileFull, "\(path) has reached its maximum size")
        case SQLITE_BUSY, SQLITE_LOCKED:
            let owner = WALReader.find(path) ?? "another program"
            return QueueError(.io, "\(path) is locked by \(owner): stop it")
        case SQLITE_READONLY, SQLITE_IOERR, SQLITE_CANTOPEN, SQLITE_PERM, SQLITE_AUTH:
            return systemError(code, system, cause)
        case SQLITE_ERROR, SQLITE_CONSTRAINT, SQLITE_MISMATCH, SQLITE_TOOBIG:
            // Our statements fit our tables: where they do not, the tables are not what they were.
            return QueueError(.io, "\(path): \(cause)", isDamage: system == 0)
        default:
            return QueueError(.io, "\(path): \(cause)")
        }
    }

    private func systemError(_ code: Int32, _ system: Int32, _ cause: String) -> QueueError {
        let directory = String(path[..<(path.lastIndex(of: "/") ?? path.endIndex)])
        return switch system {
        case ENOSPC, EDQUOT:
            QueueError(.diskFull, "no room for \(path); free some space on its file system")
        case _ where system == EROFS || code == SQLITE_READONLY && WholeFile.isReadOnly(directory):
            QueueError(.readOnly, "\(path) is on a read-only file system; remount it writable, if need be after fsck")
        case EACCES, EPERM:
            QueueError(.noPermission, "\(path) may not be opened; run this as the agent's user or root")
        case _ where code == SQLITE_READONLY && access(path, W_OK) == 0:
            // The system lets us write: a wrong number in the head does not let SQLite.
            damage(cause)
        case _ where code & 0xFF == SQLITE_READONLY:
            QueueError(.readOnly, "\(path) cannot be written (\(cause)); check the file system and the owner")
        default:
            QueueError(.io, "\(path): \(cause)", isDamage: system == 0 && code == Database.shortRead)
        }
    }

    /// Whether "full" means `max_page_count`: SQLite has one word for that and for a full disk, and no cause for either.
    ///
    /// It has rolled the transaction back by now, so that the pages in use say nothing. The disk does: it has room for more
    /// than any transaction writes. Pages run out while rows are written, never at the end.
    private var hasDiskRoom: Bool {
        let flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW
        guard !isEnding, let file = try? Descriptor(checking: open("\(path).probe", flags, 0o600), "open") else {
            return false
        }
        unlink("\(path).probe")
        return posix_fallocate(file.raw, 0, Database.probed) == 0
    }

    /// How much more the file may hold, in bytes: free pages, and those up to its bound.
    func room() throws(QueueError) -> Int {
        let limit = try integer("PRAGMA max_page_count") ?? 0
        let used = try integer("PRAGMA page_count") ?? 0
        let free = try integer("PRAGMA freelist_count") ?? 0
        return (limit - used + free) * (try integer("PRAGMA page_size") ?? 4_096)
    }

    /// SQLITE_IOERR_SHORT_READ, which Swift does not import: the file ends in the middle of a page.
    private static let shortRead = SQLITE_IOERR | 2 << 8

    /// More than a transaction writes, in bytes.
    private static let probed: off_t = 8 << 20
}
