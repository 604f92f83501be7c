internal import EventLoops
internal import Glibc
internal import Logs
internal import Model

/// The I/O of directories: they are opened and closed as they come and go, few descriptors are kept, and
/// names are listed a slice at a time.
extension SpoolReader {
    /// Most levels of directories in the spool.
    static let deepest = 16

    /// Begins to watch and to read the directory at a path. Another directory that was known by the path is
    /// closed: it was removed, moved away, or replaced.
    func open(_ path: FileName, depth: Int) {
        // Hidden directories are not read, the agent's `.spoolship` among them, nor is a file system's
        // `lost+found`.
        guard !path.last.isHidden, !path.bytes.elementsEqual("lost+found".utf8) else { return }
        guard depth <= SpoolReader.deepest else { return refuse(.tooDeep, path) }
        if let place = options.place, !place.mayHold(below: path) { return }
        if options.place == nil, path.bytes.starts(with: "incoming/".utf8) { return refuseNested(path) }
        let known = tree[path]
        do {
            let descriptor = try FileSystem.openDirectory(root.raw, path)
            let status = try FileSystem.status(descriptor)
            if removal.isArchive(status) { return }
            let directory = SpoolDirectory(
                path: path, depth: depth, id: try FileID(descriptor, status), status.inode, of: options.place,
                isOpenToAll: status.mode & 0o002 != 0)
            guard known?.id != directory.id else { return }
            if let known {
                close(known)
            }
            guard tree.hasRoom(for: directory.app, most: options.mostDirectories) else {
                return complain(
                    SpoolReader.mostDirectories(of: directory), status.owner,
                    "an app has at most \(options.mostDirectories) directories: those beyond them are not read"
                )
            }
            tree.add(directory)
            if depth == 0 {
                root.isRemote = !Mount(of: descriptor.raw).isLocal
            }
            reached(path)
            // Watch first, then list: a file that comes in between is reported twice, but never missed.
            watch(directory, descriptor)
            keep(consume descriptor, of: directory)
            for name in drops.takeNamesBefore(in: path) { look(at: name, in: directory) }
            scan(directory)
        } catch {
            switch error.number {
            case ENOENT, ENOTDIR:
                if (try? FileSystem.status(root.raw, path))?.isDirectory == true {
                    tryAgain(.open, path, error, .open(directory: path, depth: depth))
                } else if let known {
                    close(known)
                }
            case ELOOP:
                refuse(.symbolicLink, path)
                if let known {
                    close(known)
                }
            case EXDEV:
                // No event reports an unmount, so look again from time to time.
                schedule(after: options.pathInterval, .open(directory: path, depth: depth))
                refuse(.otherFileSystem, path)
                let instead =
                    options.place == nil ? "mount it elsewhere" : "name it in `read`, without a * above it"
                complain(path, nil, "another file system is mounted here, which is not read: \(instead)")
            default:
                note(error, "cannot open directory", path)
                tryAgain(.open, path, error, .open(directory: path, depth: depth))
            }
        }
    }

    /// Reports a directory in the drop box. Such directories are never listed or watched, because any user
    /// could make any number of them; only one is reported.
    private func refuseNested(_ path: FileName) {
        guard tree.foundNested(path) else { return }
        complain(
            path, nil,
            "no directory in the drop box is read: put files into it, or make an app's (spoolship app add)")
    }

    func forgetNested(_ path: FileName) {
        if tree.forgetNested(path) {
            complaints.resolve(path)
        }
    }

    /// Forgets a directory that was removed or moved away, and all directories below it. Its files lose their
    /// names but stay known, so that open ones are read to the end.
    func close(_ directory: SpoolDirectory) {
        guard !directory.isGone else { return }
        let children = tree.remove(directory)
        reached(directory.path)
        if directory.path.bytes.isEmpty {
            lostRoot()
        }
        endWatch(of: directory)
        for watch in watching.links.gone(in: directory.path) { end(watch) }
        openFiles.closed(directory)
        if directory.isPolled {
            watching.polled.removeAll { $0 === directory }
        }
        for file in directory.files.values { displaced(file) }
        complaints.directoryGone(directory.path)
        for child in children { close(child) }
        // If there is room again, listing finds the directories that were refused.
        if tree.hasRoomAgain(for: directory.app, most: options.mostDirectories) {
            complaints.resolve(SpoolReader.mostDirectories(of: directory))
            for other in tree.all where other.app == directory.app { scan(other) }
        }
    }

