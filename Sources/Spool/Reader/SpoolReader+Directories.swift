internal import EventLoops
internal import Glibc
internal import Logs

/// The directories of the spool: opened and closed as they come and go, reached by descriptors of which few are kept.
extension SpoolReader {
    /// How deep directories may be in the spool.
    private static let deepest = 16
    /// How often it is looked whether the spool is there, once a directory in it was removed.
    private static let rootChecks = 10

    /// Begins to watch and to read the directory that a path leads to, and forgets another one that was known by it: it was
    /// removed, moved away, or exchanged for this one.
    func open(_ path: FileName, depth: Int) {
        // Hidden ones are not for us, our own `.spoolship` among them; nor is what a file system keeps at its top.
        guard !path.last.isHidden, !path.bytes.elementsEqual("lost+found".utf8) else { return }
        guard depth <= SpoolReader.deepest else { return refuse(.tooDeep, path) }
        if let place = options.place, !place.mayHold(below: path) { return }
        if options.place == nil, path.bytes.starts(with: "incoming/".utf8) { return refuseNested(path) }
        let known = tree.directories[path]
        do {
            let descriptor = try FileSystem.openDirectory(tree.root.raw, path)
            let status = try FileSystem.status(descriptor)
            // What was read and put away is not read again, whatever name the archive was given.
            if let archive = tree.archive, (status.device, status.inode) == archive.identity { return }
            let directory = SpoolDirectory(
                path: path, depth: depth, id: try FileID(descriptor, status), status.inode, of: options.place,
                isOpenToAll: status.mode & 0o002 != 0)
            guard known?.id != directory.id else { return }
            if let known { close(known) }
            guard tree.count(of: directory.app) < options.mostDirectories else {
                tree.crowded.insert(directory.app)
                return complain(
                    SpoolReader.mostDirectories(of: directory), status.owner,
                    "an app has at most \(options.mostDirectories) directories: those beyond them are not read")
            }
            tree.add(directory)
            if depth == 0 { tree.isRemote = !Mount(of: descriptor.raw).isLocal }
            reached(path)
            // Watch first, list then: what comes between is reported twice, never missed.
            watch(directory, descriptor)
            keep(consume descriptor, of: directory)
            scan(directory)
        } catch {
            switch error.number {
            case ENOENT, ENOTDIR:
                if (try? FileSystem.status(tree.root.raw, path))?.isDirectory == true {
                    tryAgain(.open, path, error) { self.open(path, depth: depth) }
                } else if let known {
                    close(known)
                }
            case ELOOP:
                refuse(.symbolicLink, path)
                if let known { close(known) }
            case EXDEV:
                refuse(.otherFileSystem, path)
                let instead = options.place == nil ? "mount it elsewhere" : "name it in `read`, without a * above it"
                complain(path, nil, "another file system is mounted here, which is not read: \(instead)")
            default:
                note(error, "cannot open directory", path)
                tryAgain(.open, path, error) { self.open(path, depth: depth) }
            }
        }
    }

    /// A directory in the drop box, which is flat, is never listed or watched, whatever is in it: one of them is reported.
    private func refuseNested(_ path: FileName) {
        guard trouble.nested == nil || trouble.nested?.path == path else { return }
        trouble.nested = (path, true)
        complain(
            path, nil, "no directory in the drop box is read: put files into it, or make an app's (spoolship app add)")
    }

    func forgetNested(_ path: FileName) {
        guard trouble.nested?.path == path else { return }
        trouble.nested = nil
        trouble.complaints.remove(path)
    }

    /// Forgets a directory and all below it: it was removed or moved away. Its files are known still.
    func close(_ directory: SpoolDirectory) {
        guard !directory.isGone else { return }
        directory.isGone = true
        tree.remove(directory)
        reached(directory.path)
        if directory.path.bytes.isEmpty { lostRoot() }
        endWatch(of: directory)
        directory.descriptor = nil
        held.directories.removeAll { $0 === directory }
        if directory.isPolled { watching.polled.removeAll { $0 === directory } }
        for holder in trouble.crowded.keys { trouble.crowded[holder]?[directory.path] = nil }
        for file in directory.files.values { displaced(file) }
        trouble.passedOver.removeAll(below: directory.path)
        trouble.refusals.removeAll(below: directory.path)
        let children = directory.children
        directory.children = [:]
        for child in children.values { close(child) }
        // There is room again: those that were refused are found by listing.
        if !tree.crowded.isEmpty, tree.count(of: directory.app) < options.mostDirectories * 7 / 8,
            tree.crowded.remove(directory.app) != nil
        {
            trouble.complaints.remove(SpoolReader.mostDirectories(of: directory))
            for other in tree.directories.values where other.app == directory.app { scan(other) }
        }
    }

    /// Under which path it is reported that an app has too many directories.
    private static func mostDirectories(of directory: SpoolDirectory) -> FileName {
        FileName(directory.path.bytes.prefix { $0 != UInt8(ascii: "/") } + Array("/*".utf8))
    }

    /// While a directory is open the kernel does not tell that it was removed, but that its content was.
    func planRootCheck() {
        if tree.rootChecksLeft == 0 { schedule(after: options.pollInterval) { self.checkRoot() } }
        tree.rootChecksLeft = SpoolReader.rootChecks
    }

    func checkRoot() {
        let left = tree.rootChecksLeft - 1
        tree.rootChecksLeft = 0
        guard let directory = tree.directories[FileName("")], let status = try? FileSystem.status(tree.root) else {
            return
        }
        guard status.links > 0 else { return close(directory) }
        tree.rootChecksLeft = left
        if left > 0 { schedule(after: options.pollInterval) { self.checkRoot() } }
    }

