internal import CLinux
internal import EventLoops
internal import Glibc
internal import Logs
internal import Model

/// How the reader notices changes: by inotify, or by polling if inotify cannot watch. While lines come one by
/// one, changes are read only so often.
///
/// `SpoolWatch` watches, and says what a change is about. What becomes of it is the reader's affair.
final class SpoolWatch {
    private let context: SpoolContext
    private let schedule: Schedule
    private let reports: Reports

    /// The reader's part of an inotify instance; nil if nothing can be watched.
    private var member: KernelQueue.Member?
    /// Watched directories by the number of their watch.
    private(set) var directories: [Int32: SpoolDirectory] = [:]
    /// Append files with a watch of their own, by its number.
    private(set) var files: [Int32: AppendFile] = [:]
    /// Links to files that were followed.
    private(set) var links = FollowedLinks()
    /// Whether file leases are unavailable, for example without CAP_LEASE. Then the kernel cannot be asked
    /// whether a writer has a file open, and nameless files need watches of their own.
    private var isWithoutLeases = false
    /// Directories that are polled.
    private(set) var polled: [SpoolDirectory] = []
    /// Why directories are polled, for people; nil if none is.
    private(set) var pollReason: String?
    /// Renames of which only the first half was seen.
    var kernel = KernelWatch()
    private(set) var attention = Attention.listening
    /// Overflows of the kernel's event queue.
    private(set) var overflows = 0

    /// When the kernel's changes are read.
    enum Attention {
        /// Changes wake the loop.
        case listening
        /// Changes woke the loop and are in the inbox.
        case heard
        /// Changes do not wake the reader until this time: lines that come one by one wait for a commit
        /// anyway, and one read for all of them saves wake-ups.
        case paused(until: BootInstant)
    }

    init(_ context: SpoolContext, _ schedule: Schedule, _ reports: Reports) {
        self.context = context
        self.schedule = schedule
        self.reports = reports
    }

    /// Watched events (inotify(7)): names that come and go, changes of content, closes by writers,
    /// permissions.
    private static let mask = UInt32(
        IN_CREATE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB
            | IN_DELETE_SELF
            | IN_MOVE_SELF | IN_ONLYDIR)

    /// Joins an inotify instance. If that fails, directories are polled.
    ///
    /// - Parameters:
    ///   - queue: the instance.
    ///   - changesCame: called when changes are in the inbox.
    func begin(_ queue: @autoclosure () -> KernelQueue, _ changesCame: @escaping () -> Void) {
        guard context.options.isWatching else {
            pollReason = "watching is turned off"
            return
        }
        do {
            member = try queue().join(changesCame)
        } catch {
            pollReason = SpoolWatch.reason(error)
        }
    }

    /// Why directories are polled, and the limit to raise. EMFILE has two causes: the user has too many
    /// inotify instances, or the process has too many open files and can open no other file either.
    private static func reason(_ error: SystemError) -> String {
        switch error.number {
        case EMFILE:
            FileSystem.hasDescriptorLeft
                ? "the agent's user has no inotify instance left: raise"
                    + " fs.inotify.max_user_instances (sysctl)"
                : "the agent has no file left to open: raise LimitNOFILE= of the unit"
        case ENFILE: "this machine has no file left to open: raise fs.file-max"
        default: "inotify is not available: \(error)"
        }
    }

    func stop() {
        if let member = member {
            member.leave()
        }
        member = nil
        directories.removeAll()
        files.removeAll()
    }

    /// Watches a nameless file itself, if only inotify can tell whether a writer has closed it. The events of
    /// its directory are not enough: they have the same name for a file that took over the name.
    func watchNameless(_ file: AppendFile) {
        guard context.options.place != nil || isWithoutLeases, file.watch == nil,
            let raw = file.descriptor?.raw,
            let member = member
        else { return }
        let mask = UInt32(IN_MODIFY | IN_CLOSE_WRITE)
        // Without a watch the file is polled, and its last line waits for the long silence (`unclosedTime`).
        guard let watch = try? member.watch(FileSystem.selfPath(raw), mask) else { return }
        file.watch = watch
        files[watch] = file
    }

    /// Leases are unavailable, so the kernel cannot be asked whether a writer has a file open. From now on
    /// only inotify events show it.
    func relyOnReports(of file: AppendFile) {
        isWithoutLeases = true
        if !file.hasName {
            watchNameless(file)
        }
    }

