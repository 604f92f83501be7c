internal import CLinux
internal import EventLoops
internal import Glibc
internal import Logs

/// The I/O of changes: inotify, or polling if inotify cannot watch. While lines come one by one, changes are
/// read once for each commit.
extension SpoolReader {
    /// Watched events (inotify(7)): names that come and go, changes of content, closes by writers,
    /// permissions.
    private static let mask = UInt32(
        IN_CREATE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB
            | IN_DELETE_SELF
            | IN_MOVE_SELF | IN_ONLYDIR)

    /// Joins an inotify instance. If that fails, directories are polled.
    func beginWatching() {
        guard options.isWatching else {
            watching.pollReason = "watching is turned off"
            return
        }
        // The spool has an instance of its own; all apps that read in place share one.
        let queue = options.place == nil ? KernelQueue(on: loop) : shared.assumeOnLoop { $0.places }
        do {
            watching.member = try queue.join { [weak self] in
                self?.assumeIsolated { $0.changesCame() }
            }
        } catch {
            watching.pollReason = SpoolReader.reason(error)
        }
    }

    /// Why directories are polled. EMFILE has two causes: too many inotify instances, or too many open files.
    private static func reason(_ error: SystemError) -> String {
        switch error.number {
        case EMFILE:
            "no inotify instance is left: raise fs.inotify.max_user_instances,"
                + " or LimitNOFILE if the agent has no file left"
        case ENFILE: "this machine has no file left to open: raise fs.file-max"
        default: "inotify is not available: \(error)"
        }
    }

    func endWatching() {
        if let member = watching.member {
            member.leave()
        }
        watching.member = nil
        watching.directories.removeAll()
        watching.files.removeAll()
    }

    /// Watches a nameless file itself, if only inotify can tell whether a writer has closed it. The events of
    /// its directory are not enough: they have the same name for a file that took over the name.
    func watchNameless(_ file: AppendFile) {
        guard options.place != nil || watching.isWithoutLeases, file.watch == nil,
            let raw = file.descriptor?.raw,
            let member = watching.member
        else { return }
        let mask = UInt32(IN_MODIFY | IN_CLOSE_WRITE)
        // Without a watch the file is polled, and its last line waits for the long silence (`unclosedTime`).
        guard let watch = try? member.watch(FileSystem.selfPath(raw), mask) else { return }
        file.watch = watch
        watching.files[watch] = file
    }

    /// Leases are unavailable, so the kernel cannot be asked whether a writer has a file open. From now on
    /// only inotify events show it.
    func relyOnReports(of file: AppendFile) {
        watching.isWithoutLeases = true
        if !file.hasName {
            watchNameless(file)
        }
    }

    func endWatch(of file: AppendFile) {
        guard let watch = file.watch else { return }
        file.watch = nil
        watching.files[watch] = nil
        if let member = watching.member {
            member.endWatch(watch)
        }
    }

    /// Whether inotify reports changes of a file and closes by its writers.
    func isReported(_ file: AppendFile) -> Bool {
        if root.isRemote { return false }
        return file.watch != nil || file.hasName && !file.directory.isPolled && watching.member != nil
    }

    /// Watches a directory, or begins to poll it if it cannot be watched.
    func watch(_ directory: SpoolDirectory, _ descriptor: borrowing Descriptor) {
        guard let member = watching.member else { return beginPolling(directory) }
        let error: SystemError
        do {
            let path = FileSystem.selfPath(descriptor.raw)
            let watch = try member.watch(path, SpoolReader.mask)
            // The same directory may still be known under an earlier name; the kernel gives the same watch
            // for both.
            watching.directories[watch]?.watch = nil
            directory.watch = watch
            watching.directories[watch] = directory
            if root.isRemote {
                watching.pollReason = "the file system is on another machine"
                beginPolling(directory)
            }
            return
        } catch let failure {
            error = failure
        }
        if error.number == EACCES {
            complain(
                directory.path, nil, "the directory cannot be read: let the agent's group read and search it")
        } else if error.number == ENOSPC {
            watching.pollReason = "no more inotify watches: raise fs.inotify.max_user_watches"
        } else {
            watching.pollReason = error.description
        }
        beginPolling(directory)
        // ENOSPC is the limit on watches, which would refuse a retry too.
        if error.number != ENOSPC {
            tryAgain(.watch, directory.path, error, .watch(directory: directory.path))
        }
    }

