internal import EventLoops
internal import Glibc
internal import Logs
internal import Model

/// Looks at the names of append files: a name may belong to a new file, to a known one that was renamed, or
/// to what it belonged to before.
final class Arrivals {
    private let context: SpoolContext
    private let schedule: Schedule
    private let reports: Reports
    private let outlet: Outlet
    private let watching: SpoolWatch
    private let lives: AppendLives
    private let opener: Opener
    private let admission: Admission
    private let lister: Lister
    private let departures: Departures
    private let judge: Judge
    private let content: AppendReader
    private let tree: Tree
    private let drops: DropTable

    init(
        _ context: SpoolContext, _ schedule: Schedule, _ reports: Reports, _ outlet: Outlet,
        _ watching: SpoolWatch, _ lives: AppendLives, _ opener: Opener, _ admission: Admission,
        _ lister: Lister, _ departures: Departures, _ judge: Judge, _ content: AppendReader, _ tree: Tree,
        _ drops: DropTable
    ) {
        self.context = context
        self.schedule = schedule
        self.reports = reports
        self.outlet = outlet
        self.watching = watching
        self.lives = lives
        self.opener = opener
        self.admission = admission
        self.lister = lister
        self.departures = departures
        self.judge = judge
        self.content = content
        self.tree = tree
        self.drops = drops
    }

    /// Looks at a name that an append file may have: a new file, a known one under a new name, or nothing
    /// new.
    ///
    /// inotify reports late: when a rename is handled, the old name may belong to the next file already. So
    /// the file under the new name is examined.
    ///
    /// - Parameters:
    ///   - file: the file that was known under the old name, if the name came by a rename.
    ///   - earlier: the old name. If rotation gives such names, the file may be a copy whose number was
    ///     shifted.
    func notice(
        _ directory: SpoolDirectory, _ name: FileName, renamed file: AppendFile? = nil,
        was earlier: Streams.EarlierName = .unknown
    ) {
        guard let raw = opener.descriptor(of: directory) else { return }
        do {
            let looked = try opener.openName(name, in: directory, raw)
            let status = try FileSystem.status(looked)
            if let file, try FileID(looked, status) == file.id {
                return lives.moved(file, to: directory, name)
            }
            if admission.admit(status, directory, name) {
                try notice(directory, name, looked, status, was: earlier)
            }
        } catch {
            // The file was renamed once more, which is reported next, or it cannot be examined now.
            if let file {
                lives.moved(file, to: directory, name)
            } else {
                admission.notOpened(directory, name, error)
            }
        }
    }

    private func notice(
        _ directory: SpoolDirectory, _ name: FileName, _ looked: borrowing Descriptor, _ status: FileStatus,
        was earlier: Streams.EarlierName
    ) throws(SystemError) {
        let id = try FileID(looked, status)
        guard !drops.isInHand(id) else {
            // The file is being read as a drop file, under its earlier name. Look again when that is done.
            return schedule.settle(name, in: directory, after: context.options.settleTime)
        }
        let isKnownAgain = knowAgain(id, looked, status)
        let before = directory.files[name].flatMap { $0.id != id ? $0 : nil }
        if let before {
            lives.displaced(before)
        }
        if let file = lives.streams.files[id] {
            // One of several links: the file keeps the name that it is known by while that leads to it.
            let isOtherLink =
                mayHaveOtherNames(status) && file.hasName && file.name != name && opener.isThere(file)
            let isMoved = file.directory !== directory || file.name != name || !file.hasName
            if isMoved, !isOtherLink {
                lives.moved(file, to: directory, name)
            }
            lives.update(file, status)
            return
        }
        // Rotated names of unknown kinds are followed only for files that are known.
        let isRemembered = lives.streams.remembered.kept[id] != nil
        let isNew = if case .unknown = earlier { !isRemembered } else { false }
        guard context.options.kind(of: name, in: directory) == .append || !isNew else { return }
        // New empty files are known only while descriptors are left.
        let isKnown = !isNew || context.options.isRotated(name)
        guard status.size > 0 || isKnown || !opener.openFiles.isFull else { return }
        let holder = directory.holder(status.owner)
        guard isRemembered ? true : lives.streams.hasRoom(for: holder) else {
            return waitForRoom(directory, holder)
        }
        let file = AppendFile(
            id, in: directory, name: name, owner: status.owner, size: status.size, now: schedule.now)
        let isOther = context.options.kind(of: name, in: directory) != .append
        let isRotated = context.options.isRotated(name)
        let unreadable = lives.streams.meet(file, isRotated: isOther || isRotated, was: earlier)
        if let unreadable {
            lives.streams.goOn(file, at: (try? judge.mark(at: unreadable, of: file)) ?? .start)
        }
        file.trace.inode = status.inode
        directory.files[name] = file
        // Write the checkpoint under the new identity.
        if isKnownAgain {
            outlet.pass.add(file)
        }
        if isNew {
            passOver(file, looked, status)
        }
        do {
            try opener.open(file, looked)
            reports.reached(file.path)
            try content.passOverHistory(of: file)
        } catch {
            // Another process holds a file lease: the file is opened later, without a complaint.
            if error.number == EWOULDBLOCK {
                departures.cannotRead(file, error)
            } else {
                admission.notRead(file.directory, file.name, error, status)
                guard lives.streams.files[id] === file else { return }
            }
        }
        lives.update(file, status)
        if file.isSuspect {
            // An empty one has nothing to read, but is judged too. Otherwise it would stay, and losses of its
            // stream would never be counted, because it might be the copy that has the bytes.
            lives.makeReady(file)
        } else if file.unread == 0 {
            lives.considerLater(file)
        }
        if let before {
            warnOfRepeat(of: before, by: file, looked)
        }
    }

