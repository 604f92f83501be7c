internal import EventLoops
internal import Glibc
internal import Logs
internal import Model

/// Opens and closes directories as they come and go, and finds the one that is read.
final class Directories {
    private let context: SpoolContext
    private let schedule: Schedule
    private let reports: Reports
    private let watching: SpoolWatch
    private let lives: AppendLives
    private let opener: Opener
    private let lister: Lister
    private let removal: Removal
    private let tree: Tree
    private let drops: DropTable
    private var namesBefore: [(directory: SpoolDirectory, name: FileName)] = []
    /// What readers of one loop share. It knows which mounts are read on which loop.
    private let shared: LoopBound<SharedReading>

    init(
        _ context: SpoolContext, _ schedule: Schedule, _ reports: Reports, _ watching: SpoolWatch,
        _ lives: AppendLives, _ opener: Opener, _ lister: Lister, _ removal: Removal, _ tree: Tree,
        _ drops: DropTable, sharing shared: LoopBound<SharedReading>
    ) {
        self.context = context
        self.schedule = schedule
        self.reports = reports
        self.watching = watching
        self.lives = lives
        self.opener = opener
        self.lister = lister
        self.removal = removal
        self.tree = tree
        self.drops = drops
        self.shared = shared
    }

    /// Most levels of directories in the spool.
    static let deepest = 16

    /// Begins to watch and to read the directory at a path. Another directory that was known by the path is
    /// closed: it was removed, moved away, or replaced.
    func open(_ path: FileName, depth: Int) {
        // Hidden directories of the spool are not read, the agent's `.spoolship` among them, nor is a file
        // system's `lost+found`.
        guard !context.options.ignores(path.last), !path.bytes.elementsEqual("lost+found".utf8) else {
            return
        }
        guard depth <= Directories.deepest else { return reports.refuse(.tooDeep, path) }
        if let place = context.options.place, !place.mayHold(below: path) { return }
        if context.options.place == nil, path.bytes.starts(with: "incoming/".utf8) {
            return refuseNested(path)
        }
        let known = tree[path]
        do {
            let descriptor = try opener.openDirectory(path)
            let status = try FileSystem.status(descriptor)
            if removal.isArchive(status) { return }
            let directory = SpoolDirectory(
                path: path, depth: depth, id: try FileID(descriptor, status), status.inode,
                device: status.device, of: context.options.place,
                isOpenToAll: status.mode & 0o002 != 0)
            guard known?.id != directory.id || known?.device != directory.device else { return }
            if let known {
                close(known)
            }
            guard mayRead(directory) else { return }
            guard tree.hasRoom(for: directory.app, most: context.options.mostDirectories) else {
                return reports.complain(
                    Directories.mostDirectories(of: directory), status.owner,
                    "an app has at most \(context.options.mostDirectories) directories:"
                        + " those beyond them are not read"
                )
            }
            tree.add(directory)
            if depth == 0 {
                context.root.isRemote = !Mount(of: descriptor.raw).isLocal
            }
            reports.reached(path)
            // Watch first, then list: a file that comes in between is reported twice, but never missed.
            watching.watch(directory, descriptor)
            opener.keep(consume descriptor, of: directory)
            for name in drops.takeNamesBefore(in: path) { namesBefore.append((directory, name)) }
            lister.scan(directory)
        } catch {
            switch error.number {
            case ENOENT, ENOTDIR:
                if error.number == ENOTDIR ? true : isLinkGone(path) {
                    tree.linked.forget(path)
                }
                if (try? FileSystem.status(context.root.raw, path))?.isDirectory == true {
                    schedule.tryAgain(.open, path, error, .open(directory: path, depth: depth))
                } else if let known {
                    close(known)
                }
            case ELOOP:
                reports.refuse(.symbolicLink, path)
                if let known {
                    close(known)
                }
            case EXDEV:
                // No event reports an unmount, so look again from time to time.
                schedule.plan(after: context.options.pathInterval, .open(directory: path, depth: depth))
                reports.refuse(.otherFileSystem, path)
                let instead =
                    context.options.place == nil
                    ? "mount it elsewhere" : "name it in `read`, without a * above it"
                reports.complain(
                    path, nil, "another file system is mounted here, which is not read: \(instead)")
            default:
                reports.note(error, "cannot open directory", path)
                schedule.tryAgain(.open, path, error, .open(directory: path, depth: depth))
            }
        }
    }

    // MARK: Links to directories

    /// Looks at a link that may lead to a directory. False if no such directory is read.
    func openLink(_ path: FileName, depth: Int) -> Bool {
        guard let place = context.options.place, !place.follow.isEmpty, place.mayHold(below: path)
        else { return false }
        // A link to nothing is looked at again: the directory may come.
        tree.linked.note(path, depth: depth)
        open(path, depth: depth)
        return tree[path] != nil
    }

    /// Links that are looked at in one piece of work.
    private static let linksATime = 8

