internal import CLinux
internal import EventLoops
internal import Glibc
internal import Logs

extension SpoolReader {
    /// Drop files that are read in part and set aside at most: each keeps a block in memory.
    private static let mostAside = 16
    /// How many small files are read before other work gets its turn.
    private static let smallFilesATurn = 32
    private static let smallFilesTime = Duration.milliseconds(5)

    func offer(_ directory: SpoolDirectory, _ name: FileName, isComplete: Bool) {
        let owner = owner(of: name, in: directory)
        // What cannot be looked at now is looked at again in its turn.
        let line = owner.map(share) ?? directory.app
        guard name.claimed != nil || drops.mayStay(line, of: options.mostStayingDrops) else {
            directory.settling[name] = nil
            drops.crowded[line, default: [:]][directory.path] = directory
            return complain(
                SpoolReader.crowd(of: line, in: directory), owner,
                "too many drop files stay because of their bad lines, the others wait: repair these or remove them, then run"
                    + " `spoolship quarantine retry --files`")
        }
        // Each owner or app has room for some, however many there are.
        let most = min(options.mostWaitingDrops, max(4, options.mostDropsInAll / (drops.waiting.lineCount + 1)))
        guard drops.waiting.count(of: line) < most else {
            // Listing finds it again, and only what is not known to be settling.
            directory.settling[name] = nil
            guard directory.isIncoming else { return scan(directory) }
            // Others' files are there too: it is listed again when few of this owner's wait.
            drops.crowded[line, default: [:]][directory.path] = directory
            return
        }
        let drop = PendingDrop(directory: directory, name: name, isComplete: isComplete, owner: owner)
        drops.waiting.append(drop, to: line)
    }

    /// Whose a drop file is in the drop box, which all users share: it waits in its owner's line, any other one in its app's.
    private func owner(of name: FileName, in directory: SpoolDirectory) -> UInt32? {
        guard directory.isIncoming, let raw = directory.descriptor?.raw ?? descriptor(of: directory) else { return nil }
        return try? FileSystem.status(raw, name).owner
    }

    /// Few files of an app or owner wait or stay: where there were more than may, they are looked for.
    func listCrowded(_ line: String) {
        guard !drops.crowded.isEmpty, drops.waiting.count(of: line) < SpoolReader.fewWaiting,
            drops.mayStay(line, of: options.mostStayingDrops, dividedBy: 2),
            let directories = drops.crowded.removeValue(forKey: line)
        else { return }
        for directory in directories.values {
            trouble.complaints.remove(SpoolReader.crowd(of: line, in: directory))
            if !directory.isGone { scan(directory) }
        }
    }

    /// Under which path it is reported that the drop files of an app or owner wait for others that stay.
    private static func crowd(of line: String, in directory: SpoolDirectory) -> FileName {
        FileName("\(directory.path.text)/*.json\(directory.isIncoming ? ", \(line)" : "")")
    }

    /// The time has come to look again at a drop file that was still being written.
    func recheck(_ name: FileName, in directory: SpoolDirectory) {
        guard directory.settling[name] != nil else { return }
        look(at: name, in: directory)
        wake()
    }

    /// Reads some drop files, or a block of a large one. False: there is none.
    func readDropFiles() -> Bool {
        let end = now + SpoolReader.smallFilesTime
        for round in 0..<SpoolReader.smallFilesATurn {
            guard !isCommitDue, round == 0 || now < end && isDropNext else { return true }
            if drops.reading == nil, !takeUp() { return round > 0 }
            guard let drop = drops.reading else { continue }
            guard !drop.isParked else { return round > 0 }
            commits.isParked = false
            let turn = beginTurn(of: drop.share)
            let hasMore = read(drop)
            endTurn(turn)
            if commits.isParked { park(drop) } else if hasMore { return setAside(drop) }
        }
        return true
    }

