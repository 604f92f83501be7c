internal import EventLoops
internal import Glibc
internal import Logs
internal import Model

/// Opens directories and append files beneath the root, within the limits of descriptors.
///
/// `OpenFiles` chooses what is closed. Everything is opened by openat2(2) without links, except the links of
/// a place that `follow` allows.
final class Opener {
    private let context: SpoolContext
    private let schedule: Schedule
    private let reports: Reports
    private let watching: SpoolWatch
    private let lives: AppendLives
    private(set) var openFiles: OpenFiles

    init(
        _ context: SpoolContext, _ schedule: Schedule, _ reports: Reports, _ watching: SpoolWatch,
        _ lives: AppendLives
    ) {
        openFiles = OpenFiles(mostFiles: context.options.maxOpenFiles)
        self.context = context
        self.schedule = schedule
        self.reports = reports
        self.watching = watching
        self.lives = lives
    }

    // MARK: What others report of open files

    /// A file is compared with another one: it must not be closed meanwhile.
    func compare(_ file: AppendFile) { openFiles.compare(file) }

    /// The comparison is over.
    func endComparison() { openFiles.endComparison() }

    /// A file could not be opened, because another process holds a lease on it.
    func waitedForLease() { openFiles.waitedForLease() }

    /// A directory's descriptor is closed.
    func closed(_ directory: SpoolDirectory) { openFiles.closed(directory) }

    /// All open files; none is open to this list any more.
    func takeAll() -> [AppendFile] { openFiles.takeAll() }

    // MARK: Directories

    /// An open descriptor of a directory; nil if the directory is gone or cannot be opened now. In the second
    /// case its content is looked at later.
    func descriptor(of directory: SpoolDirectory) -> Int32? { try? reach(directory) }

    /// An open descriptor of a directory.
    ///
    /// - Throws: ENOENT if the directory is gone; after any other error its content is looked at later.
    func reach(_ directory: SpoolDirectory) throws(SystemError) -> Int32 {
        guard !directory.isGone else { throw SystemError("openat2", number: ENOENT) }
        if let raw = directory.descriptor?.raw { return raw }
        do throws(SystemError) {
            let descriptor = try openDirectory(directory.path)
            let raw = descriptor.raw
            keep(consume descriptor, of: directory)
            return raw
        } catch {
            switch error.number {
            case ENOENT, ENOTDIR:
                schedule.plan(at: schedule.now, .reopen(directory: directory.path, directory.id))
            // A file system was mounted over the directory.
            case EXDEV: reports.refuse(.otherFileSystem, directory.path)
            default:
                reports.note(error, "cannot open directory", directory.path)
                schedule.tryAgain(at: FileName(""), in: directory, error)
            }
            throw error
        }
    }

    /// Opens the directory at a path below the root. If there are links on the way, they are followed into
    /// the directories of `follow`.
    func openDirectory(_ path: FileName) throws(SystemError) -> Descriptor {
        do throws(SystemError) {
            return try FileSystem.openDirectory(context.root.raw, path)
        } catch {
            // ENOTDIR is said of a link at the end of the path, ELOOP of one on the way.
            guard let place = context.options.place, !place.follow.isEmpty,
                error.number == ENOTDIR || error.number == ELOOP
            else { throw error }
            return try place.directory(at: path, beneath: context.root.raw)
        }
    }

    /// Whether a path below the root leads through a link.
    func isLinked(_ path: FileName) -> Bool {
        guard let place = context.options.place, !place.follow.isEmpty else { return false }
        do throws(SystemError) {
            _ = try FileSystem.openDirectory(context.root.raw, path)
            return false
        } catch {
            return error.number == ENOTDIR || error.number == ELOOP
        }
    }

    /// Keeps a directory open for the next use, and closes the one that was opened longest ago.
    func keep(_ descriptor: consuming Descriptor, of directory: SpoolDirectory) {
        directory.descriptor = consume descriptor
        for other in openFiles.opened(directory) { other.descriptor = nil }
    }

    /// Whether a name exists although another call has failed with ENOENT.
    func isThere(_ name: FileName, in directory: SpoolDirectory) -> Bool {
        guard !directory.isGone, let raw = directory.descriptor?.raw else { return false }
        return (try? FileSystem.status(raw, name)) != nil
    }

    /// Opens a name of an append file for its metadata. A link is followed if its file is in a directory of
    /// `follow`; any other link is opened itself, so that it is refused.
    func openName(_ name: FileName, in directory: SpoolDirectory, _ raw: Int32) throws(SystemError)
        -> Descriptor
    {
        let looked = try FileSystem.openPath(raw, name)
        guard let place = context.options.place, !place.follow.isEmpty, try FileSystem.status(looked).isLink
        else {
            return looked
        }
        let link = FollowedLinks.Link(directory: directory.path, name: name)
        do throws(SystemError) {
            guard let target = try place.target(of: looked, in: raw) else {
                watching.gone(link)
                if let file = directory.files[name] {
                    lives.displaced(file)
                }
                return looked
            }
            watching.watch(target, of: link, in: directory)
            return target.takeFile()
        } catch {
            if error.number == ENOENT {
                watching.lostTarget(of: link)
            }
            throw error
        }
    }

