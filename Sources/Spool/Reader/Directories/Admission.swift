internal import EventLoops
internal import Glibc
internal import Logs
internal import Model

/// Which files may be opened at all, and what follows if one cannot be.
final class Admission {
    private let context: SpoolContext
    private let schedule: Schedule
    private let reports: Reports
    private let watching: SpoolWatch
    private let lives: AppendLives
    private let opener: Opener

    init(
        _ context: SpoolContext, _ schedule: Schedule, _ reports: Reports, _ watching: SpoolWatch,
        _ lives: AppendLives, _ opener: Opener
    ) {
        self.context = context
        self.schedule = schedule
        self.reports = reports
        self.watching = watching
        self.lives = lives
        self.opener = opener
    }

    /// How long a file may have two names before it is refused.
    private static let linkTime = Duration.seconds(1)

    /// Whether a file may be opened at all. If not, it is refused, counted and reported.
    func admit(_ status: FileStatus, _ directory: SpoolDirectory, _ name: FileName) -> Bool {
        guard status.isRegular else {
            if !status.isDirectory {
                reports.refuse(
                    status.isLink ? .symbolicLink : .notRegular, directory.path(of: name.claimed ?? name),
                    status.owner)
            }
            restoreRefused(name, in: directory, status)
            return false
        }
        // Hard links are refused only in a spool, whose files the agent removes: a user could link a file
        // that belongs to somebody else into it, to have that file read.
        if context.options.place != nil { return status.links > 0 }
        guard status.links <= 1 else {
            // A writer that publishes by link(2) and unlink(2) has two names for a moment, so wait.
            if let since = directory.settling[name]?.linkedSince {
                guard schedule.now - since >= Admission.linkTime else {
                    schedule.settle(name, in: directory, after: Admission.linkTime - (schedule.now - since))
                    return false
                }
                directory.settling[name] = nil
                if directory.linked.count < Complaints.most {
                    directory.linked.insert(name)
                }
                reports.refuse(.hardLink, directory.path(of: name.claimed ?? name), status.owner)
                restoreRefused(name, in: directory, status)
            } else {
                var stamp = DropStamp.unknown
                stamp.linkedSince = schedule.now
                directory.settling[name] = stamp
                schedule.settle(name, in: directory, after: Admission.linkTime)
            }
            return false
        }
        return status.links == 1
    }

    /// Gives a claimed entry that turns out to be unreadable its original name back, so that its owner finds
    /// it. A link, FIFO or socket whose original name is taken is removed.
    private func restoreRefused(_ claim: FileName, in directory: SpoolDirectory, _ status: FileStatus) {
        guard context.options.place == nil, let original = claim.claimed, let raw = directory.descriptor?.raw
        else {
            return
        }
        let path = directory.path(of: claim)
        do throws(SystemError) {
            do throws(SystemError) {
                try FileSystem.rename(raw, claim, to: original)
            } catch {
                guard error.number == EEXIST, !status.isRegular, !status.isDirectory else { throw error }
                try FileSystem.unlink(raw, claim)
                context.log.warning(
                    "refused file removed: its name is taken", ["path": directory.path(of: original).text])
            }
        } catch {
            guard error.number != ENOENT else { return }
            reports.note(error, "cannot restore the name of a refused file", path)
            if error.number != EEXIST {
                schedule.tryAgain(at: claim, in: directory, error)
            }
        }
    }

    /// Handles an error of looking at a name, or with an empty name of listing the directory.
    func notOpened(_ directory: SpoolDirectory, _ name: FileName, _ error: SystemError) {
        let path = name.bytes.isEmpty ? directory.path : directory.path(of: name)
        switch error.number {
        case ENOENT, ENOTDIR:
            reports.reached(path)
            // What a link leads to is looked for with the path of the place.
            let link = FollowedLinks.Link(directory: directory.path, name: name)
            if !watching.links.isDangling(link), opener.isThere(name, in: directory) {
                schedule.tryAgain(at: name, in: directory, error)
            }
        case ELOOP: reports.refuse(.symbolicLink, path)
        case EXDEV: reports.refuse(.otherFileSystem, path)
        case EACCES:
            reports.complain(
                path, nil, "the agent may not read it: let its group read and search the directory")
            schedule.tryAgain(at: name, in: directory, error)
        default:
            reports.note(error, "cannot open", path)
            schedule.tryAgain(at: name, in: directory, error)
        }
    }

    /// Handles an error of opening or reading a file that could be seen.
    func notRead(_ directory: SpoolDirectory, _ name: FileName, _ error: SystemError, _ status: FileStatus?) {
        switch error.number {
        case EACCES, EPERM:
            reports.complain(
                directory.path(of: name), status?.owner,
                context.options.place == nil
                    ? "the agent may not read it: chmod g+r (0640 or 0660), group spoolship"
                    : "the agent may not read it: \(reports.advice(for: status))")
        default: reports.note(error, "cannot read", directory.path(of: name))
        }
        guard let file = directory.files[name] else {
            return schedule.tryAgain(at: name, in: directory, error)
        }
        if file.taken.offset == 0, file.descriptor == nil,
            reports.complaints[directory.path(of: name)] == nil,
            reports.complaints.isFull
        {
            // Nothing was read of the file and no complaint about it fits into the table, so it need not be
            // known.
            lives.streams.remove(file)
            return schedule.tryAgain(at: name, in: directory, error)
        }
        schedule.tryAgain(.read, directory.path(of: name), error, .read(file.id))
    }
}
