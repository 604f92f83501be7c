internal import EventLoops
internal import Glibc
internal import Logs
internal import Model

/// Drop files: they are found, opened, claimed and read in turns. `DropTable` decides which file is next and
/// knows the stages; `DropReader` reads the content.
final class DropFiles {
    private let context: SpoolContext
    private let schedule: Schedule
    private let reports: Reports
    private let outlet: Outlet
    private let lives: AppendLives
    private let opener: Opener
    private let admission: Admission
    private let claims: Claims
    private let lister: Lister
    private let judge: Judge
    private let removals: DropRemoval
    private let census: Census
    private let tree: Tree
    private let drops: DropTable
    private let turns: Turns
    private let buffer: BlockBuffer

    init(
        _ context: SpoolContext, _ schedule: Schedule, _ reports: Reports, _ outlet: Outlet,
        _ lives: AppendLives, _ opener: Opener, _ admission: Admission, _ claims: Claims, _ lister: Lister,
        _ judge: Judge, _ removals: DropRemoval, _ census: Census, _ tree: Tree, _ drops: DropTable,
        _ turns: Turns, _ buffer: BlockBuffer
    ) {
        self.context = context
        self.schedule = schedule
        self.reports = reports
        self.outlet = outlet
        self.lives = lives
        self.opener = opener
        self.admission = admission
        self.claims = claims
        self.lister = lister
        self.judge = judge
        self.removals = removals
        self.census = census
        self.tree = tree
        self.drops = drops
        self.turns = turns
        self.buffer = buffer
    }

    /// Most small files that are read before other work gets its turn.
    private static let smallFilesATurn = 32
    /// Time for small files before other work gets its turn.
    private static let smallFilesTime = Duration.milliseconds(5)

    /// A drop file was seen: it waits for its turn, if its app or owner has room for it.
    ///
    /// - Parameter isComplete: whether the file is known to be complete, because it was renamed to its name.
    func offer(_ directory: SpoolDirectory, _ name: FileName, isComplete: Bool) {
        let owner = owner(of: name, in: directory)
        // If the owner cannot be found out now, the file is examined again in its turn.
        let line = owner.map(reports.owners.share) ?? directory.app
        guard drops.mayStick(line) || isInQueue(name, in: directory) else {
            return awaitOthers(name, in: directory, of: line, owner)
        }
        guard drops.mayWait(line) else {
            // Listing finds the file again, but skips files that are in `settling`.
            directory.settling[name] = nil
            guard directory.isIncoming else { return lister.scan(directory) }
            // The drop box also has files of other users, so it is listed again only once few files of this
            // owner wait.
            drops.crowd(line, in: directory)
            return
        }
        let drop = PendingDrop(directory: directory, name: name, isComplete: isComplete, owner: owner)
        drops.wait(drop, in: line)
    }

    /// Whether the queue holds all of a drop file, by its identity. Such a file only has to be removed or to
    /// stay, and is not read again.
    ///
    /// Called for files of an app that has too many stuck files. If such a file waited with the others, it
    /// would count as gone at the end of the first listing, and would be read again later.
    private func isInQueue(_ name: FileName, in directory: SpoolDirectory) -> Bool {
        guard drops.hasQueued, let raw = opener.descriptor(of: directory),
            let looked = try? FileSystem.openPath(raw, name), let status = try? FileSystem.status(looked),
            let id = try? FileID(looked, status)
        else { return false }
        return drops.records(of: id) != nil
    }

    /// An app or owner has too many files that are in the queue and still exist: its other files wait until
    /// there are fewer.
    private func awaitOthers(
        _ name: FileName, in directory: SpoolDirectory, of line: String, _ owner: UInt32?
    ) {
        directory.settling[name] = nil
        let isFirst = drops.crowd(line, in: directory)
        let advice =
            "too many drop files stay because of their bad lines, or cannot be removed, the others wait:"
            + " repair these or remove them, then run `spoolship quarantine retry --files`"
        reports.complain(DropRemoval.crowdOfDrops(of: line, in: directory), owner, advice)
        // The path in the first complaint (`*.json`) does not cover a claim, whose name is hidden.
        if isFirst, name.claimed != nil {
            reports.complain(directory.path(of: name), owner, advice)
        }
    }

