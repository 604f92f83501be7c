internal import EventLoops
internal import Glibc

/// The directory of the agent's state, owned by one process at a time.
final class StateDirectory {
    let path: String
    private var descriptor: Descriptor?

    var database: String { "\(path)/queue.sqlite" }

    /// A complete replacement of a damaged database, waiting to take its place.
    var salvaged: String { "\(database).salvaged" }

    /// Takes ownership of the directory; the agent makes it if it is missing.
    init(_ path: String, for opener: QueueOptions.Opener) throws(QueueError) {
        self.path = path
        if opener == .command {
            guard access("\(path)/queue.sqlite", F_OK) == 0 || errno != ENOENT && errno != ENOTDIR else {
                throw QueueError(.missing, "there is no queue in \(path); has an agent run with this state_directory?")
            }
        } else if mkdir(path, 0o700) != 0 && errno != EEXIST {
            throw StateDirectory.error("cannot make \(path)", SystemError("mkdir"))
        }
        let opened: Descriptor
        do {
            opened = try Descriptor(checking: open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW), "open")
        } catch {
            throw StateDirectory.error("cannot open \(path)", error)
        }
        // SQLite would call a database that it may not make one that is not there.
        guard faccessat(opened.raw, ".", W_OK | X_OK, AT_EACCESS) == 0 || (errno != EACCES && errno != EROFS) else {
            throw StateDirectory.error("cannot write in \(path)", SystemError("faccessat"))
        }
        guard !WholeFile.isReadOnly(path) else {
            throw StateDirectory.error("cannot write in \(path)", SystemError("open", number: EROFS))
        }
        // A command that works on the queue's file is mostly done in a moment: an agent waits two seconds for it.
        var tries = opener == .agent ? 20 : 0
        while flock(opened.raw, LOCK_EX | LOCK_NB) != 0 {
            let error = SystemError("flock")
            guard error.number == EWOULDBLOCK else { throw StateDirectory.error("cannot lock \(path)", error) }
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
        // A child that was forked and not yet replaced has the descriptor too: closing ours would not be enough.
        if let descriptor = descriptor?.raw { flock(descriptor, LOCK_UN) }
        descriptor = nil
    }

    /// Puts a salvaged database in the place of the damaged one, which is moved aside under the present time.
    ///
    /// - Returns: where the damaged one is now; nil if there is nothing to finish.
    func finishSalvage(now: Timestamp) throws(QueueError) -> String? {
        guard access(salvaged, F_OK) == 0 else { return nil }
        let aside = "\(database).damaged-\(now.milliseconds / 1_000)"
        // One is kept for a person to look at, not a disk full of them.
        for name in (try? WholeFile.names(in: path)) ?? [] where name.hasPrefix("queue.sqlite.damaged-") {
            unlink("\(path)/\(name)")
        }
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

    private static func error(_ what: String, _ error: SystemError) -> QueueError {
        switch error.number {
        case EACCES, EPERM:
            QueueError(.noPermission, "\(what) (\(error)); run this as the agent's user or root")
        case EROFS:
            QueueError(
                .readOnly,
                "\(what) (\(error)); remount the file system writable, if need be after fsck, or, where"
                    + " spoolship.service starts the agent, let it write there: ReadWritePaths= in a drop-in (systemctl edit spoolship)"
            )
        case ENOSPC, EDQUOT: QueueError(.diskFull, "\(what) (\(error)); free some space")
        default: QueueError(.io, "\(what) (\(error))")
        }
    }
}