    func endWatch(of directory: SpoolDirectory) {
        guard let watch = directory.watch, let member = watching.member else { return }
        directory.watch = nil
        watching.directories[watch] = nil
        if !watching.links.isWatched(watch) {
            member.endWatch(watch)
        }
    }

    // MARK: Links that are followed

    /// Watches the directory that the file of a link is in: changes of the file are reported there.
    func watch(_ target: borrowing LinkTarget, of link: FollowedLinks.Link, in directory: SpoolDirectory) {
        let path = FileSystem.selfPath(target.directory.raw)
        let watch = try? watching.member?.watch(path, SpoolReader.mask)
        if watch == nil {
            beginPolling(directory)
        }
        end(watching.links.found(link, to: target.name, in: watch))
    }

    /// Ends the watch of a directory to which no link leads any more.
    func end(_ watch: Int32?) {
        guard let watch, watching.directories[watch] == nil, let member = watching.member else { return }
        member.endWatch(watch)
    }

    /// Looks at all links again: no event reports that a link in the middle leads elsewhere, or that the
    /// directory comes in which the file is.
    func lookAtLinks() {
        for link in watching.links.all {
            if let directory = tree[link.directory] {
                notice(directory, link.name)
            }
        }
    }

    private func linkGone(_ name: FileName, in directory: SpoolDirectory) {
        guard !watching.links.isEmpty else { return }
        end(watching.links.gone(FollowedLinks.Link(directory: directory.path, name: name)))
    }

    /// Handles a change in a directory to which links lead.
    private func takeLinked(_ change: Change) {
        guard change.kind != .watchEnded else { return watching.links.ended(change.watch) }
        for link in watching.links.links(to: change.name, in: change.watch) {
            guard let directory = tree[link.directory] else { continue }
            let file = directory.files[link.name]
            switch (change.kind, file) {
            case (.modified, let file?): changed(file)
            case (.closedByWriter, let file?): closed(file)
            case (.movedAway, let file?), (.deleted, let file?): displaced(file)
            case (.attributesChanged, _): permissionsChanged(directory, link.name)
            case (.overflow, _), (.watchEnded, _), (.movedItself, _), (.other, _): break
            default: notice(directory, link.name)
            }
        }
    }

    /// Tries to watch a directory that could not be watched. On success it is no longer polled, and listed
    /// once more for changes that came in between.
    func watchAgain(_ directory: SpoolDirectory) {
        guard !directory.isGone, directory.watch == nil, descriptor(of: directory) != nil else { return }
        do {
            watch(directory, try FileSystem.openDirectory(root.raw, directory.path))
        } catch {
            return tryAgain(.watch, directory.path, error, .watch(directory: directory.path))
        }
        guard directory.watch != nil, !directory.isPolled || !root.isRemote else { return }
        directory.isPolled = false
        watching.polled.removeAll { $0 === directory }
        scan(directory)
    }

    // MARK: Polling

    /// Begins to poll a directory; logs the first one.
    private func beginPolling(_ directory: SpoolDirectory) {
        guard !directory.isPolled else { return }
        if watching.polled.isEmpty {
            log.warning(
                "directories are polled", ["reason": watching.pollReason ?? "a directory cannot be read"])
            schedule(after: options.pollInterval, .poll)
        }
        directory.isPolled = true
        watching.polled.append(directory)
    }

    /// Lists all polled directories, and looks at the sizes of their files.
    func poll() {
        watching.polled.removeAll { $0.isGone }
        for directory in watching.polled {
            scan(directory)
            for file in directory.files.values { pollSize(of: file) }
        }
        if !watching.polled.isEmpty {
            schedule(after: options.pollInterval, .poll)
        }
    }