    /// Looks at all links to directories again, some at a time: no event reports that a link in the middle
    /// leads elsewhere, or that the directory comes.
    func lookAtLinks() {
        // Without a root the descriptor is that of a directory that is not read any more.
        guard tree.top != nil else { return }
        let next = tree.linked.takeToLook(atMost: Directories.linksATime)
        for link in next.links {
            open(link.path, depth: link.depth)
        }
        if next.hasMore {
            schedule.plan(at: schedule.now, .lookAtLinkedDirectories)
        }
    }

    /// Whether no name is at a path, not even a link to nothing, which is looked at again. In polled
    /// directories no event says that a link is gone.
    private func isLinkGone(_ path: FileName) -> Bool {
        guard let directory = tree[path.parent] else { return true }
        guard let raw = opener.descriptor(of: directory) else { return false }
        do throws(SystemError) {
            _ = try FileSystem.status(raw, path.last)
            return false
        } catch {
            return error.number == ENOENT
        }
    }

    /// Whether a directory is read under its path. One to which several paths lead, by links, is read under
    /// one of them: its own if that is below the root. Otherwise its files would have two names, and a link
    /// to a directory above it would never end.
    private func mayRead(_ directory: SpoolDirectory) -> Bool {
        guard !tree.linked.isEmpty else { return true }
        let others = tree.all.filter { $0.id == directory.id && $0.device == directory.device }
        guard opener.isLinked(directory.path) else {
            for other in others { close(other) }
            return true
        }
        guard others.isEmpty else {
            // The path that it is read under may go, which no event of this one reports.
            tree.linked.note(directory.path, depth: directory.depth)
            return false
        }
        return true
    }

    /// Takes the names of earlier runs' claims in directories that were opened since the last call. The
    /// caller must look at them before other names (`DropTable.takeNamesBefore`).
    func takeNamesBefore() -> [(directory: SpoolDirectory, name: FileName)] {
        defer { namesBefore = [] }
        return namesBefore
    }

    /// Closes a directory that was not found. Another one may have its name, or the error was temporary, so
    /// its path is opened again.
    func reopen(_ directory: SpoolDirectory) {
        close(directory)
        if !directory.path.bytes.isEmpty {
            open(directory.path, depth: directory.depth)
        }
    }

    /// Reports a directory in the drop box. Such directories are never listed or watched, because any user
    /// could make any number of them; only one is reported.
    private func refuseNested(_ path: FileName) {
        guard tree.foundNested(path) else { return }
        reports.complain(
            path, nil,
            "no directory in the drop box is read: put files into it, or make an app's (spoolship app add)")
    }

    func forgetNested(_ path: FileName) {
        if tree.forgetNested(path) {
            reports.resolve(path)
        }
    }

    /// Forgets a directory that was removed or moved away, and all directories below it. Its files lose their
    /// names but stay known, so that open ones are read to the end.
    func close(_ directory: SpoolDirectory) {
        guard !directory.isGone else { return }
        let children = tree.remove(directory)
        reports.reached(directory.path)
        if directory.path.bytes.isEmpty {
            lostRoot()
        }
        watching.endWatch(of: directory)
        watching.linksGone(in: directory.path)
        tree.linked.forget(in: directory.path)
        opener.closed(directory)
        watching.endPolling(directory)
        for file in directory.files.values { lives.displaced(file) }
        reports.directoryGone(directory.path)
        for child in children { close(child) }
        // If there is room again, listing finds the directories that were refused.
        if tree.hasRoomAgain(for: directory.app, most: context.options.mostDirectories) {
            reports.resolve(Directories.mostDirectories(of: directory))
            for other in tree.all where other.app == directory.app { lister.scan(other) }
        }
    }

    /// The path under which it is reported that an app has too many directories.
    private static func mostDirectories(of directory: SpoolDirectory) -> FileName {
        FileName(directory.path.bytes.prefix { $0 != UInt8(ascii: "/") } + Array("/*".utf8))
    }

    /// Plans checks whether the root still exists. The kernel does not report the removal of a directory
    /// while a descriptor of it is open, but it reports the removal of the entries, which comes before.
    func planRootCheck() {
        if context.root.planChecks() {
            schedule.plan(after: context.options.pollInterval, .checkRoot)
        }
    }

    /// Checks whether the root still exists; closes it if not.
    func checkRoot() {
        let directory = tree.top
        let status = directory == nil ? nil : try? FileSystem.status(context.root.descriptor)
        if context.root.checked(isThere: (status?.links ?? 0) > 0) {
            schedule.plan(after: context.options.pollInterval, .checkRoot)
        }
        if let directory, status?.links == 0 {
            close(directory)
        }
    }

    /// The root is gone: closes all directories, reports it, and looks for a new root from time to time.
    private func lostRoot() {
        guard schedule.life.isRunning else { return }
        if context.options.place == nil {
            context.log.error(
                "spool directory is missing", ["path": context.options.directory, "hint": "create it"])
            reports.spoolIsMissing()
            schedule.plan(after: context.options.pollInterval, .findRoot)
        } else {
            // This is normal for a place, whose directory comes and goes with the program that writes to it;
            // `status` shows it. `follow` finds a new one.
            context.root.identity = nil
            context.log.info("directory was removed", ["path": context.options.directory])
        }
        for child in tree.all { close(child) }
        schedule.plan(at: schedule.now, .publish)
    }

