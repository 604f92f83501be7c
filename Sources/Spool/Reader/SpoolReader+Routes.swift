internal import EventLoops
internal import Glibc
internal import Logs
internal import Model

/// The routing table: what is due (`Errand`), what the kernel reports (`Change`) and what listing finds, and
/// who handles it.
extension SpoolReader {
    // MARK: What is due

    /// Runs due errands for at most `limit`, and charges each to its app.
    func runErrands(within limit: Duration) {
        let end = schedule.now + limit
        schedule.beginErrands()
        while let errand = schedule.popDue() {
            let start = schedule.now
            let app = share(of: errand)
            run(errand)
            if let app {
                turns.charge(app, schedule.now - start)
            }
            if schedule.now >= end { break }
        }
        schedule.endErrands()
    }

    /// The app to which an errand is charged; nil if it belongs to no app.
    private func share(of errand: Errand) -> String? {
        switch errand {
        case .read(let id), .check(let id), .endGrace(let id), .lookThroughZeros(let id),
            .hold(let id):
            lives.streams.files[id].map { reports.share(of: $0) }
        case .settle(let path, _): tree[path]?.app
        default: nil
        }
    }

    /// Runs an errand, unless its subject is gone.
    func run(_ errand: Errand) {
        switch errand {
        case .read(let id):
            if let file = lives.streams.files[id] {
                lives.makeReady(file)
            }
        case .check(let id):
            if let file = lives.streams.files[id] {
                departures.check(file)
                beginLeaving()
            }
        case .checkAnyway(let id):
            if let file = lives.streams.files[id] {
                departures.checkAnyway(file)
                beginLeaving()
            }
        case .endGrace(let id):
            if let file = lives.streams.files[id] {
                departures.grace(file)
            }
        case .lookThroughZeros(let id):
            if let file = lives.streams.files[id] {
                padding.lookAgain(at: file)
            }
        case .hold(let id):
            if let file = lives.streams.files[id] {
                opener.hold(file)
            }
        case .retryCut(let id): dropFiles.retryCut(id)
        case .settle(let path, let name):
            if let directory = tree[path] {
                recheck(name, in: directory)
            }
        case .look(let path, let name):
            if let directory = tree[path] {
                look(at: name, in: directory)
            }
        case .lookComplete(let path, let name):
            if let directory = tree[path] {
                look(at: name, in: directory, isComplete: true)
            }
        case .notice(let path, let name):
            if let directory = tree[path] {
                arrivals.notice(directory, name)
            }
        case .open(let path, let depth): directories.open(path, depth: depth)
        case .reopen(let path, let id):
            if let directory = tree[path], directory.id == id {
                directories.reopen(directory)
            }
        case .list(let path):
            if let directory = tree[path] {
                rescan(directory)
            }
        case .watch(let path):
            if let directory = tree[path] {
                directories.watchAgain(directory)
            }
        case .reportSlowName(let owner):
            reports.tellSlow(owner)
            publish()
        case .wake: schedule.wake()
        case .poll: arrivals.poll()
        case .retry: tryNow()
        case .fitDescriptors: opener.fitDescriptors()
        case .syncRemovals: removals.syncRemovals()
        case .checkRoot: directories.checkRoot()
        case .findRoot: directories.findRoot()
        case .followPath:
            if let place = context.options.place {
                arrivals.lookAtLinks()
                directories.lookAtLinks()
                directories.follow(place)
            }
        case .takeCensus: census.takeCensus()
        case .lookAtSizes: census.lookAtSizes()
        case .lookAtLinks: arrivals.lookAtLinks()
        case .lookAtLinkedDirectories: directories.lookAtLinks()
        case .giveUpUncopied:
            lives.giveUpUncopied()
            publish()
        case .releaseBuffer: buffer.releaseIfUnused()
        case .listEverything: rescanAll()
        case .publish: publish()
        case .shedDescriptors: opener.shedDescriptors()
        }
    }

    /// Runs the tasks whose retry is due.
    func tryNow() {
        for task in schedule.takeFailed() { run(task) }
        schedule.wake()
    }

    /// Examines a name as if it had just been seen.
    func look(at name: FileName, in directory: SpoolDirectory, isComplete: Bool = false) {
        guard !directory.isGone else { return }
        if case .drop = context.options.kind(of: name, in: directory) {
            dropFiles.offer(directory, name, isComplete: isComplete)
        } else {
            arrivals.notice(directory, name)
        }
    }

    /// Looks at claims of earlier runs, before any other name is handled.
    func lookAtNamesBefore() {
        for (directory, name) in directories.takeNamesBefore() { look(at: name, in: directory) }
    }

    /// Looks again at a drop file that was still being written.
    func recheck(_ name: FileName, in directory: SpoolDirectory) {
        guard directory.settling[name] != nil else { return }
        look(at: name, in: directory)
        schedule.wake()
    }

    func rescanAll() { for directory in tree.all { rescan(directory) } }

    /// Lists a directory again, and checks its known files.
    func rescan(_ directory: SpoolDirectory) {
        guard !directory.isGone else { return }
        lister.scan(directory)
        for file in directory.files.values {
            if file.hasUnread {
                lives.makeReady(file)
            } else {
                lives.considerLater(file)
            }
        }
    }