    /// Looks at the size of a file in a polled directory.
    private func pollSize(of file: AppendFile) {
        guard let raw = descriptor(of: file.directory) else { return }
        let status: FileStatus
        do {
            status = try FileSystem.status(try openName(file.name, in: file.directory, raw))
        } catch {
            // A file that is gone is read to its end and closed.
            if error.number == ENOENT, file.descriptor != nil {
                displaced(file)
            }
            return makeReady(file)
        }
        // Another file has the name. It must be noticed while the old file is still known by the name, so
        // that a rotation is recognised; reading the old file finds out where it is.
        guard status.inode == file.trace.inode else {
            notice(file.directory, file.name)
            return makeReady(file)
        }
        // The time is compared too, because a file can be rewritten with the same size.
        if status.size != file.length || status.modified != file.modified {
            changed(file)
        }
        update(file, status)
    }

    // MARK: Changes

    /// Changes that are handled between two looks at the clock.
    private static let changesATime = 64

    /// Handles the changes in the inbox for at most `limit`, so that a flood of changes does not block the
    /// loop. The rest is put back.
    func takeChanges(of member: KernelQueue.Member, within limit: Duration) {
        let bytes = member.takeChanges()
        if !bytes.isEmpty {
            let end = now + limit
            bytes.withUnsafeBytes { bytes in
                var changes = KernelWatch.changes(in: bytes)
                var count = 0
                while let change = changes.next() {
                    if !isOfNoConcern(change) {
                        take(change)
                    }
                    count += 1
                    // Never stop between the two halves of a rename, which come one after the other: the file
                    // would seem to be deleted.
                    let mayEnd = count % SpoolReader.changesATime == 0 && change.kind != .movedAway
                    guard mayEnd, now >= end else { continue }
                    member.putBack(Array(bytes[changes.offset...])[...])
                    wake()
                    break
                }
            }
        }
        // A renamed file whose second half is missing was moved to a directory that is not watched.
        watching.kernel.batchEnded()
        // Nameless files are known for certain only now: between the two halves of a rename a file seems to
        // have no name.
        if isWaiting, !streams.nameless.isEmpty {
            shedNameless()
        }
    }

    /// Whether a change can be skipped at once: it is of a hidden file in a directory without known files.
    /// Most changes caused by drop files are of this kind (writing, claims, removals).
    private func isOfNoConcern(_ change: Change) -> Bool {
        guard change.isHidden, !change.isDirectory, change.kind != .watchEnded, !watching.kernel.isMidRename,
            streams.nameless.isEmpty, complaints.isEmpty, let directory = watching.directories[change.watch]
        else { return false }
        return directory.files.isEmpty && directory.settling.isEmpty && directory.linked.isEmpty
    }

    /// Handles a change: finds the file or directory of its watch.
    private func take(_ change: Change) {
        guard change.kind != .overflow else {
            watching.overflows += 1
            log.info("event queue of inotify overflowed: listing every directory again")
            for directory in tree.all { scan(directory) }
            for file in streams.files.values { makeReady(file) }
            return
        }
        if let file = watching.files[change.watch] { return take(change.kind, of: file) }
        if watching.links.isWatched(change.watch) {
            takeLinked(change)
        }
        guard let directory = watching.directories[change.watch] else { return }
        if change.kind == .watchEnded {
            watching.directories[change.watch] = nil
            return close(directory)
        }
        if directory.path.bytes.isEmpty {
            if change.kind == .movedItself { return close(directory) }
            if change.kind == .deleted, change.isDirectory {
                planRootCheck()
            }
        }
        let name = change.name
        guard !name.bytes.isEmpty else { return }
        if change.isDirectory {
            takeDirectory(change.kind, directory, name)
        } else {
            take(change, directory, name)
        }
    }