    /// The owner of a file in the drop box, where files wait in a queue for each owner; nil elsewhere, where
    /// they wait in their app's queue.
    private func owner(of name: FileName, in directory: SpoolDirectory) -> UInt32? {
        guard directory.isIncoming, let raw = directory.descriptor?.raw ?? opener.descriptor(of: directory)
        else {
            return nil
        }
        return try? FileSystem.status(raw, name).owner
    }

    /// Reads some drop files, or a block of a large one. False if no file waits.
    func readDropFiles() -> Bool {
        let end = schedule.now + DropFiles.smallFilesTime
        for round in 0..<DropFiles.smallFilesATurn {
            guard !outlet.handover.isDue, round == 0 || schedule.now < end && isDropNext else { return true }
            let next = drops.next(turns.shares, mostOpen: opener.openFiles.mostFiles) {
                reports.isNamed($0.directory, $0.owner)
            }
            switch next {
            case .nothing: return round > 0
            case .read: break
            case .begin(let drop, let share):
                let turn = turns.begin(of: share, schedule.now)
                begin(drop)
                turns.end(turn, schedule.now)
                removals.listCrowded(share)
            }
            guard let drop = drops.reading else { continue }
            outlet.beginFile()
            let turn = turns.begin(of: drop.share, schedule.now)
            let hasMore = read(drop)
            turns.end(turn, schedule.now)
            if outlet.handover.isParked {
                park(drop)
            } else if hasMore {
                setAside(drop)
                return true
            }
        }
        return true
    }

    /// Whether the next drop file's app has used no more time than any app with other work.
    private var isDropNext: Bool {
        turns.isDropNext(names: tree.listing.least(turns.shares), drops: drops.least(turns.shares))
    }

    /// Lets other files go first, if there are any, because this one may be of any length.
    private func setAside(_ drop: DropReading) {
        if drops.setAside() {
            keepPosition(of: drop)
        }
    }

    /// Parks the current file until the sink wants more of it, so that others are read meanwhile.
    private func park(_ drop: DropReading) {
        if drops.park() {
            keepPosition(of: drop)
        }
    }

    /// Adds the position of a file that is no longer the current one to the pass that has its events. For the
    /// current file `beginCommit` does this.
    private func keepPosition(of drop: DropReading) {
        if let checkpoint = drop.nextCheckpoint() {
            outlet.pass.keep(checkpoint, of: drop.id)
        }
    }

    /// Called when the sink wants the rest of a file that it has parked.
    private func continuation(of drop: DropReading) -> () -> Void {
        { [drops, schedule] in
            drops.resume(drop.id)
            schedule.wake()
        }
    }