    /// The path under which it is reported that an app has too many directories.
    private static func mostDirectories(of directory: SpoolDirectory) -> FileName {
        FileName(directory.path.bytes.prefix { $0 != UInt8(ascii: "/") } + Array("/*".utf8))
    }

    /// Plans checks whether the root still exists. The kernel does not report the removal of a directory
    /// while a descriptor of it is open, but it reports the removal of the entries, which comes before.
    func planRootCheck() {
        if root.planChecks() {
            schedule(after: options.pollInterval, .checkRoot)
        }
    }

    /// Checks whether the root still exists; closes it if not.
    func checkRoot() {
        let directory = tree.top
        let status = directory == nil ? nil : try? FileSystem.status(root.descriptor)
        if root.checked(isThere: (status?.links ?? 0) > 0) {
            schedule(after: options.pollInterval, .checkRoot)
        }
        if let directory, status?.links == 0 {
            close(directory)
        }
    }

    /// The root is gone: closes all directories, reports it, and looks for a new root from time to time.
    private func lostRoot() {
        guard life.isRunning else { return }
        if options.place == nil {
            log.error("spool directory is missing", ["path": options.directory, "advice": "create it"])
            let complaint = SpoolComplaint(
                path: options.directory, owner: 0, ownerName: shownName(of: 0),
                advice: "the spool directory is missing: create it")
            _ = complaints.add(complaint, at: FileName(""), of: 0)
            schedule(after: options.pollInterval, .findRoot)
        } else {
            // This is normal for a place, whose directory comes and goes with the program that writes to it;
            // `status` shows it. `follow` finds a new one.
            root.identity = nil
            log.info("directory was removed", ["path": options.directory])
        }
        for child in tree.all { close(child) }
        publish()
    }

    /// Looks for a spool that was missing.
    func findRoot() {
        guard tree.top == nil else { return }
        guard let opened = try? SpoolReader.openRoot(options.directory) else {
            // The loss was reported when it was noticed; look again later.
            return schedule(after: options.pollInterval, .findRoot)
        }
        root.descriptor = opened
        complaints.resolve(FileName(""))
        root.identity = nil
        log.warning("spool directory is back", ["path": options.directory])
        open(FileName(""), depth: 0)
    }

    /// For files that are read in place: checks from time to time which directory the path leads to, and
    /// reads that one. Lines of the old directory's files that are still open are read too.
    ///
    /// The directory may have been removed and made again, a link above it may lead elsewhere, a parent may
    /// have been replaced, or something may be mounted over it. The checks are aligned to multiples of the
    /// interval, so that all readers wake the agent together.
    func follow(_ place: ReadPlace) {
        let interval = options.pathInterval.nanosecondsClamped
        let next = (now.nanoseconds + interval / 2) / interval * interval + interval
        schedule(at: BootInstant(nanoseconds: next), .followPath)
        lookAtLinks()
        guard !root.isAwaited else {
            complain(FileName(""), 0, SpoolReader.silence)
            return publish()
        }
        // Whether the loop's own mount answers is this loop's business alone.
        let own = shared.assumeOnLoop(\.ownMounts)
        let reach = own.isEmpty ? ReadPlace.Reach.links : .mounts(own)
        take(Result { try place.open(reach, unless: root.identity, options) }, of: place, through: own)
    }

    private static let silence = "its file system does not answer; all else is read"