    func endWatch(of file: AppendFile) {
        guard let watch = file.watch else { return }
        file.watch = nil
        files[watch] = nil
        if let member = member {
            member.endWatch(watch)
        }
    }

    /// Whether inotify reports changes of a file and closes by its writers.
    func isReported(_ file: AppendFile) -> Bool {
        if context.root.isRemote { return false }
        return file.watch != nil || file.hasName && !file.directory.isPolled && member != nil
    }

    /// Watches a directory, or begins to poll it if it cannot be watched.
    func watch(_ directory: SpoolDirectory, _ descriptor: borrowing Descriptor) {
        guard let member = member else { return beginPolling(directory) }
        let error: SystemError
        do {
            let path = FileSystem.selfPath(descriptor.raw)
            let watch = try member.watch(path, SpoolWatch.mask)
            // The same directory may still be known under an earlier name; the kernel gives the same watch
            // for both.
            directories[watch]?.watch = nil
            directory.watch = watch
            directories[watch] = directory
            if context.root.isRemote {
                pollReason = "the file system is on another machine"
                beginPolling(directory)
            }
            return
        } catch let failure {
            error = failure
        }
        if error.number == EACCES {
            reports.complain(
                directory.path, nil, "the directory cannot be read: let the agent's group read and search it")
        } else if error.number == ENOSPC {
            pollReason = "no more inotify watches: raise fs.inotify.max_user_watches"
        } else {
            pollReason = error.description
        }
        beginPolling(directory)
        // ENOSPC is the limit on watches, which would refuse a retry too.
        if error.number != ENOSPC {
            schedule.tryAgain(.watch, directory.path, error, .watch(directory: directory.path))
        }
    }

    func endWatch(of directory: SpoolDirectory) {
        guard let watch = directory.watch, let member = member else { return }
        directory.watch = nil
        directories[watch] = nil
        if !links.isWatched(watch) {
            member.endWatch(watch)
        }
    }

    /// The kernel has ended the watch of a directory that is gone.
    func ended(_ watch: Int32) { directories[watch] = nil }

    // MARK: Links that are followed

    /// Watches the directory that the file of a link is in: changes of the file are reported there.
    func watch(_ target: borrowing LinkTarget, of link: FollowedLinks.Link, in directory: SpoolDirectory) {
        guard links.hasRoom(for: link) else {
            pollReason = "more than \(FollowedLinks.most) links are followed: those beyond them are polled"
            return beginPolling(directory)
        }
        let path = FileSystem.selfPath(target.directory.raw)
        let watch = try? member?.watch(path, SpoolWatch.mask)
        if watch == nil {
            beginPolling(directory)
        }
        end(links.found(link, to: target.name, in: watch))
    }

    /// The links to look at next; a new round begins with all of them.
    func takeLinksToLook(atMost most: Int) -> (links: [FollowedLinks.Link], hasMore: Bool) {
        links.takeToLook(atMost: most)
    }

    /// Ends the watch of a directory to which no link leads any more.
    func end(_ watch: Int32?) {
        guard let watch, directories[watch] == nil, let member = member else { return }
        member.endWatch(watch)
    }

    func linkGone(_ name: FileName, in directory: SpoolDirectory) {
        guard !links.isEmpty else { return }
        end(links.gone(FollowedLinks.Link(directory: directory.path, name: name)))
    }

    /// A link leads to nothing now.
    func lostTarget(of link: FollowedLinks.Link) { end(links.found(link, to: link.name, in: nil)) }

    /// A link is gone, or leads to what is not followed.
    func gone(_ link: FollowedLinks.Link) { end(links.gone(link)) }

    /// A directory is gone, with its links.
    func linksGone(in directory: FileName) {
        for watch in links.gone(in: directory) { end(watch) }
    }

    /// The kernel has ended the watch of a directory to which links lead.
    func endedLinks(_ watch: Int32) { links.ended(watch) }

    // MARK: Polling

    /// Begins to poll a directory; logs the first one.
    private func beginPolling(_ directory: SpoolDirectory) {
        guard !directory.isPolled else { return }
        if polled.isEmpty {
            context.log.warning(
                "directories are polled", ["reason": pollReason ?? "a directory cannot be read"])
            schedule.plan(after: context.options.pollInterval, .poll)
        }
        directory.isPolled = true
        polled.append(directory)
    }