    /// Looks for a spool that was missing.
    func findRoot() {
        guard tree.top == nil else { return }
        guard let opened = try? SpoolRoot.open(context.options.directory) else {
            // The loss was reported when it was noticed; look again later.
            return schedule.plan(after: context.options.pollInterval, .findRoot)
        }
        context.root.descriptor = opened
        reports.resolve(FileName(""))
        context.root.identity = nil
        context.log.warning("spool directory is back", ["path": context.options.directory])
        open(FileName(""), depth: 0)
    }

    /// For files that are read in place: checks from time to time which directory the path leads to, and
    /// reads that one. Lines of the old directory's files that are still open are read too.
    ///
    /// The directory may have been removed and made again, a link above it may lead elsewhere, a parent may
    /// have been replaced, or something may be mounted over it. The checks are aligned to multiples of the
    /// interval, so that all readers wake the agent together.
    func follow(_ place: ReadPlace) {
        let interval = context.options.pathInterval.nanosecondsClamped
        let next = (schedule.now.nanoseconds + interval / 2) / interval * interval + interval
        schedule.plan(at: BootInstant(nanoseconds: next), .followPath)
        guard !context.root.isAwaited else {
            reports.complain(FileName(""), 0, Directories.silence)
            return schedule.plan(at: schedule.now, .publish)
        }
        // Whether the loop's own mount answers is this loop's business alone.
        let own = shared.assumeOnLoop(\.ownMounts)
        let reach = own.isEmpty ? ReadPlace.Reach.links : .mounts(own)
        take(
            Result { try place.open(reach, unless: context.root.identity, context.options) }, of: place,
            through: own)
    }

    private static let silence = "its file system does not answer; everything else is read"

    /// Applies the result of a lookup of the path.
    ///
    /// - Parameter mounts: mounts on the way that may never answer, and whose threads may be used.
    private func take(_ found: Result<Int32?, any Error>, of place: ReadPlace, through mounts: [String]) {
        defer { schedule.plan(at: schedule.now, .publish) }
        context.root.isAwaited = false
        if case .failure(let mount as Mount) = found {
            let wasRead = tree.top != nil
            guard !shared.assumeOnLoop({ $0.leaves(place, to: mount, wasRead: wasRead) }) else { return }
            // The next file system on the way may hang, so the lookup continues on its thread. Without a
            // thread it is repeated later.
            let loop = context.loop
            let own = LoopBound(self, to: loop)
            let known = context.root.identity
            let settings = context.options
            context.root.isAwaited = Mount.ask(on: "mount", mount.number) {
                let mounts = mounts + [mount.number]
                let found = Result { try place.open(.mounts(mounts), unless: known, settings) }
                loop.post { own.assumeOnLoop { $0.take(found, of: place, through: mounts) } }
            }
            return
        }
        if reports.complaints[FileName("")]?.advice == Directories.silence {
            reports.resolve(FileName(""))
        }
        let known = tree.top
        do {
            guard let opened = try found.get().map({ Descriptor($0) }), schedule.life.isRunning else {
                return
            }
            if let known {
                close(known)
            }
            context.root.identity = nil
            // A file system that may never answer is read by a reader on the loop of its mount.
            guard shared.assumeOnLoop({ $0.mayRead(opened, of: place, wasRead: known != nil) }) else {
                return
            }
            context.root.descriptor = opened
            reports.readmit(FileName(""))
            context.log.info("reading directory", ["path": context.options.directory])
            open(FileName(""), depth: 0)
        } catch {
            // A shortage of descriptors or memory says nothing about the directory.
            if let error = error as? SystemError, [.descriptors, .memory].contains(SpoolObstacle(error)) {
                return
            }
            if let known {
                close(known)
            }
            let refusal = error as? ReadPlace.Refusal
            let isClosed = (error as? SystemError)?.number == EACCES
            let advice = refusal?.advice ?? (isClosed ? ClosedWay.advice(to: context.options.directory) : nil)
            if reports.complaints[FileName("")]?.advice != advice {
                reports.resolve(FileName(""))
            }
            guard let advice else { return }
            if let refusal {
                reports.refuse(refusal.reason, FileName(""))
            }
            reports.complain(FileName(""), refusal?.owner, advice)
        }
    }

    /// Tries to watch a directory that could not be watched. On success it is no longer polled, and listed
    /// once more for changes that came in between.
    func watchAgain(_ directory: SpoolDirectory) {
        guard !directory.isGone, directory.watch == nil, opener.descriptor(of: directory) != nil else {
            return
        }
        do {
            watching.watch(directory, try opener.openDirectory(directory.path))
        } catch {
            return schedule.tryAgain(.watch, directory.path, error, .watch(directory: directory.path))
        }
        guard directory.watch != nil, !directory.isPolled || !context.root.isRemote else { return }
        watching.endPolling(directory)
        directory.isPolled = false
        lister.scan(directory)
    }
}