    /// Whether other names may lead to a file that is read in place: hard links, or links that are followed.
    private func mayHaveOtherNames(_ status: FileStatus) -> Bool {
        guard let place = context.options.place else { return false }
        return status.links > 1 || !place.follow.isEmpty
    }

    /// Notes how much of a file is passed over that was there when its pattern was seen for the first time.
    private func passOver(_ file: AppendFile, _ looked: borrowing Descriptor, _ status: FileStatus) {
        guard let sight = tree.listing.sight, status.size > 0 else { return }
        let born = FileSystem.birth(looked)
        guard sight.passesOver(file.name, in: file.directory.path, born: born, modified: status.modified)
        else { return }
        file.historyEnd = status.size
    }

    /// There is no room for a file: listing finds it again once others are gone.
    private func waitForRoom(_ directory: SpoolDirectory, _ holder: Holder) {
        let holder = holder.pooled
        tree.listing.crowd(holder, in: directory)
        reports.complain(
            Lister.crowdOfLines(of: holder), holder.owner,
            "too many files of lines: those beyond the limit are read once others were read and removed")
    }

    /// A file that took another one's name and begins with its lines repeats them: an editor, `sed -i` or
    /// rsync has written the file again.
    private func warnOfRepeat(of old: AppendFile, by file: AppendFile, _ looked: borrowing Descriptor) {
        let known = old.trace.fingerprint
        guard old.streams == file.streams, !file.isSuspect, known.length > 0, file.size >= old.taken.offset,
            reports.complaints.mayReportRepeat(schedule.now),
            let readable = try? FileSystem.read(looked),
            let head = try? FileSystem.bytes(of: readable.raw, at: 0, count: known.length), known.begins(head)
        else { return }
        reports.repeatReported()
        context.log.warning(
            """
            a file was replaced by one that begins with the same lines: all of it is read; \
            reported once an hour
            """,
            ["path": file.path.text, "read_before": old.taken.offset])
    }

    /// Finds the checkpoint of a file whose identity has another form than at the last stop, because its file
    /// system has gained or lost handles. The inode number and the content must match. True if a checkpoint
    /// was found; it has the new identity then.
    private func knowAgain(_ id: FileID, _ looked: borrowing Descriptor, _ status: FileStatus) -> Bool {
        // Numbers are looked for during the first listing only.
        guard lives.streams.files[id] == nil, lives.streams.remembered.kept[id] == nil,
            lives.streams.remembered.inodes.contains(status.inode)
        else { return false }
        for (other, checkpoint) in lives.streams.remembered.kept where !other.isOfSameForm(as: id) {
            guard let trace = FileTrace(checkpoint.state), trace.inode == status.inode,
                trace.doneVersion == nil,
                let last = trace.marks.last, last.offset == checkpoint.offset, last.offset <= status.size,
                let readable = try? FileSystem.read(looked),
                (try? judge.mark(at: last.offset, readable.raw))?.ends(like: last) == true
            else { continue }
            lives.streams.remembered.remove(other)
            lives.streams.cutOffs.found(other)
            outlet.pass.forget(other)
            var renamed = checkpoint
            renamed.key = id.bytes
            lives.streams.remembered.keep(renamed)
            return true
        }
        return false
    }

    /// Lists all polled directories, and looks at the sizes of their files.
    func poll() {
        for directory in watching.takePolled() {
            lister.scan(directory)
            for file in directory.files.values { pollSize(of: file) }
        }
    }

    /// Looks at the size of a file in a polled directory.
    private func pollSize(of file: AppendFile) {
        guard let raw = opener.descriptor(of: file.directory) else { return }
        let status: FileStatus
        let isSame: Bool
        do {
            let looked = try opener.openName(file.name, in: file.directory, raw)
            status = try FileSystem.status(looked)
            // A link may lead to another file system, where another file has the inode number.
            isSame = try FileID(looked, status) == file.id
        } catch {
            // A file that is gone is read to its end and closed.
            if error.number == ENOENT, file.descriptor != nil {
                lives.displaced(file)
            }
            return lives.makeReady(file)
        }
        // Another file has the name. It must be noticed while the old file is still known by the name, so
        // that a rotation is recognised; reading the old file finds out where it is.
        guard isSame else {
            notice(file.directory, file.name)
            return lives.makeReady(file)
        }
        // The time is compared too, because a file can be rewritten with the same size.
        if status.size != file.length || status.modified != file.modified {
            lives.changed(file)
        }
        lives.update(file, status)
    }

    /// Links that are looked at in one piece of work.
    private static let linksATime = 64

    /// Looks at all links again, some at a time: no event reports that a link in the middle leads elsewhere,
    /// or that the directory comes in which the file is.
    func lookAtLinks() {
        let next = watching.takeLinksToLook(atMost: Arrivals.linksATime)
        for link in next.links {
            if let directory = tree[link.directory] {
                notice(directory, link.name)
            }
        }
        if next.hasMore {
            schedule.plan(at: schedule.now, .lookAtLinks)
        }
    }
}