    /// Handles a change of a name in a directory that is not a directory itself.
    private func take(_ change: Change, _ directory: SpoolDirectory, _ name: FileName) {
        switch change.kind {
        case .modified:
            if let file = directory.files[name] {
                changed(file)
            } else if options.kind(of: name, in: directory) == .append,
                complaints[directory.path(of: name)] == nil
            {
                notice(directory, name)
            }
            changedNameless(in: directory, name)
        case .closedByWriter:
            if let file = directory.files[name] {
                closed(file)
            } else if options.kind(of: name, in: directory) == .other {
                // A file without a name (O_TMPFILE) is reported under a made-up name, which does not exist.
                if isThere(name, in: directory) {
                    passOver(directory, name)
                }
            } else {
                appeared(directory, name, isComplete: false)
            }
            closedNameless(in: directory, name)
        case .created: appeared(directory, name, isComplete: false)
        case .movedHere: arrived(directory, name, from: watching.kernel.origin(change.cookie))
        case .movedAway:
            linkGone(name, in: directory)
            let file = directory.files[name]
            if let file {
                displaced(file)
            }
            if file != nil || options.kind(of: name, in: directory) == .append {
                watching.kernel.began(change.cookie, from: KernelWatch.Origin(file: file?.id, name: name))
            }
            drops.movedAway(from: directory.path(of: name))
            stayingGone(from: directory, name)
            forgetName(name, in: directory)
        case .deleted:
            linkGone(name, in: directory)
            if let file = directory.files[name] {
                displaced(file)
            }
            directory.settling[name] = nil
            if let id = drops.stuck(at: directory.path(of: name)) {
                stuckUntilDeleted(id, in: directory)
            }
            stayingGone(from: directory, name)
            reached(directory.path(of: name))
            forgetName(name, in: directory)
            reviewLinked(in: directory)
        case .attributesChanged: permissionsChanged(directory, name)
        case .overflow, .watchEnded, .movedItself, .other: break
        }
    }

    /// A file was renamed to a name in a watched directory. If an append file was known under the old name,
    /// it continues under the new one.
    private func arrived(_ directory: SpoolDirectory, _ name: FileName, from origin: KernelWatch.Origin?) {
        let file = origin?.file.flatMap { streams.files[$0] }
        guard let origin, file != nil || !name.isHidden && !name.isUnfinished else {
            return appeared(directory, name, isComplete: true)
        }
        notice(
            directory, name, renamed: file,
            was: options.isRotated(origin.name) ? .rotated(origin.name) : .current(origin.name))
    }

    /// Handles a change of a directory in a directory.
    private func takeDirectory(_ kind: Change.Kind, _ directory: SpoolDirectory, _ name: FileName) {
        // Hidden directories are not read; `.spoolship` is one of them.
        guard !name.isHidden else { return }
        if directory.isIncoming, kind == .movedAway || kind == .deleted {
            return forgetNested(directory.path(of: name))
        }
        switch kind {
        case .created, .movedHere, .movedAway, .deleted:
            // inotify reports late, so look at what the name refers to now.
            open(directory.path(of: name), depth: directory.depth + 1)
        case .attributesChanged:
            let path = directory.path(of: name)
            guard let known = tree[path] else { return open(path, depth: directory.depth + 1) }
            if complaints[path] != nil {
                close(known)
                open(path, depth: directory.depth + 1)
            } else if complaints.hasAny(below: path) {
                // Files below the directory that could not be opened may be accessible now.
                scan(known)
            }
        default: break
        }
    }

    /// The content of a file has changed.
    private func changed(_ file: AppendFile) {
        appendFiles.changed(file, at: now)
        makeReady(file)
    }

    /// A writer has closed a file; other writers may still have it open.
    private func closed(_ file: AppendFile) {
        if appendFiles.closed(file, at: now) {
            makeReady(file)
        }
        considerLater(file)
    }

    /// Handles a change that a file's own watch reports.
    private func take(_ kind: Change.Kind, of file: AppendFile) {
        switch kind {
        case .watchEnded: endWatch(of: file)
        case .modified: changed(file)
        case .closedByWriter: closed(file)
        default: break
        }
    }

