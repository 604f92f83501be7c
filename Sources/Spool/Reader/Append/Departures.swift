internal import EventLoops
internal import Glibc
internal import Logs
internal import Model

/// How append files go: the kernel is asked for writers, and a file that is queued is claimed and removed, or
/// forgotten if it has no name any more. `AppendFiles` decides.
final class Departures {
    private let context: SpoolContext
    private let schedule: Schedule
    private let reports: Reports
    private let outlet: Outlet
    private let watching: SpoolWatch
    private let lives: AppendLives
    private let opener: Opener
    private let admission: Admission
    private let claims: Claims
    private let lister: Lister
    private let tree: Tree
    private let drops: DropTable
    /// Files that were claimed, and leave once their last commit is durable.
    private var claimed: [FileID] = []
    /// Archives that cannot be read; empty once the first listing has ended.
    private var foreign = ForeignArchives()

    init(
        _ context: SpoolContext, _ schedule: Schedule, _ reports: Reports, _ outlet: Outlet,
        _ watching: SpoolWatch, _ lives: AppendLives, _ opener: Opener, _ admission: Admission,
        _ claims: Claims, _ lister: Lister, _ tree: Tree, _ drops: DropTable
    ) {
        self.context = context
        self.schedule = schedule
        self.reports = reports
        self.outlet = outlet
        self.watching = watching
        self.lives = lives
        self.opener = opener
        self.admission = admission
        self.claims = claims
        self.lister = lister
        self.tree = tree
        self.drops = drops
    }

    /// Looks at a file whose check is due.
    func check(_ file: AppendFile) {
        carryOut(lives.appendFiles.due(file, lives.situation(of: file), at: schedule.now), file)
    }

    /// The same, whenever the check was planned for.
    func checkAnyway(_ file: AppendFile) {
        carryOut(lives.appendFiles.dueNow(file, lives.situation(of: file), at: schedule.now), file)
    }

    /// Asks the kernel for writers with a file lease, and carries out the order that follows. The lease stays
    /// held if the file is being removed, so that a writer that comes is noticed.
    private func askForWriters(of file: AppendFile, _ known: FileFacts) {
        if file.descriptor == nil, file.hasName {
            // Opening can fail because the file is gone; reading finds that out.
            guard (try? opener.open(file)) != nil else { return lives.makeReady(file) }
        }
        guard let descriptor = file.descriptor?.raw else { return leave(file) }
        var facts = known
        facts.writers = writers(descriptor)
        if facts.writers == .unknown {
            watching.relyOnReports(of: file)
            facts.isReported = watching.isReported(file)
        }
        let isHeld = facts.writers == .absent
        if facts.writers == .absent || facts.writers == .unknown {
            // Compare the status only after the lease is held, when no process can write any more: changes
            // are reported late, and those of a nameless file not always.
            if let status = try? FileStatus(of: descriptor) {
                facts.hasChanged = status.size != file.length || status.modified != file.modified
            } else {
                facts.writers = .unanswered
            }
        }
        let isGoing = carryOut(lives.appendFiles.answered(file, facts, at: schedule.now), file)
        if isHeld, !isGoing {
            FileLease.giveBack(descriptor)
        }
    }

    /// Asks for a file lease, which the kernel grants only while no process has the file open for writing.
    private func writers(_ descriptor: Int32) -> FileFacts.Writers {
        // Files that are read in place are never leased, because a lease blocks writers.
        context.options.place == nil ? FileLease.ask(descriptor) : .unknown
    }

    /// Carries out an order. True if the file is being removed or forgotten, so that its lease must not be
    /// given back.
    @discardableResult
    private func carryOut(_ order: AppendFiles.Order, _ file: AppendFile) -> Bool {
        switch order {
        case .nothing: break
        case .check(let due): schedule.plan(at: due, .check(file.id))
        case .askForWriters(let facts): askForWriters(of: file, facts)
        case .read: lives.makeReady(file)
        case .readUnclosed(let bytes):
            context.log.warning(
                "a last line without a line feed counts as whole: no writer has closed its rotated file",
                ["path": context.options.shown(file.path), "bytes": bytes])
            lives.makeReady(file)
        case .claim:
            guard let descriptor = file.descriptor?.raw else { return false }
            return beginLeaving(file, descriptor)
        case .letGo:
            leave(file)
            return true
        }
        return false
    }

    /// Begins to remove a file that is queued and has no writer: it is claimed, and removed unless a writer
    /// opens it within `graceTime`. False if it is not removed now; the caller gives the lease back.
    private func beginLeaving(_ file: AppendFile, _ descriptor: Int32) -> Bool {
        do throws(SystemError) {
            guard let raw = opener.descriptor(of: file.directory) else {
                carryOut(lives.appendFiles.postpone(file, lives.situation(of: file), at: schedule.now), file)
                return false
            }
            let status = try FileStatus(of: descriptor)
            if status.size != file.length || file.hasUnread {
                lives.makeReady(file)
            } else if let claim = try claim(file, status, raw) {
                reports.reached(file.path)
                lives.appendFiles.beginLeaving(file, as: claim, at: schedule.now)
                claimed.append(file.id)
                return true
            } else {
                lives.displaced(file)
            }
        } catch {
            switch error.number {
            case ENOENT:
                lives.makeReady(file)
                return false
            case EEXIST: reports.complain(file.path, file.owner, Reports.nameTaken)
            case EACCES, EPERM: reports.complain(file.path, file.owner, Reports.notRemoved(error))
            default: reports.note(error, "cannot rename file", file.path)
            }
            schedule.tryAgain(.check, file.path, error, .checkAnyway(file.id))
        }
        return false
    }