    /// Takes up the next drop file of whoever has had the least time; of the same app by turns one that is read in part,
    /// and one that was not begun. False: there is none.
    private func takeUp() -> Bool {
        drops.isAsideNext.toggle()
        let (aside, fresh) = (drops.asides.least(shares) ?? .max, drops.waiting.least(shares) ?? .max)
        if aside < fresh || aside == fresh && drops.isAsideNext, takeUpAside() { return true }
        let asides = drops.asides
        if asides.count < min(SpoolReader.mostAside, held.mostFiles),
            let (line, next) = drops.waiting.popFirst(
                shares,
                where: { line, drop in
                    SpoolReader.mayBegin(another: line, beside: asides) ? isNamed(drop.directory, drop.owner) : false
                })
        {
            let turn = beginTurn(of: line)
            begin(next)
            endTurn(turn)
            listCrowded(line)
            return true
        }
        return takeUpAside()
    }

    private func takeUpAside() -> Bool {
        drops.reading = drops.asides.popFirst(shares)?.element
        return drops.reading != nil
    }

    /// Whether another file of an app may be begun: one with many large ones leaves room for those of others.
    private static func mayBegin(another app: String, beside asides: FairQueue<DropReading>) -> Bool {
        let count = asides.count(of: app)
        return count == 0 || count < (asides.count < SpoolReader.mostAside / 2 ? 4 : 1)
    }

    /// Lets others go first, if there are any: a file may be of any length.
    private func setAside(_ drop: DropReading) -> Bool {
        guard drops.reading === drop, !drops.waiting.isEmpty || !drops.asides.isEmpty else { return true }
        drops.reading = nil
        drops.asides.append(drop, to: drop.share)
        // Its place belongs to the commit with what was taken of it.
        if let place = checkpoint(of: drop) { pass.keep(place, of: drop.id) }
        return true
    }

    private func begin(_ drop: PendingDrop) {
        let (directory, name) = (drop.directory, drop.name)
        guard case .drop(let format) = name.kind else { return }
        guard let raw = descriptor(of: directory) else {
            // Listing finds it, if its directory is there.
            directory.settling[name] = nil
            return
        }
        var status: FileStatus?
        do {
            let looked = try FileSystem.openPath(raw, name)
            let seen = try FileSystem.status(looked)
            status = seen
            guard admit(seen, directory, name) else {
                // What had the name before is gone, unless it waits for its second name to go.
                if directory.settling[name]?.linkedSince == nil { directory.settling[name] = nil }
                return
            }
            let id = try FileID(looked, seen)
            guard !drops.inHand.contains(id) else { return }
            let share = share(of: directory, seen.owner)
            let mayBegin = directory.isIncoming ? SpoolReader.mayBegin(another: share, beside: drops.asides) : true
            guard mayBegin, isNamed(directory, seen.owner) else {
                // Only now is it known whose it is.
                var drop = drop
                drop.owner = seen.owner
                return drops.waiting.append(drop, to: share)
            }
            streams.remembered.see(id)
            let isClaimed = name.claimed != nil
            if let done = drops.doneBefore[id] ?? drops.stuck[id] {
                return removeAgain(id, done, directory, name, raw, of: app(of: directory, seen.owner), share)
            }
            // An append file that somebody gave such a name: what was read of it is not read again.
            if streams.files[id] != nil || isAppendFile(streams.remembered.kept[id]) { return notice(directory, name) }
            if isKept(id, seen) {
                directory.settling[name] = nil
                streams.remembered.found(id, in: &pass)
                return
            }
            let isReady = drop.isComplete || isClaimed
            // Not by `||`, whose right side is a closure that Swift 6.2 lets nothing of the actor's into.
            guard isReady ? true : isSettled(directory, name, seen) else {
                return recheck(name, in: directory, after: options.settleTime)
            }
            let descriptor = try FileSystem.read(looked)
            guard isReady || !hasWriter(descriptor.raw) else {
                // Also of one that was old enough not to be watched, or nobody would come back to it.
                var stamp = directory.settling[name] ?? .unknown
                stamp.size = -1
                directory.settling[name] = stamp
                return recheck(name, in: directory, after: options.settleTime)
            }
            var known: ObjectSplitter.Place?
            if format != .json, !isClaimed {
                switch try match(
                    format, descriptor.raw, in: directory, of: Stream.asked(directory.holder(seen.owner), name))
                {
                case .new: break
                case .later: return recheck(name, in: directory, after: options.settleTime)
                case .goOn(let mark, _, _):
                    known = .lines(mark.offset)
                    log.info(
                        "archive of a file that was read",
                        ["path": directory.path(of: name).text, "goes_on_at": mark.offset])
                }
            }
            if !directory.settling.isEmpty { directory.settling[name] = nil }
            let isStaying = options.afterRead == .keep || known != nil
            let claim = try isClaimed || isStaying ? name : claim(name, seen, in: directory, raw)
            guard let claim else { return }
            drops.inHand.insert(id)
            reached(directory.path(of: name))
            var source = SpoolSource(
                app: app(of: directory, seen.owner), path: directory.path(of: name.claimed ?? name).text,
                producer: nil, mayBeCritical: !directory.isIncoming)
            if !isStaying { source.file = id.bytes }
            let file = ClaimedFile(id: id, directory: directory, claim: claim, app: source.app, share: share)
            drops.reading = DropReading(
                file, source: source, share: share, format: format, isKept: isStaying, status: seen,
                descriptor: descriptor, longest: options.maxEventSize,
                from: streams.remembered.remove(id).flatMap(ObjectSplitter.Place.init) ?? known)
        } catch {
            cannotBegin(directory, name, error, status)
        }
    }