    /// Opens and claims the next file. The checks go from cheap to expensive, and the claim is the last step:
    /// a file that is refused, still written to, or known keeps its name.
    private func begin(_ drop: PendingDrop) {
        let directory = drop.directory
        let name = drop.name
        guard case .drop(let format) = context.options.kind(of: name, in: directory) else { return }
        guard let raw = opener.descriptor(of: directory) else {
            // If the directory still exists, listing finds the file again.
            directory.settling[name] = nil
            return
        }
        var status: FileStatus?
        do {
            let looked = try FileSystem.openPath(raw, name)
            let seen = try FileSystem.status(looked)
            status = seen
            guard admission.admit(seen, directory, name) else {
                // The file that had this name before is gone, unless it waits for its second hard link to go.
                if directory.settling[name]?.linkedSince == nil {
                    directory.settling[name] = nil
                }
                return
            }
            let id = try FileID(looked, seen)
            guard !drops.isInHand(id) else { return }
            let share = reports.share(of: directory, seen.owner)
            let mayBegin = directory.isIncoming ? drops.mayBegin(another: share) : true
            guard mayBegin, reports.isNamed(directory, seen.owner) else {
                // The owner was unknown until now.
                var drop = drop
                drop.owner = seen.owner
                return drops.wait(drop, in: share)
            }
            lives.streams.remembered.see(id)
            if let done = drops.records(of: id) {
                return removals.removeAgain(
                    id, done, directory, name, raw, of: reports.app(of: directory, seen.owner), share)
            }
            // An append file was renamed to this name. It remains an append file, so that its lines are not
            // read again.
            let isAppendFile =
                lives.streams.files[id] != nil ? true : lives.streams.remembered.isAppendFile(id)
            if isAppendFile {
                return schedule.plan(at: schedule.now, .notice(directory: directory.path, name: name))
            }
            if lives.streams.remembered.isDone(id, seen) {
                directory.settling[name] = nil
                lives.streams.remembered.found(
                    id, at: directory.path(of: name), links: UInt64(seen.links), in: &outlet.pass)
                return
            }
            // Checked again, because thousands of files may have lined up before the first one had to stay.
            guard drops.mayStick(share) else {
                return awaitOthers(name, in: directory, of: share, seen.owner)
            }
            let wasBegun = lives.streams.remembered.kept[id].flatMap(ObjectSplitter.Resumption.init) != nil
            let isReady = drop.isComplete || wasBegun
            // Not written with `||`: its right side is an autoclosure, in which Swift 6.2 does not allow
            // access to the actor's state.
            guard isReady ? true : isSettled(directory, name, seen) else {
                return schedule.settle(name, in: directory, after: context.options.settleTime)
            }
            let descriptor = try FileSystem.read(looked)
            // Files that are read in place are never leased, because a lease blocks writers for a moment.
            let mayTakeLease = !isReady && context.options.place == nil
            guard mayTakeLease ? !FileLease.hasWriter(descriptor.raw) : true else {
                // Put even an old file into `settling`; otherwise `recheck` would skip it. The size -1 makes
                // it count as changed.
                var stamp = directory.settling[name] ?? .unknown
                stamp.size = -1
                directory.settling[name] = stamp
                return schedule.settle(name, in: directory, after: context.options.settleTime)
            }
            var known: ObjectSplitter.Resumption?
            if let before = lives.streams.remembered.readArchive(id), seen.size >= before.content.mark.offset,
                try judge.holds(before.content, descriptor.raw)
            {
                guard seen.size != before.size || seen.size != before.content.mark.offset else {
                    // Only its times have changed.
                    directory.settling[name] = nil
                    let path = directory.path(of: name)
                    let done = lives.streams.remembered.keepDone(id, at: path, seen, before.content)
                    return outlet.pass.keep(done, of: id)
                }
                known = .lines(before.content.taken)
            } else if format != .json, !wasBegun {
                switch try judge.match(
                    format, descriptor.raw, in: directory,
                    of: Stream.asked(directory.holder(seen.owner), name))
                {
                case .new:
                    guard isPassedOver(name, in: directory, seen, looked) else { break }
                    directory.settling[name] = nil
                    tree.listing.sight?.leftAlone(seen.size)
                    let done = lives.streams.remembered.keepDone(id, at: directory.path(of: name), seen)
                    return outlet.pass.keep(done, of: id)
                case .later: return schedule.settle(name, in: directory, after: context.options.settleTime)
                case .goOn(let mark, _, _):
                    known = .lines(mark.offset)
                    context.log.info(
                        "archive of a file that was read",
                        ["path": directory.path(of: name).text, "goes_on_at": mark.offset])
                }
            }
            if !directory.settling.isEmpty {
                directory.settling[name] = nil
            }
            let isStaying = context.options.afterRead == .keep || known != nil
            let claim = try isStaying ? name : claims.claim(name, seen, in: directory, raw)
            guard let claim else { return }
            reports.reached(directory.path(of: name))
            var source = SpoolSource(
                app: reports.app(of: directory, seen.owner),
                path: context.options.shown(directory.path(of: name.claimed ?? name)),
                producer: nil, mayBeCritical: !directory.isIncoming)
            if !isStaying {
                source.file = id.bytes
            }
            let file = ClaimedFile(id: id, directory: directory, claim: claim, app: source.app, share: share)
            let position =
                lives.streams.remembered.remove(id).flatMap(ObjectSplitter.Resumption.init) ?? known
            drops.begin(
                DropReading(
                    file, source: source, share: share, format: format, isKept: isStaying, status: seen,
                    descriptor: descriptor, longest: context.options.maxEventSize, from: position))
        } catch {
            cannotBegin(directory, name, error, status)
        }
    }

    /// Whether a compressed file with unknown content is skipped; see `FirstSight`.
    private func isPassedOver(
        _ name: FileName, in directory: SpoolDirectory, _ status: FileStatus, _ looked: borrowing Descriptor
    ) -> Bool {
        guard let sight = tree.listing.sight else { return false }
        let born = FileSystem.birth(looked)
        return sight.leavesAlone(name, in: directory.path, born: born, modified: status.modified)
    }

