internal import EventLoops
internal import Glibc

/// The directory of the agent's state, owned by one process at a time by means of `flock`(2).
final class StateDirectory {
    let path: String
    /// The open directory, which holds the lock; nil after `unlock`.
    private var descriptor: Descriptor?

    /// Path of the database.
    var database: String { "\(path)/queue.sqlite" }

    /// Path of a complete replacement for a damaged database that still has to take its place.
    var salvaged: String { "\(database).salvaged" }

    /// Takes ownership of the directory; the agent creates it if it is missing.
    ///
    /// - Throws: `missing` for a command if there is no queue, `locked` if another process owns the
    ///   directory, or why it cannot be created, opened or written.
    init(_ path: String, for opener: QueueOptions.Opener) throws(QueueError) {
        self.path = path
        if opener == .command {
            guard access("\(path)/queue.sqlite", F_OK) == 0 || errno != ENOENT && errno != ENOTDIR else {
                throw QueueError(
                    .missing, "there is no queue in \(path); has an agent run with this state_directory?")
            }
        } else if mkdir(path, 0o700) != 0 && errno != EEXIST {
            throw StateDirectory.error("cannot make \(path)", SystemError("mkdir"))
        }
        let opened: Descriptor
        do {
            opened = try Descriptor(
                checking: open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW), "open")
        } catch {
            throw StateDirectory.error("cannot open \(path)", error)
        }
        // Without write permission SQLite would report that the database cannot be opened, which hides
        // the reason.
        guard faccessat(opened.raw, ".", W_OK | X_OK, AT_EACCESS) == 0 || (errno != EACCES && errno != EROFS)
        else {
            throw StateDirectory.error("cannot write in \(path)", SystemError("faccessat"))
        }
        guard !WholeFile.isReadOnly(path) else {
            throw StateDirectory.error("cannot write in \(path)", SystemError("open", number: EROFS))
        }
        // A command usually holds the lock for a moment only: an agent retries for two seconds.
        var tries = opener == .agent ? 20 : 0
        while flock(opened.raw, LOCK_EX | LOCK_NB) != 0 {
            let error = SystemError("flock")
            guard error.number == EWOULDBLOCK else {
                throw StateDirectory.error("cannot lock \(path)", error)
            }
            guard tries > 0 else {
                let owner = FileStatus(path).flatMap(WALReader.holder) ?? "another agent"
                throw QueueError(.locked, "\(owner) uses \(path); stop it or name another state_directory")
            }
            tries -= 1
            usleep(100_000)
        }
        descriptor = consume opened
    }

    /// Lets another process own the directory.
    func unlock() {
        // A child process between fork and exec shares the open file, so closing our descriptor would
        // not release the lock.
        if let descriptor = descriptor?.raw {
            flock(descriptor, LOCK_UN)
        }
        descriptor = nil
    }

    /// Puts a salvaged database in the place of the damaged one, which is renamed with the present
    /// time.
    ///
    /// A crash between the renames leaves `salvaged` in place, and the next start repeats the call.
    ///
    /// - Returns: path of the damaged database; nil if there was nothing to finish.
    func finishSalvage(now: Timestamp) throws(QueueError) -> String? {
        guard access(salvaged, F_OK) == 0 else { return nil }
        let aside = asideOfInterrupted ?? "\(database).damaged-\(now.milliseconds / 1_000)"
        // One damaged database is kept for inspection; several could fill the disk.
        for name in damagedNames where !"\(path)/\(name)".hasPrefix(aside) { unlink("\(path)/\(name)") }
        for suffix in ["", "-wal"] where access(database + suffix, F_OK) == 0 {
            guard rename(database + suffix, aside + suffix) == 0 else {
                throw StateDirectory.error("cannot move \(database) aside", SystemError("rename"))
            }
        }
        unlink("\(database)-shm")
        guard rename(salvaged, database) == 0 else {
            throw StateDirectory.error("cannot move \(salvaged)", SystemError("rename"))
        }
        if let descriptor = descriptor?.raw, fsync(descriptor) != 0 {
            throw StateDirectory.error("cannot sync \(path)", SystemError("fsync"))
        }
        return aside
    }

    private var damagedNames: [String] {
        let names = (try? WholeFile.names(in: path)) ?? []
        return names.filter { $0.hasPrefix("queue.sqlite.damaged-") }
    }

    /// Where a replacement that a crash cut off had moved the damaged database; nil if that is still in its
    /// place.
    ///
    /// Without it the finished replacement would delete the copy as an old one: the only one there is.
    private var asideOfInterrupted: String? {
        guard access(database, F_OK) != 0 else { return nil }
        return damagedNames.filter { !$0.hasSuffix("-wal") }.max().map { "\(path)/\($0)" }
    }

    /// The error for a failed system call on the directory.
    private static func error(_ what: String, _ error: SystemError) -> QueueError {
        switch error.number {
        case EACCES, EPERM:
            QueueError(.noPermission, "\(what) (\(error)); run this as the agent's user or root")
        case EROFS:
            QueueError(
                .readOnly,
                "\(what) (\(error)); remount the file system writable, if need be after fsck, or, where"
                    + " spoolship.service starts the agent, let it write there: ReadWritePaths= in a "
                    + "drop-in (systemctl edit spoolship)"
            )
        case ENOSPC, EDQUOT: QueueError(.diskFull, "\(what) (\(error)); free some space")
        default: QueueError(.io, "\(what) (\(error))")
        }
    }
}