    /// Applies the result of a lookup of the path.
    ///
    /// - Parameter mounts: mounts on the way that may never answer, and whose threads may be used.
    private func take(_ found: Result<Int32?, any Error>, of place: ReadPlace, through mounts: [String]) {
        defer { publish() }
        root.isAwaited = false
        if case .failure(let mount as Mount) = found {
            let wasRead = tree.top != nil
            guard !shared.assumeOnLoop({ $0.leaves(place, to: mount, wasRead: wasRead) }) else { return }
            // The next file system on the way may hang, so the lookup continues on its thread. Without a
            // thread it is repeated later.
            root.isAwaited = Mount.ask(on: "mount", mount.number) { [root = root.identity, options] in
                let mounts = mounts + [mount.number]
                let found = Result { try place.open(.mounts(mounts), unless: root, options) }
                self.loop.post { self.assumeIsolated { $0.take(found, of: place, through: mounts) } }
            }
            return
        }
        if complaints[FileName("")]?.advice == SpoolReader.silence {
            complaints.resolve(FileName(""))
        }
        let known = tree.top
        do {
            guard let opened = try found.get().map({ Descriptor($0) }), life.isRunning else { return }
            if let known {
                close(known)
            }
            root.identity = nil
            // A file system that may never answer is read by a reader on the loop of its mount.
            guard shared.assumeOnLoop({ $0.mayRead(opened, of: place, wasRead: known != nil) }) else {
                return
            }
            root.descriptor = opened
            complaints.readmit(FileName(""))
            log.info("reading directory", ["path": options.directory])
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
            let advice = refusal?.advice ?? (isClosed ? ClosedWay.advice(to: options.directory) : nil)
            if complaints[FileName("")]?.advice != advice {
                complaints.resolve(FileName(""))
            }
            guard let advice else { return }
            if let refusal {
                refuse(refusal.reason, FileName(""))
            }
            complain(FileName(""), refusal?.owner, advice)
        }
    }

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
            let descriptor = try FileSystem.openDirectory(root.raw, directory.path)
            let raw = descriptor.raw
            keep(consume descriptor, of: directory)
            return raw
        } catch {
            switch error.number {
            case ENOENT, ENOTDIR:
                close(directory)
                // Another directory may have the name, or the error was temporary: open it again.
                if !directory.path.bytes.isEmpty {
                    open(directory.path, depth: directory.depth)
                }
            // A file system was mounted over the directory.
            case EXDEV: refuse(.otherFileSystem, directory.path)
            default:
                note(error, "cannot open directory", directory.path)
                tryAgain(at: FileName(""), in: directory, error)
            }
            throw error
        }
    }

    /// Keeps a directory open for the next use, and closes the one that was opened longest ago.
    private func keep(_ descriptor: consuming Descriptor, of directory: SpoolDirectory) {
        directory.descriptor = consume descriptor
        for other in openFiles.opened(directory) { other.descriptor = nil }
    }

    // MARK: Listing

    /// Number of directory entries that are read at a time. Other work runs in between, so that a directory
    /// with a million files does not stop the loop.
    private static let slice = 128
    /// Most directories that are listed at a time.
    private static let mostStreams = 32

    /// Queues a directory to be listed.
    func scan(_ directory: SpoolDirectory) {
        if tree.listing.queue(directory) {
            wake()
        }
    }

    /// Reads some names of a directory. False if no directory waits, or if enough files wait.
    func list() -> Bool {
        if tree.listing.isIdle {
            endFirstListing()
        }
        let most = min(SpoolReader.mostStreams, max(1, openFiles.mostDirectories / 2))
        let next = tree.listing.next(turns.shares, most: most) { mayList($0) }
        guard let (line, directory) = next else { return false }
        let turn = turns.begin(of: line, now)
        let hasMore = listNames(of: directory)
        turns.end(turn, now)
        if hasMore {
            tree.listing.putBack(directory, to: line)
        }
        return true
    }

    /// Whether a directory may be listed although files wait. The drop box always may: it has a bound for
    /// each owner (`offer`), and one owner's files must not hide those of others.
    private func mayList(_ directory: SpoolDirectory) -> Bool {
        directory.isIncoming || drops.wantsMore(of: directory.app)
    }

    /// Ends the first listing once all directories are listed and all drop files are read. Only then is every
    /// file known that existed at the start.
    private func endFirstListing() {
        guard !tree.listing.isFirstDone || tree.listing.isSeeing, drops.areAllRead,
            tree.top != nil
        else { return }
        if tree.listing.endFirst() {
            firstListingEnded()
        }
        endFirstSight()
    }

    /// Ends the first sight of the patterns, once every compressed file that existed has settled. A file that
    /// is judged later counts as new, so existing content would be read.
    private func endFirstSight() {
        guard tree.listing.isSeeing, tree.all.allSatisfy({ $0.settling.isEmpty }) else { return }
        if let passed = tree.listing.sight?.end() {
            log.info(
                "existing files passed over, as `since` says",
                ["path": options.directory, "files": passed.files, "bytes": passed.bytes.value])
        }
        if tree.listing.sight?.hasChanges == true {
            commitSoon()
        }
    }

    /// Reads a slice of names. True if there are more.
    private func listNames(of directory: SpoolDirectory) -> Bool {
        if directory.stream == nil {
            beginListing(directory)
        }
        guard let stream = directory.stream else { return false }
        for _ in 0..<SpoolReader.slice {
            do throws(SystemError) {
                guard let entry = try stream.next() else {
                    endListing(directory)
                    return false
                }
                found(entry.name, entry.type, entry.inode, in: directory)
            } catch {
                endListing(directory)
                notOpened(directory, FileName(""), error)
                return false
            }
        }
        return true
    }

    /// Opens a directory to list it.
    private func beginListing(_ directory: SpoolDirectory) {
        directory.isScanStale = false
        guard descriptor(of: directory) != nil, directory.descriptor != nil else {
            return tree.listing.cannotBegin(directory)
        }
        do {
            let descriptor = try FileSystem.openDirectory(root.raw, directory.path)
            guard try FileSystem.status(descriptor).inode == directory.inode else {
                // Another directory has the name.
                tree.listing.cannotBegin(directory)
                return open(directory.path, depth: directory.depth)
            }
            tree.listing.began(try DirectoryStream(descriptor), of: directory)
            if directory.isIncoming {
                tree.beginDropBoxListing()
            }
            reached(directory.path)
        } catch {
            tree.listing.cannotBegin(directory)
            // Copies wait until all directories near them are listed. A shortage passes within seconds, but a
            // directory that its owner keeps closed must not hold them up.
            switch SpoolObstacle(error) {
            case .descriptors, .memory: break
            default: directory.wasListed = true
            }
            notOpened(directory, FileName(""), error)
        }
    }

    /// Ends a listing, and queues the directory again if names may have been missed.
    private func endListing(_ directory: SpoolDirectory) {
        tree.listing.ended(directory)
        forgetCrowds()
        if directory.isIncoming, let nested = tree.endDropBoxListing() {
            complaints.resolve(nested)
        }
        if directory.isScanStale {
            scan(directory)
        }
    }

    /// Handles a name that listing has found, by its kind.
    private func found(_ name: FileName, _ type: Int, _ inode: UInt64, in directory: SpoolDirectory) {
        if type == Int(DT_DIR) {
            let path = directory.path(of: name)
            if !name.isHidden, tree[path]?.inode != inode {
                open(path, depth: directory.depth + 1)
            }
            return
        }
        switch options.kind(of: name, in: directory) {
        case .append: notice(directory, name)
        case .drop:
            if directory.settling[name] == nil {
                offer(directory, name, isComplete: false)
            }
        case .other:
            if type == Int(DT_LNK), options.place == nil {
                return refuse(.symbolicLink, directory.path(of: name))
            }
            if type == Int(DT_REG) || type == Int(DT_UNKNOWN) {
                passOver(directory, name)
            }
            // A file that was known before the start may have been renamed to any name while the agent was
            // off.
            if !streams.remembered.kept.isEmpty, streams.remembered.inodes.contains(inode) {
                notice(directory, name)
            }
        }
    }
}