    /// A directory that was polled is watched now, or gone.
    func endPolling(_ directory: SpoolDirectory) {
        guard directory.isPolled else { return }
        polled.removeAll { $0 === directory }
    }

    /// The directories whose poll is due; plans the next poll.
    func takePolled() -> [SpoolDirectory] {
        polled.removeAll { $0.isGone }
        if !polled.isEmpty {
            schedule.plan(after: context.options.pollInterval, .poll)
        }
        return polled
    }

    // MARK: Changes

    /// Changes that are handled between two looks at the clock.
    private static let changesATime = 64

    /// Handles the changes in the inbox for at most `limit`, so that a flood of changes does not block the
    /// loop. The rest is put back.
    func takeChanges(within limit: Duration, _ take: (Change) -> Void) {
        guard let member else { return }
        let bytes = member.takeChanges()
        if !bytes.isEmpty {
            let end = schedule.now + limit
            bytes.withUnsafeBytes { bytes in
                var changes = KernelWatch.changes(in: bytes)
                var count = 0
                while let change = changes.next() {
                    take(change)
                    count += 1
                    // Never stop between the two halves of a rename, which come one after the other: the file
                    // would seem to be deleted.
                    let mayEnd = count % SpoolWatch.changesATime == 0 && change.kind != .movedAway
                    guard mayEnd, schedule.now >= end else { continue }
                    member.putBack(Array(bytes[changes.offset...])[...])
                    schedule.wake()
                    break
                }
            }
        }
        // A renamed file whose second half is missing was moved to a directory that is not watched.
        kernel.batchEnded()
    }

    /// Whether a change can be skipped at once: it is of a hidden file of the spool, in a directory without
    /// known files. Most changes caused by drop files are of this kind (writing, claims, removals).
    func isOfNoConcern(_ change: Change) -> Bool {
        guard change.isHidden, context.options.place == nil, !change.isDirectory,
            change.kind != .watchEnded, !kernel.isMidRename, let directory = directories[change.watch]
        else { return false }
        return directory.files.isEmpty && directory.settling.isEmpty && directory.linked.isEmpty
    }

    /// The kernel's event queue was full.
    func overflowed() { overflows += 1 }

    // MARK: When changes are read

    /// Changes arrived in the inbox.
    func changesCame() {
        // The next `pump` handles the inbox, and need not ask the kernel again.
        attention = .heard
        schedule.wake()
    }

    /// Asks the kernel for changes. False if they are left to gather.
    func readKernelEvents() -> Bool {
        guard let member else { return false }
        switch attention {
        case .listening: member.gather()
        case .heard: attention = .listening
        case .paused(let end):
            guard schedule.now >= end else { return false }
            member.gather()
        }
        return true
    }

    /// Lets changes gather until `end`: lines that are written meanwhile would wait for the next commit
    /// anyway.
    func pause(until end: BootInstant) {
        // Each time: the wake-up may have been planned for an earlier end, and have come. Without another one
        // the reader would sleep, with lines that wait for their commit.
        schedule.plan(at: end, .wake)
        if case .paused(let known) = attention, known == end { return }
        guard let member = member else { return }
        // If this fails, changes still wake the loop, which only costs time.
        if case .paused = attention {} else if (try? member.pause()) == nil { return }
        attention = .paused(until: end)
    }

    /// End of the pause that is under way; nil without one.
    var pauseEnd: BootInstant? {
        if case .paused(let end) = attention, schedule.now < end {
            end
        } else {
            nil
        }
    }

    /// Whether a pause has ended by time: changes were left to gather until now.
    var isPauseOver: Bool {
        if case .paused(let end) = attention {
            schedule.now >= end
        } else {
            false
        }
    }

    /// Ends a pause whose time is over.
    func endPauseIfOver() {
        if isPauseOver {
            endPause()
        } else if case .paused(let end) = attention {
            schedule.plan(at: end, .wake)
        }
    }

    /// Ends a pause: changes wake the loop again. If that fails, another pause of `linger` follows.
    private func endPause() {
        guard let member = member else { return }
        guard (try? member.listen()) != nil else {
            return pause(until: schedule.now + context.options.linger)
        }
        attention = .listening
        // Another reader of the same instance may have put changes into the inbox, which the kernel does not
        // report again.
        if !member.inbox.isEmpty {
            schedule.wake()
        }
    }
}