    func cannotBegin(_ directory: SpoolDirectory, _ name: FileName, _ error: SystemError, _ status: FileStatus?) {
        // Nobody comes back to it by himself: what has the name when it is listed again is looked at as new.
        if error.number != EWOULDBLOCK { directory.settling[name] = nil }
        switch error.number {
        case EWOULDBLOCK:
            counters.leaseWaits += 1
            recheck(name, in: directory, after: .seconds(1))
        case _ where [EACCES, EPERM, EROFS].contains(error.number) && error.call == "renameat2":
            complain(directory.path(of: name), status?.owner, SpoolReader.notRemoved(error))
            tryAgain(at: name, in: directory, error)
        // It was taken away, as one call says.
        case ENOENT: notOpened(directory, name, error)
        case _ where status == nil: notOpened(directory, name, error)
        default: notRead(directory, name, error, status)
        }
    }

    /// Whether a file written in place has not changed for long enough. Remembers what it looks like if not.
    private func isSettled(_ directory: SpoolDirectory, _ name: FileName, _ status: FileStatus) -> Bool {
        let stamp = DropStamp(size: status.size, modified: status.modified, changed: status.changed)
        if directory.settling[name] == stamp { return true }
        // Old ones need not be watched first, unless the clock is not to be trusted.
        let age = time.wallTime - max(status.modified, status.changed)
        if directory.settling[name] == nil, age > options.settleTime { return true }
        directory.settling[name] = stamp
        return false
    }

    /// Whether somebody has the file open for writing, as far as the agent may know.
    func hasWriter(_ descriptor: Int32) -> Bool {
        if clinux_take_lease(descriptor) == 0 {
            // Fails only if there is no lease to give back.
            _ = clinux_return_lease(descriptor)
            return false
        }
        // Without the capability (EACCES) or leases (EINVAL) nobody can tell. In a shortage it is reported later.
        return !SpoolReader.isWithoutLeases(errno)
    }

    /// Whether an error says that nobody can tell whether a file has writers.
    static func isWithoutLeases(_ error: Int32) -> Bool {
        error == EACCES || error == EPERM || error == EINVAL || error == EOPNOTSUPP || error == ENOLCK
    }
}