    /// Claims a file. Returns the name of the claim; nil if the file's name belongs to another file by now,
    /// which keeps the name.
    private func claim(_ file: AppendFile, _ status: FileStatus, _ raw: Int32) throws(SystemError)
        -> FileName?
    {
        // Check before the rename, because another file with this name may have writers that rely on it.
        let named = try FileSystem.status(raw, file.name)
        guard named.inode == status.inode, named.device == status.device else { return nil }
        return try claims.claim(file.name, status, in: file.directory, raw)
    }

    /// The files that were claimed since the last call. For each, the caller must call `beginGrace` or
    /// `cannotPersist` once their commits are durable or cannot become so.
    func takeClaimed() -> [FileID] {
        defer { claimed = [] }
        return claimed
    }

    /// The commit of a whole file survives a power cut: its time of grace begins.
    func beginGrace(of id: FileID) {
        guard let file = lives.streams.files[id], file.stage == .leaving else { return }
        let wait = lives.appendFiles.beginGrace(file, at: schedule.now)
        schedule.plan(after: wait, .endGrace(file.id))
    }

    /// The agent stops, or cannot persist: under the name that it has the file is found by the next start.
    func cannotPersist(_ id: FileID, _ error: any Error) {
        guard let file = lives.streams.files[id], file.stage == .leaving else { return }
        context.log.info("file stays", ["path": file.path.text, "reason": "\(error)"])
        if let descriptor = file.descriptor?.raw {
            stay(file, descriptor)
        }
    }

    /// Removes a claimed file once its time of grace is over, or keeps it if a writer has opened or changed
    /// it.
    func grace(_ file: AppendFile) {
        guard file.stage == .leaving, let descriptor = file.descriptor?.raw else { return }
        let status = try? FileStatus(of: descriptor)
        let isUntouched =
            FileLease.isHeld(descriptor) && status?.size == file.length && status?.links == 1
        switch lives.appendFiles.leavingStep(file, isUntouched: isUntouched, at: schedule.now) {
        case .stay: return stay(file, descriptor)
        case .lookAgain(let wait): return schedule.plan(after: wait, .endGrace(file.id))
        case .remove: break
        }
        guard let raw = opener.descriptor(of: file.directory) else { return stay(file, descriptor) }
        do {
            // Only the agent uses the name of a claim, so it still belongs to this file.
            try claims.putAway(file.name, raw, of: reports.app(of: file.directory, file.owner))
            context.log.debug("file removed", ["path": file.path.text, "bytes": file.taken.offset])
            leave(file)
        } catch {
            reports.note(error, "cannot remove file", file.path)
            stay(file, descriptor)
        }
    }

    /// Keeps a claimed file that is needed after all: it gets its name back, if that is free, and is read on.
    private func stay(_ file: AppendFile, _ descriptor: Int32) {
        var original = file.name.claimed
        if let name = original {
            let raw = opener.descriptor(of: file.directory)
            let isFree = raw.map { (try? FileSystem.rename($0, file.name, to: name)) != nil } ?? false
            original = isFree ? name : nil
        }
        lives.appendFiles.stay(file, as: original, at: schedule.now)
        FileLease.giveBack(descriptor)
        lives.makeReady(file)
    }

    /// Lets go of a file that is gone, and remembers it for a while.
    func leave(_ file: AppendFile) {
        opener.closeDescriptor(of: file)
        let hasWaiting = !drops.areAllRead
        lives.appendFiles.letGo(file, hasWaiting: hasWaiting, in: &outlet.pass)
        useRoom()
        lives.tellCutOffs()
        schedule.wake()
    }

    /// Files have gone: has directories listed again whose files waited for room.
    private func useRoom() {
        let directories = tree.listing.takeCrowded { lives.streams.hasRoom(for: $0, dividedBy: 2) }
        for directory in directories { lister.scan(directory) }
    }

    /// Bounds the number of nameless files while reading is held back. Files with the fewest unread bytes are
    /// let go first; their bytes are counted as given up unless a copy of the file turns up.
    func shedNameless() {
        for file in opener.openFiles.namelessBeyondLimit() { letGoUnread(file) }
    }

    /// Lets go of a file that cannot be read any more, because it has no name and its descriptor is closed or
    /// must be.
    func letGoUnread(_ file: AppendFile) {
        if let raw = file.descriptor?.raw, let status = try? FileStatus(of: raw) {
            file.see(length: status.size)
        }
        lives.streams.vanished(file)
        leave(file)
    }