    // MARK: What listing finds

    /// Handles a name that listing has found, by its kind.
    func found(_ name: FileName, _ type: Int, _ inode: UInt64, in directory: SpoolDirectory) {
        if type == Int(DT_DIR) {
            let path = directory.path(of: name)
            if !context.options.ignores(name), tree[path]?.inode != inode {
                directories.open(path, depth: directory.depth + 1)
            }
            return
        }
        if type == Int(DT_LNK) || type == Int(DT_UNKNOWN), openLink(name, in: directory) { return }
        switch context.options.kind(of: name, in: directory) {
        case .append: arrivals.notice(directory, name)
        case .drop:
            if directory.settling[name] == nil {
                dropFiles.offer(directory, name, isComplete: false)
            }
        case .other:
            if type == Int(DT_LNK), context.options.place == nil {
                return reports.refuse(.symbolicLink, directory.path(of: name))
            }
            if type == Int(DT_REG) || type == Int(DT_UNKNOWN) {
                reports.passOver(directory, name)
                departures.passedOver(name, in: directory)
            }
            // A file that was known before the start may have been renamed to any name while the agent was
            // off.
            if !lives.streams.remembered.kept.isEmpty, lives.streams.remembered.inodes.contains(inode) {
                arrivals.notice(directory, name)
            }
        }
    }

    /// Looks at a name that may be a link to a directory. True if it is one that is read.
    private func openLink(_ name: FileName, in directory: SpoolDirectory) -> Bool {
        guard context.options.place?.follow.isEmpty == false, let raw = opener.descriptor(of: directory),
            (try? FileSystem.status(raw, name))?.isLink == true
        else { return false }
        return directories.openLink(directory.path(of: name), depth: directory.depth + 1)
    }

    // MARK: What the kernel reports

    /// Handles the changes that were read, as far as there is time.
    func takeChanges() {
        lookAtNamesBefore()
        watching.takeChanges(within: SpoolReader.changesTime) { change in
            if !watching.isOfNoConcern(change) || !lives.streams.nameless.isEmpty
                || !reports.complaints.isEmpty
            {
                take(change)
            }
        }
        // Nameless files are known for certain only now: between the two halves of a rename a file seems to
        // have no name.
        if outlet.isWaiting, !lives.streams.nameless.isEmpty {
            departures.shedNameless()
        }
    }