    /// Handles an error of opening or claiming a drop file: a retry, and a complaint if a person can fix it.
    func cannotBegin(
        _ directory: SpoolDirectory, _ name: FileName, _ error: SystemError, _ status: FileStatus?
    ) {
        // No timer looks at the name again, so it leaves `settling`. Whatever file has the name at the next
        // listing is a new one.
        if error.number != EWOULDBLOCK {
            directory.settling[name] = nil
        }
        switch error.number {
        case EWOULDBLOCK:
            opener.waitedForLease()
            schedule.settle(name, in: directory, after: .seconds(1))
        case _ where [EACCES, EPERM, EROFS].contains(error.number) && error.call == "renameat2":
            reports.complain(directory.path(of: name), status?.owner, Reports.notRemoved(error))
            schedule.tryAgain(at: name, in: directory, error)
        case EEXIST where error.call == "renameat2":
            reports.complain(directory.path(of: name), status?.owner, Reports.nameTaken)
            schedule.tryAgain(at: name, in: directory, error)
        // One ENOENT is proof enough that the file is gone.
        case ENOENT: admission.notOpened(directory, name, error)
        case _ where status == nil: admission.notOpened(directory, name, error)
        default: admission.notRead(directory, name, error, status)
        }
    }

    /// Whether a file that is written in place has not changed for the settle time. If not, its status is
    /// remembered.
    private func isSettled(_ directory: SpoolDirectory, _ name: FileName, _ status: FileStatus) -> Bool {
        // A file that is old by its time stamps need not be observed first. The check compares with the wall
        // clock; a negative age is never old.
        let age = context.time.wallTime - max(status.modified, status.changed)
        if directory.settling[name] == nil, age > context.options.settleTime { return true }
        // In a spool the kernel is also asked for writers, so two equal looks suffice there.
        let time = context.options.place == nil ? .zero : context.options.settleTime
        return directory.settling[name, default: .unknown].see(status, for: time, at: schedule.now)
    }

    // MARK: Content

    /// Reads a block. True if there is more to read.
    private func read(_ drop: DropReading) -> Bool {
        do {
            return try readBlock(of: drop)
        } catch {
            giveUp(drop, for: error)
            return false
        }
    }

    /// One turn of a drop file: does the steps for which `DropReader` asks, until the block is used up or a
    /// commit is due. True if there is more to read.
    private func readBlock(of drop: DropReading) throws(SystemError) -> Bool {
        guard let descriptor = drop.descriptor?.raw else { return false }
        var block = UnsafeRawBufferPointer(start: nil, count: 0)
        var isLast = false
        drop.content.beginTurn()
        while true {
            switch drop.content.next(in: block, isLast: isLast) {
            case .read(let offset):
                let buffer = buffer.take()
                let count = try FileSystem.read(descriptor, into: buffer, at: offset)
                block = UnsafeRawBufferPointer(rebasing: buffer[..<count])
                isLast = count < buffer.count
            case .unpack: try unpack(drop, descriptor)
            case .hand:
                let source = drop.source
                guard drop.content.hand({ outlet.offer($0, from: source, at: $1) }) else {
                    outlet.awaitSink(continuation(of: drop))
                    return true
                }
                if outlet.handover.isDue { return true }
            case .tooLong(let found):
                outlet.tooLong(
                    found.what, found.length, from: drop.source, at: found.offset, content: found.content)
                if outlet.handover.isDue { return true }
            case .pause: return true
            case .fault(let reason, let detail):
                try quarantineRest(of: drop, reason, detail)
                return false
            case .endsEarly(let detail):
                try endedEarly(drop, detail)
                return false
            case .end:
                finish(drop)
                return false
            }
        }
    }

    /// Unpacks the next part of an archive.
    private func unpack(_ drop: DropReading, _ descriptor: Int32) throws(SystemError) {
        if drop.content.archive == nil {
            drop.content.archive = judge.packed(drop.content.format)
        }
        guard let archive = drop.content.archive else { throw SystemError("malloc", number: ENOMEM) }
        try archive.fill(from: descriptor, atMost: Int64(SpoolReader.sliceBytes))
        drop.content.unpacked()
    }