    /// A writer has closed a file that has this name or had it before. Which one is certain only if one
    /// nameless file had the name and no file has it now; otherwise all candidates are read to find out.
    private func closedNameless(in directory: SpoolDirectory, _ name: FileName) {
        guard !streams.nameless.isEmpty else { return }
        let files = streams.nameless.values.filter { $0.directory === directory && $0.name == name }
        guard !files.isEmpty else { return }
        if files.count == 1, let raw = descriptor(of: directory), isFree(name, in: raw) {
            closed(files[0])
        } else {
            for file in files where file.watch == nil { makeReady(file) }
        }
    }

    /// Whether no file has a name.
    private func isFree(_ name: FileName, in directory: Int32) -> Bool {
        do {
            _ = try FileSystem.status(directory, name)
            return false
        } catch {
            return error.number == ENOENT
        }
    }

    /// inotify reports changes of a nameless file under the name that the file had.
    private func changedNameless(in directory: SpoolDirectory, _ name: FileName) {
        guard !streams.nameless.isEmpty else { return }
        for file in streams.nameless.values where file.directory === directory && file.name == name {
            changed(file)
        }
    }

    /// A name has appeared, or a writer has closed a file that is not known.
    func appeared(_ directory: SpoolDirectory, _ name: FileName, isComplete: Bool) {
        switch options.kind(of: name, in: directory) {
        case .append: notice(directory, name)
        case .drop:
            // The reader's own claims are reported too, and ignored. Claims of earlier readers are found by
            // listing.
            if name.claimed == nil {
                offer(directory, name, isComplete: isComplete)
            }
        // Only a complete file is reported as not read: another one may be renamed to its final name.
        case .other: if isComplete { passOver(directory, name) }
        }
    }

    /// A name was deleted. It may have been the second hard link of a refused file, so refused files are
    /// looked at again.
    private func reviewLinked(in directory: SpoolDirectory) {
        guard !directory.linked.isEmpty else { return }
        let names = directory.linked
        directory.linked.removeAll()
        for name in names { appeared(directory, name, isComplete: false) }
    }

    /// The attributes of a file have changed: a file that could not be read may be readable now.
    private func permissionsChanged(_ directory: SpoolDirectory, _ name: FileName) {
        if let file = directory.files[name] {
            // The removal of an open file's last name is also reported as a change of attributes (the link
            // count), so an open file without a complaint is skipped.
            let isMissed = complaints[file.path] != nil
            if isMissed || file.descriptor == nil {
                makeReady(file)
            }
        } else if !complaints.isEmpty {
            appeared(directory, name, isComplete: false)
        }
    }

    // MARK: When changes are read

    /// Changes arrived in the inbox.
    func changesCame() {
        // The next `pump` handles the inbox, and need not ask the kernel again.
        watching.attention = .heard
        wake()
    }

    /// Handles changes, unless they are left to gather.
    func hear() {
        guard let member = watching.member else { return }
        switch watching.attention {
        case .listening: member.gather()
        case .heard: watching.attention = .listening
        case .resting(let end):
            guard now >= end else { return }
            member.gather()
        }
        takeChanges(of: member, within: SpoolReader.changesTime)
    }

    /// Lets changes gather until `end`: lines that are written meanwhile would wait for the next commit
    /// anyway.
    func rest(until end: BootInstant) {
        if case .resting(let known) = watching.attention, known == end { return }
        schedule(at: end, .wake)
        guard let member = watching.member else { return }
        // If this fails, changes still wake the loop, which only costs time.
        if case .resting = watching.attention {} else if (try? member.rest()) == nil { return }
        watching.attention = .resting(until: end)
    }

    /// Whether a rest has ended by time: changes were left to gather until now.
    var isRested: Bool {
        if case .resting(let end) = watching.attention {
            now >= end
        } else {
            false
        }
    }

    /// Ends a rest: changes wake the loop again. If that fails, another rest of `linger` follows.
    func endRest() {
        guard let member = watching.member else { return }
        guard (try? member.listen()) != nil else { return rest(until: now + options.linger) }
        watching.attention = .listening
        // Another reader of the same instance may have put changes into the inbox, which the kernel does not
        // report again.
        if !member.inbox.isEmpty {
            wake()
        }
    }
}