    /// Handles an error of opening or reading a file.
    func cannotRead(_ file: AppendFile, _ error: SystemError) {
        switch error.number {
        case EWOULDBLOCK:
            opener.waitedForLease()
            schedule.plan(after: .seconds(1), .read(file.id))
        case ENOENT:
            if file.hasName, opener.isThere(file) {
                reports.note(error, "cannot open", file.path)
                return schedule.tryAgain(.read, file.path, error, .read(file.id))
            }
            lives.displaced(file)
            guard file.descriptor == nil else { return }
            letGoUnread(file)
        default:
            admission.notRead(file.directory, file.name, error, nil)
        }
    }

    /// Whether a path's directory is known and could be listed.
    private func isListed(_ path: String) -> Bool {
        let parent = FileName(path).parent
        return tree[parent] != nil && reports.complaints[parent] == nil
    }

    /// A listing has found a file that is not read. It may be an archive of a file that was.
    func passedOver(_ name: FileName, in directory: SpoolDirectory) {
        guard !tree.listing.isFirstDone, let before = name.packedElsewhere else { return }
        // Whose it is in a directory that users share is only asked for if a file of that name is gone.
        let stream = Stream(holder: directory.holder(0), stem: before.stem)
        guard directory.isShared || lives.streams.hasAny(of: [stream]) else { return }
        foreign.found(name, of: before, in: directory.path)
    }

    /// Reports archives that may hold lines that were not read.
    private func reportForeignArchives() {
        let unread = foreign.takeUnread(
            holder: { archive, owner in tree[archive.directory]?.holder(owner) },
            status: { archive in
                guard let directory = tree[archive.directory], let raw = opener.descriptor(of: directory)
                else { return nil }
                return try? FileSystem.status(raw, archive.name)
            })
        for (archive, size) in unread {
            let path =
                archive.directory.bytes.isEmpty
                ? archive.name : FileName(archive.directory.bytes + [UInt8(ascii: "/")] + archive.name.bytes)
            lives.lost(path, bytes: size, .packedWhileStopped)
        }
    }

    /// Remembers the files that were known at the last stop and have not been found since. Bytes that were
    /// unread then are waited for, and reported if no copy of them turns up.
    func missedSinceStart() {
        var gone = (files: 0, unread: 0)
        // In the order in which the files went missing, so that the oldest are forgotten first.
        for (id, checkpoint, trace) in lives.streams.remembered.endFirstListing() {
            if trace == nil {
                // A drop file read in part, or a state of another version. While something cannot be
                // accessed it may be there.
                guard reports.complaints.isEmpty else { continue }
                // The other version's says nothing that it could be known by.
                guard ObjectSplitter.Resumption(checkpoint) != nil else {
                    lives.streams.remembered.remove(id)
                    outlet.pass.forget(id)
                    continue
                }
            }
            let isAway = !isListed(checkpoint.path)
            let hasWaiting = !drops.areAllRead
            if let cut = lives.streams.cutOffs.unreadBeforeStart(id), isReplaced(cut) {
                lives.streams.cutOffs.found(id)
            }
            if let trace, trace.missingSince == nil, trace.doneVersion == nil, trace.inode != 0, !isAway {
                gone.files += 1
                gone.unread += lives.streams.cutOffs.unreadBeforeStart(id) == nil ? 0 : 1
                if let modified = trace.modified, checkpoint.offset > 0 {
                    let joinedTops = context.options.place?.joinedTops ?? []
                    foreign.missed(
                        Stream.of(checkpoint, trace, joinedTops: joinedTops), modified: modified)
                }
            }
            lives.streams.miss(
                checkpoint, trace, isAway: isAway, hasWaiting: hasWaiting, in: &outlet.pass)
        }
        reportForeignArchives()
        if gone.files > 0 {
            context.log.info(
                "files that were read are gone since the last stop",
                ["files": gone.files, "unread_at_the_stop": gone.unread])
        }
        lives.tellCutOffs()
    }

    /// Whether another file has a missing file's name and begins with the same bytes: an editor, rsync or a
    /// backup has written the file again, and the other one is read from its beginning.
    private func isReplaced(_ cut: CutOff) -> Bool {
        guard let directory = tree[cut.path.parent], let file = directory.files[cut.path.last],
            file.size >= cut.end, (try? opener.open(file)) != nil, let descriptor = file.descriptor?.raw,
            let head = try? FileSystem.bytes(of: descriptor, at: 0, count: cut.fingerprint.length)
        else { return false }
        return cut.fingerprint.begins(head)
    }

    /// A name is gone: a drop file that was read and stayed there is remembered for a day.
    func stayingGone(from directory: SpoolDirectory, _ name: FileName) {
        guard lives.streams.remembered.hasStaying else { return }
        for (checkpoint, trace) in lives.streams.remembered.stayed(at: directory.path(of: name)) {
            let hasWaiting = !drops.areAllRead
            lives.streams.miss(checkpoint, trace, hasWaiting: hasWaiting, in: &outlet.pass)
        }
    }
}