    /// Whether the descriptor of a file has become that of another one. A FUSE file system may know files by
    /// their paths only: if another machine has renamed the file, the kernel reports the length of the file
    /// that has the path now, and returns the old file's bytes from its cache.
    private func isTakenOver(_ file: AppendFile) -> Bool {
        guard context.root.isRemote, file.trace.inode != 0, let raw = file.descriptor?.raw,
            let status = try? FileStatus(of: raw)
        else { return false }
        return status.inode != file.trace.inode
    }

    /// Opens a file of another machine once more, because its content has changed: an old descriptor may
    /// still lead to what had the name before. A file without a name stays as it is.
    func openAgain(_ file: AppendFile) throws(SystemError) {
        guard context.root.isRemote, file.hasName else { return }
        closeDescriptor(of: file)
        try open(file)
    }

    /// Opens a file under its name, if it is not open, and notes the use.
    ///
    /// - Throws: ENOENT if the file has no name, or if another file has it by now.
    func open(_ file: AppendFile) throws(SystemError) {
        if isTakenOver(file) {
            closeDescriptor(of: file)
        }
        openFiles.use(file)
        guard file.descriptor == nil else { return }
        guard file.hasName else { throw SystemError("open", number: ENOENT) }
        let raw = try reach(file.directory)
        let looked = try openName(file.name, in: file.directory, raw)
        let status = try FileSystem.status(looked)
        // Another file has the name by now; inotify has not reported that yet.
        guard status.isRegular, try FileID(looked, status) == file.id else {
            throw SystemError("open", number: ENOENT)
        }
        try open(file, looked)
        reports.reached(file.path)
    }

    /// Opens a file by a descriptor that was opened with O_PATH.
    func open(_ file: AppendFile, _ looked: borrowing Descriptor) throws(SystemError) {
        // The file may be open already, because a restored position was compared before this.
        guard file.descriptor == nil else { return openFiles.use(file) }
        let owner = try FileSystem.status(looked).owner
        if owner != file.owner {
            lives.streams.change(file) {
                $0.owner = owner
            }
        }
        file.descriptor = try FileSystem.read(looked)
        close(idle: openFiles.opened(file))
    }

    /// Closes files that `OpenFiles` has chosen; they can be opened again by name.
    func close(idle files: [AppendFile]) {
        for file in files {
            file.descriptor = nil
            file.releaseActivity()
            // A file that was always empty need not be known: inotify reports when it is written to.
            if file.isResting, file.length == 0, file.taken.offset == 0, !file.isRotated {
                lives.streams.remove(file)
            }
        }
    }

    /// Opens a file whose lines wait, so that they are not lost if the file is deleted meanwhile. For this,
    /// files that were read to the end are closed, but no file whose lines wait too.
    func hold(_ file: AppendFile) {
        guard file.descriptor == nil, file.hasName, openFiles.mayOpenMore else { return }
        // An error will be reported when the file is read.
        _ = try? open(file)
    }

    /// Closes a file and ends its own watch.
    func closeDescriptor(of file: AppendFile) {
        guard file.descriptor != nil else { return }
        watching.endWatch(of: file)
        file.descriptor = nil
        openFiles.closed(file)
    }

    /// Whether a file still has its name although a call has failed with ENOENT.
    func isThere(_ file: AppendFile) -> Bool {
        guard !file.directory.isGone, let raw = file.directory.descriptor?.raw,
            let looked = try? openName(file.name, in: file.directory, raw),
            let status = try? FileSystem.status(looked), status.inode == file.trace.inode
        else { return false }
        // A link may lead to another file system, where another file has the inode number. If the identity
        // cannot be found out now, the file counts as there.
        guard let id = try? FileID(looked, status) else { return true }
        return id == file.id
    }

    // MARK: How many may be open

    /// Time after a shortage of descriptors until the configured limits are tried again.
    private static let shortage = Duration.seconds(60)

    /// Sets the limits of open files, at the start and after a shortage, from the configuration and the
    /// descriptors that the process has left.
    func fitDescriptors() {
        let limit = Opener.descriptorLimit
        let isBounded = limit < 1 << 30
        let count = isBounded ? (try? WholeFile.names(in: "/proc/self/fd"))?.count ?? 16 : 0
        close(openFiles.fit(limit: limit, open: count), limit)
    }

    /// Closes half of the open files and directories, because the process has no descriptors left, and lowers
    /// the limits for a while.
    func shedDescriptors() {
        if !openFiles.isShort {
            schedule.plan(after: Opener.shortage, .fitDescriptors)
        }
        let limit = Opener.descriptorLimit
        close(openFiles.shed(limit: limit), limit)
    }

    private static var descriptorLimit: Int {
        var limit = rlimit()
        let isKnown = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0
        return isKnown ? Int(clamping: limit.rlim_cur) : .max
    }

    /// Closes the files and directories that exceed lowered limits, and warns.
    private func close(_ closing: OpenFiles.Closing, _ limit: Int) {
        for directory in closing.directories { directory.descriptor = nil }
        close(idle: closing.files)
        guard let files = closing.mostFiles else { return }
        context.log.warning(
            "fewer files are held open than spool.max_open_files allows: the process may not open more",
            ["files": files, "descriptors": limit, "hint": "raise LimitNOFILE"])
    }
}