    private func lostRoot() {
        guard life.phase == .running else { return }
        if options.place == nil {
            log.error("spool directory is missing", ["path": options.directory, "advice": "create it"])
            let complaint = SpoolComplaint(
                path: options.directory, owner: 0, ownerName: shownName(of: 0),
                advice: "the spool directory is missing: create it")
            _ = trouble.complaints.add(complaint, at: FileName(""), of: 0)
            schedule(after: options.pollInterval) { self.findRoot() }
        } else {
            // `status` names it; such directories come and go with what writes to them. The next look finds it.
            counters.root = nil
            log.info("directory was removed", ["path": options.directory])
        }
        for child in tree.directories.values { close(child) }
        publish()
    }

    private func findRoot() {
        guard tree.directories[FileName("")] == nil else { return }
        guard let root = try? SpoolReader.openRoot(options.directory) else {
            // Told when it went; it is looked for until it is back.
            return schedule(after: options.pollInterval) { self.findRoot() }
        }
        tree.root = root
        trouble.complaints.remove(FileName(""))
        counters.root = nil
        log.warning("spool directory is back", ["path": options.directory])
        open(FileName(""), depth: 0)
    }

    /// Where files are only read: leaves a directory that its path no longer leads to, and reads the one that it leads to now; at the
    /// times of other readers, so that they wake the agent once.
    ///
    /// It was removed and made again, a link above it leads elsewhere, a parent was replaced, or something was mounted over it. What was
    /// not read of its files is read.
    func follow(_ place: ReadPlace) {
        let interval = options.pathInterval.nanosecondsClamped
        let next = (now.nanoseconds + interval / 2) / interval * interval + interval
        schedule(at: BootInstant(nanoseconds: next)) { self.follow(place) }
        guard !tree.isAwaited else {
            complain(FileName(""), 0, SpoolReader.silence)
            return publish()
        }
        take(Result { try place.open(.links, unless: counters.root, options) }, of: place, through: [])
    }

    private static let silence = "its file system does not answer; all else is read"
    private static let closedWay =
        "the agent may not enter it, or a directory above it: `spoolship check` says which (setfacl -m u:spoolship:rx)"

    /// - Parameter mounts: those on the way that may never answer.
    private func take(_ found: Result<Int32?, any Error>, of place: ReadPlace, through mounts: [String]) {
        defer { publish() }
        tree.isAwaited = false
        if case .failure(let mount as Mount) = found {
            // Without a thread it is looked for later.
            tree.isAwaited = Mount.ask(on: "mount", mount.number) { [root = counters.root, options] in
                let mounts = mounts + [mount.number]
                let found = Result { try place.open(.mounts(mounts), unless: root, options) }
                self.loop.post { self.assumeIsolated { $0.take(found, of: place, through: mounts) } }
            }
            return
        }
        if trouble.complaints[FileName("")]?.advice == SpoolReader.silence { trouble.complaints.remove(FileName("")) }
        let known = tree.directories[FileName("")]
        do {
            guard let root = try found.get().map({ Descriptor($0) }), life.phase == .running else { return }
            if let known { close(known) }
            tree.root = root
            trouble.refusals.remove(FileName(""))
            log.info("directory is read", ["path": options.directory])
            open(FileName(""), depth: 0)
        } catch {
            // A shortage says nothing about the directory.
            if let error = error as? SystemError, [.descriptors, .memory].contains(SpoolObstacle(error)) { return }
            if let known { close(known) }
            let refusal = error as? ReadPlace.Refusal
            let isClosed = (error as? SystemError)?.number == EACCES
            let advice = refusal?.advice ?? (isClosed ? SpoolReader.closedWay : nil)
            if trouble.complaints[FileName("")]?.advice != advice { trouble.complaints.remove(FileName("")) }
            guard let advice else { return }
            if let refusal { refuse(refusal.reason, FileName("")) }
            complain(FileName(""), refusal?.owner, advice)
        }
    }

    /// An open descriptor of a directory; nil if it is gone, or cannot be opened now: then all in it is looked at later.
    func descriptor(of directory: SpoolDirectory) -> Int32? { try? reach(directory) }

    /// An open descriptor of a directory.
    ///
    /// - Throws: ENOENT if it is gone; for any other error all in it is looked at later.
    func reach(_ directory: SpoolDirectory) throws(SystemError) -> Int32 {
        guard !directory.isGone else { throw SystemError("openat2", number: ENOENT) }
        if let raw = directory.descriptor?.raw { return raw }
        do throws(SystemError) {
            let descriptor = try FileSystem.openDirectory(tree.root.raw, directory.path)
            let raw = descriptor.raw
            keep(consume descriptor, of: directory)
            return raw
        } catch {
            switch error.number {
            case ENOENT, ENOTDIR:
                close(directory)
                // Known again, if it is there after all: another of that name, or a call that was mistaken.
                if !directory.path.bytes.isEmpty { open(directory.path, depth: directory.depth) }
            // Something was mounted over it.
            case EXDEV: refuse(.otherFileSystem, directory.path)
            default:
                note(error, "cannot open directory", directory.path)
                tryAgain(at: FileName(""), in: directory, error)
            }
            throw error
        }
    }

    /// Keeps a directory open for the next use, and closes the one that has been open longest.
    private func keep(_ descriptor: consuming Descriptor, of directory: SpoolDirectory) {
        directory.descriptor = consume descriptor
        held.directories.append(directory)
        while held.directories.count > held.mostDirectories { held.directories.removeFirst().descriptor = nil }
    }
}