    /// Handles a change: finds the file or directory of its watch.
    private func take(_ change: Change) {
        guard change.kind != .overflow else {
            watching.overflowed()
            context.log.info("event queue of inotify overflowed: listing every directory again")
            for directory in tree.all { lister.scan(directory) }
            for file in lives.streams.files.values { lives.makeReady(file) }
            return
        }
        if let file = watching.files[change.watch] { return take(change.kind, of: file) }
        if watching.links.isWatched(change.watch) {
            takeLinked(change)
        }
        guard let directory = watching.directories[change.watch] else { return }
        if change.kind == .watchEnded {
            watching.ended(change.watch)
            return directories.close(directory)
        }
        if directory.path.bytes.isEmpty {
            if change.kind == .movedItself { return directories.close(directory) }
            if change.kind == .deleted, change.isDirectory {
                directories.planRootCheck()
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

    /// Handles a change in a directory to which links lead.
    private func takeLinked(_ change: Change) {
        guard change.kind != .watchEnded else { return watching.endedLinks(change.watch) }
        for link in watching.links.links(to: change.name, in: change.watch) {
            guard let directory = tree[link.directory] else { continue }
            let file = directory.files[link.name]
            switch (change.kind, file) {
            case (.modified, let file?): lives.changed(file)
            case (.closedByWriter, let file?): lives.closed(file)
            case (.movedAway, let file?), (.deleted, let file?): lives.displaced(file)
            case (.attributesChanged, _): permissionsChanged(directory, link.name)
            case (.overflow, _), (.watchEnded, _), (.movedItself, _), (.other, _): break
            default: arrivals.notice(directory, link.name)
            }
        }
    }

    /// Handles a change of a link to a directory, which the kernel does not call a directory. False for any
    /// other name.
    private func takeLink(_ kind: Change.Kind, _ directory: SpoolDirectory, _ name: FileName) -> Bool {
        guard context.options.place?.follow.isEmpty == false else { return false }
        let path = directory.path(of: name)
        switch kind {
        case .created, .movedHere: return openLink(name, in: directory)
        case .movedAway, .deleted:
            tree.linked.forget(path)
            guard let known = tree[path] else { return false }
            directories.close(known)
            return true
        default: return false
        }
    }

    /// Handles a change of a name in a directory that is not a directory itself.
    private func take(_ change: Change, _ directory: SpoolDirectory, _ name: FileName) {
        if takeLink(change.kind, directory, name) { return }
        switch change.kind {
        case .modified:
            if let file = directory.files[name] {
                lives.changed(file)
            } else if context.options.kind(of: name, in: directory) == .append,
                reports.complaints[directory.path(of: name)] == nil
            {
                arrivals.notice(directory, name)
            }
            lives.changedNameless(in: directory, name)
        case .closedByWriter:
            if let file = directory.files[name] {
                lives.closed(file)
            } else if context.options.kind(of: name, in: directory) == .other {
                // A file without a name (O_TMPFILE) is reported under a made-up name, which does not exist.
                if opener.isThere(name, in: directory) {
                    reports.passOver(directory, name)
                }
            } else {
                appeared(directory, name, isComplete: false)
            }
            closedNameless(in: directory, name)
        case .created: appeared(directory, name, isComplete: false)
        case .movedHere: arrived(directory, name, from: watching.kernel.origin(change.cookie))
        case .movedAway:
            watching.linkGone(name, in: directory)
            let file = directory.files[name]
            if let file {
                lives.displaced(file)
            }
            if file != nil || context.options.kind(of: name, in: directory) == .append {
                watching.kernel.began(change.cookie, from: KernelWatch.Origin(file: file?.id, name: name))
            }
            drops.movedAway(from: directory.path(of: name))
            departures.stayingGone(from: directory, name)
            reports.forgetName(name, in: directory)
        case .deleted:
            watching.linkGone(name, in: directory)
            if let file = directory.files[name] {
                lives.displaced(file)
            }
            directory.settling[name] = nil
            if let id = drops.stuck(at: directory.path(of: name)) {
                removals.stuckUntilDeleted(id, in: directory)
            }
            departures.stayingGone(from: directory, name)
            reports.reached(directory.path(of: name))
            reports.forgetName(name, in: directory)
            reviewLinked(in: directory)
        case .attributesChanged: permissionsChanged(directory, name)
        case .overflow, .watchEnded, .movedItself, .other: break
        }
    }

    /// A file was renamed to a name in a watched directory. If an append file was known under the old name,
    /// it continues under the new one.
    private func arrived(_ directory: SpoolDirectory, _ name: FileName, from origin: KernelWatch.Origin?) {
        let file = origin?.file.flatMap { lives.streams.files[$0] }
        guard let origin, file != nil || !context.options.ignores(name) && !name.isUnfinished else {
            return appeared(directory, name, isComplete: true)
        }
        arrivals.notice(
            directory, name, renamed: file,
            was: context.options.isRotated(origin.name) ? .rotated(origin.name) : .current(origin.name))
    }

    /// Handles a change of a directory in a directory.
    private func takeDirectory(_ kind: Change.Kind, _ directory: SpoolDirectory, _ name: FileName) {
        // Hidden directories of the spool are not read; `.spoolship` is one of them.
        guard !context.options.ignores(name) else { return }
        if directory.isIncoming, kind == .movedAway || kind == .deleted {
            return directories.forgetNested(directory.path(of: name))
        }
        switch kind {
        case .created, .movedHere, .movedAway, .deleted:
            // inotify reports late, so look at what the name refers to now.
            directories.open(directory.path(of: name), depth: directory.depth + 1)
        case .attributesChanged:
            let path = directory.path(of: name)
            guard let known = tree[path] else { return directories.open(path, depth: directory.depth + 1) }
            if reports.complaints[path] != nil {
                directories.close(known)
                directories.open(path, depth: directory.depth + 1)
            } else if reports.complaints.hasAny(below: path) {
                // Files below the directory that could not be opened may be accessible now.
                lister.scan(known)
            }
        default: break
        }
    }

    /// Handles a change that a file's own watch reports.
    private func take(_ kind: Change.Kind, of file: AppendFile) {
        switch kind {
        case .watchEnded: watching.endWatch(of: file)
        case .modified: lives.changed(file)
        case .closedByWriter: lives.closed(file)
        default: break
        }
    }

    /// A writer has closed a file that has this name or had it before. Which one is certain only if one
    /// nameless file had the name and no file has it now; otherwise all candidates are read to find out.
    private func closedNameless(in directory: SpoolDirectory, _ name: FileName) {
        let files = lives.nameless(in: directory, name)
        guard !files.isEmpty else { return }
        if files.count == 1, let raw = opener.descriptor(of: directory), isFree(name, in: raw) {
            lives.closed(files[0])
        } else {
            for file in files where file.watch == nil { lives.makeReady(file) }
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

    /// A name has appeared, or a writer has closed a file that is not known.
    func appeared(_ directory: SpoolDirectory, _ name: FileName, isComplete: Bool) {
        switch context.options.kind(of: name, in: directory) {
        case .append: arrivals.notice(directory, name)
        case .drop:
            // The reader's own claims are reported too, and ignored. Claims of earlier readers are found by
            // listing.
            if name.claimed == nil {
                dropFiles.offer(directory, name, isComplete: isComplete)
            }
        // Only a complete file is reported as not read: another one may be renamed to its final name.
        case .other: if isComplete { reports.passOver(directory, name) }
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
            let isMissed = reports.complaints[file.path] != nil
            if isMissed || file.descriptor == nil {
                lives.makeReady(file)
            }
        } else if !reports.complaints.isEmpty {
            appeared(directory, name, isComplete: false)
        }
    }
}