    /// A file ends too early: it is read a second time after a pause, because its writer may still be
    /// writing. Then the rest is quarantined.
    private func endedEarly(_ drop: DropReading, _ detail: String) throws(SystemError) {
        guard let descriptor = drop.descriptor?.raw else { return }
        guard !drop.content.isSecondTry, drops.awaitRetry() else {
            return try quarantineRest(of: drop, .cutShort, detail)
        }
        keepPosition(of: drop)
        drop.startOver(behind: try judge.mark(at: drop.content.position, descriptor))
        schedule.plan(after: context.options.secondTry, .retryCut(drop.id))
    }

    /// Quarantines the rest of a file behind the last event, or a whole archive, in one record, and ends
    /// reading.
    private func quarantineRest(
        of drop: DropReading, _ reason: QuarantineRecord.Reason, _ detail: String
    ) throws(SystemError) {
        guard let descriptor = drop.descriptor?.raw else { return }
        let begin = drop.content.restStart
        let rest = max(0, try FileStatus(of: descriptor).size - begin)
        let length = rest <= Int64(context.options.maxEventSize) ? Int(rest) : ObjectSplitter.excerpt
        outlet.quarantine(
            reason, detail, from: drop.source, at: drop.content.taken.offset, length: rest,
            content: try FileSystem.bytes(of: descriptor, at: begin, count: length))
        finish(drop)
    }

    /// Opens a file that ended too early for its second try.
    func retryCut(_ id: FileID) {
        guard let drop = drops.cut(id) else { return }
        let file = drop.file
        guard let raw = opener.descriptor(of: file.directory) else { return giveUp(drop) }
        do {
            let looked = try FileSystem.openPath(raw, file.claim)
            guard try FileID(looked, FileSystem.status(looked)) == id else { return giveUp(drop) }
            drop.descriptor = try FileSystem.read(looked)
            drops.retry(id)
            schedule.wake()
        } catch {
            giveUp(drop)
            cannotBegin(file.directory, file.claim, error, drop.status)
        }
    }

    /// Lets go of a file that cannot be read now, and plans a retry under its present name.
    private func giveUp(_ drop: DropReading, for error: SystemError) {
        giveUp(drop)
        let directory = drop.file.directory
        let name = drop.file.claim
        reports.note(error, "cannot read drop file", directory.path(of: name))
        schedule.tryAgain(at: name, in: directory, error)
    }

    /// Lets go of a file that cannot be read now. When it is found again, reading continues at its last
    /// checkpoint.
    private func giveUp(_ drop: DropReading) {
        drops.letGo(drop.id)
        if let checkpoint = drop.lastCheckpoint {
            lives.streams.remembered.keepPresent(checkpoint)
        }
    }

    /// A file was read to its end: it is removed after the commit, or gets a checkpoint that says that it was
    /// read.
    private func finish(_ drop: DropReading) {
        drops.wasRead()
        census.wasRead(size: drop.status.size)
        guard !drop.isKept else {
            let isOneContent = isOneContent(drop)
            let status = statusWhenRead(drop, isOneContent: isOneContent)
            let archive = isOneContent ? drop.content.readArchive : nil
            drops.letGo(drop.id)
            let done = lives.streams.remembered.keepDone(drop.id, at: drop.file.path, status, archive)
            return outlet.pass.keep(done, of: drop.id)
        }
        drops.wasTaken(drop.file)
        if outlet.pass.checkpoints[drop.id] != nil || drop.lastCheckpoint != nil {
            outlet.pass.forget(drop.id)
        }
        outlet.pass.done.append(drop.file)
    }

    /// The status with which a file that stays counts as read: that at its opening, or the present one if a
    /// writer that was still at work has appended to it, and it was read up to its present end. With the
    /// earlier status it would count as changed, and a `.json` file would be read again.
    private func statusWhenRead(_ drop: DropReading, isOneContent: Bool) -> FileStatus {
        guard isOneContent, let descriptor = drop.descriptor?.raw,
            let status = try? FileStatus(of: descriptor), status.size > drop.status.size,
            status.size == drop.content.position
        else { return drop.status }
        return status
    }

    /// Whether a file had the same beginning in both of its tries. If it was rewritten between them, it
    /// counts as changed: the second try has skipped the beginning of the new content.
    private func isOneContent(_ drop: DropReading) -> Bool {
        guard let cut = drop.cut else { return true }
        guard let descriptor = drop.descriptor?.raw else { return false }
        return (try? judge.mark(at: cut.offset, descriptor)) == cut
    }
}
