internal import CLinux
internal import EventLoops
internal import Glibc
internal import Logs
internal import Model

extension SpoolReader {
    /// Drop files that wait at most; beyond that their directory is listed once these are read.
    private static let mostWaiting = 16_384
    /// Drop files that wait for their second try at most; beyond that they get none.
    private static let mostCut = 256
    /// How many small files are read before other work gets its turn.
    private static let batch = 32
    /// Names drawn for a claim before giving up.
    private static let claimAttempts = 8

    /// Puts a drop file on the list of those to read.
    func offer(_ directory: SpoolDirectory, _ name: FileName, isComplete: Bool) {
        guard drops.count < SpoolReader.mostWaiting else { return scan(directory) }
        drops.append(PendingDrop(directory: directory, name: name, isComplete: isComplete))
    }

    /// The time has come to look again at a drop file that was still being written.
    func settle(_ directory: SpoolDirectory, _ name: FileName) {
        guard directory.settling[name] != nil, !directory.isGone else { return }
        if name.kind == .append {
            notice(directory, name)
        } else {
            offer(directory, name, isComplete: false)
        }
        wake()
    }

    // MARK: Beginning

    /// Reads some drop files, or a block of a large one. False: there is none.
    func readDropFiles() -> Bool {
        for round in 0..<SpoolReader.batch {
            guard !isCommitDue else { return true }
            if reading == nil {
                guard let next = drops.popFirst() else { return round > 0 }
                begin(next)
            }
            if let reading, read(reading) { return true }
        }
        return true
    }

    private func begin(_ drop: PendingDrop) {
        let (directory, name) = (drop.directory, drop.name)
        guard case .drop(let format) = name.kind, let raw = descriptor(of: directory) else { return }
        var status: FileStatus?
        do {
            let looked = try FileSystem.look(raw, name)
            let seen = try FileSystem.status(looked)
            status = seen
            guard admit(seen, directory, name) else { return }
            let id = FileID(looked, seen)
            guard !inHand.contains(id) else { return }
            if !listing.isFirstDone, kept[id] != nil { keptSeen.insert(id) }
            let isClaimed = name.claimed != nil
            if let done = doneBefore[id] { return removeAgain(id, done, directory, name, raw) }
            if isKept(id, seen) {
                directory.settling[name] = nil
                return
            }
            guard drop.isComplete || isClaimed || isSettled(directory, name, seen) else {
                return remember(.settle(directory, name), after: options.settleTime)
            }
            let descriptor = try FileSystem.read(looked)
            guard drop.isComplete || isClaimed || !hasWriter(descriptor.raw) else {
                directory.settling[name]?.size = -1
                return remember(.settle(directory, name), after: options.settleTime)
            }
            var known: ObjectSplitter.Place?
            if format != .json, !isClaimed {
                switch try match(format, descriptor.raw, in: directory, named: name) {
                case .unknown: break
                case .later:
                    directory.settling[name] = directory.settling[name] ?? .unknown
                    return remember(.settle(directory, name), after: options.settleTime)
                case .known(let mark):
                    known = ObjectSplitter.Place(offset: mark.offset, isInArray: false, hasContent: true)
                    log.info(
                        "archive of a file that was read",
                        ["path": directory.path(of: name).text, "goes_on_at": mark.offset])
                }
            }
            directory.settling[name] = nil
            let isStaying = options.afterRead == .keep || known != nil
            let claim = try isClaimed || isStaying ? name : claim(name, seen, directory, raw)
            guard let claim else { return }
            inHand.insert(id)
            complaints[directory.path(of: name)] = nil
            let source = SpoolSource(
                app: app(of: directory, seen.owner), path: directory.path(of: name.claimed ?? name).text,
                producer: nil, mayBeCritical: !directory.isIncoming)
            let file = ClaimedFile(id: id, directory: directory, claim: claim, app: source.app)
            reading = DropReading(
                file, source: source, format: format, isKept: isStaying, status: seen, descriptor: descriptor,
                longest: options.maxEventSize,
                from: kept.removeValue(forKey: id).flatMap(ObjectSplitter.Place.init) ?? known)
        } catch {
            cannotBegin(directory, name, error, status)
        }
    }

    private func cannotBegin(
        _ directory: SpoolDirectory, _ name: FileName, _ error: SystemError, _ status: FileStatus?
    ) {
        switch error.number {
        case EWOULDBLOCK:
            counters.leaseWaits += 1
            directory.settling[name] = directory.settling[name] ?? .unknown
            remember(.settle(directory, name), after: .seconds(1))
        case _ where error.call == "renameat2":
            complain(
                directory.path(of: name), status?.owner,
                "the agent may not rename and remove it: let its group write the directory")
        case _ where status == nil: notOpened(directory, name, error)
        default: notRead(directory, name, error, status)
        }
    }

    /// Whether a file written in place has not changed for long enough. Remembers what it looks like if not.
    private func isSettled(_ directory: SpoolDirectory, _ name: FileName, _ status: FileStatus) -> Bool {
        let stamp = DropStamp(size: status.size, modified: status.modified, changed: status.changed)
        if directory.settling[name] == stamp { return true }
        // Old ones need not be watched first, unless the clock is not to be trusted.
        let age = time.wallTime.nanoseconds - max(status.modified, status.changed)
        if directory.settling[name] == nil, age > options.settleTime.nanosecondsClamped { return true }
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
        // Without the capability (EACCES) or on a file system without leases (EINVAL) nobody can tell.
        return errno == EAGAIN
    }

    /// A number for the name of a claim: drawn once for a reader, then counted.
    func nextClaim() -> UInt64 {
        lastClaim &+= 1
        return lastClaim
    }

    /// Renames a file to a name of ours and makes sure that it is the one that was opened. Nil: it is not.
    private func claim(
        _ name: FileName, _ status: FileStatus, _ directory: SpoolDirectory, _ raw: Int32
    ) throws(SystemError) -> FileName? {
        for _ in 0..<SpoolReader.claimAttempts {
            let claim = name.claim(nextClaim())
            do {
                try FileSystem.rename(raw, name, to: claim)
            } catch {
                if error.number == EEXIST { continue }
                throw error
            }
            // The file is open, so its inode number is nobody else's.
            let claimed = try FileSystem.status(raw, claim)
            if claimed.inode == status.inode, claimed.device == status.device { return claim }
            // An app renamed another file over the name in between: that one is ours now, and is read next.
            offer(directory, claim, isComplete: true)
            return nil
        }
        throw SystemError("renameat2", number: EEXIST)
    }

    // MARK: Reading

    /// Reads a block. True: there is more to read.
    private func read(_ drop: DropReading) -> Bool {
        do {
            switch drop.format {
            case .json: return try readObjects(drop)
            case .gzipLines, .zstdLines: return try readLines(drop)
            }
        } catch {
            note(error, "cannot read drop file", drop.file.directory.path(of: drop.file.claim))
            // Left under its claim: the next listing finds it.
            giveUp(drop)
            return false
        }
    }

    private func readObjects(_ drop: DropReading) throws(SystemError) -> Bool {
        guard let descriptor = drop.descriptor?.raw else { return false }
        if drop.isEventWaiting, !handEvent(of: drop) { return true }
        let buffer = takeBuffer()
        let count = try FileSystem.read(descriptor, into: buffer, at: drop.position)
        let block = UnsafeRawBufferPointer(rebasing: buffer[..<count])
        var used = 0
        while true {
            let find = drop.splitter.next(block, used: &used)
            if find == .more { break }
            guard take(find, of: drop), !isCommitDue else {
                drop.position += Int64(used)
                return true
            }
        }
        drop.position += Int64(count)
        if count == buffer.count { return true }
        // The end of the file.
        guard drop.splitter.isComplete else {
            endedEarly(drop)
            return false
        }
        guard take(drop.splitter.finish(), of: drop) else { return true }
        finish(drop)
        return false
    }

    /// Takes what the splitter has found. False: the sink wants a commit first.
    private func take(_ find: ObjectSplitter.Find, of drop: DropReading) -> Bool {
        switch find {
        case .more: return true
        case .event:
            drop.isEventWaiting = true
            return handEvent(of: drop)
        case .tooLong(let length):
            counters.linesTooLong += 1
            quarantine(
                .tooLong, "the event has \(length) bytes, \(options.maxEventSize) are allowed (spool.max_event_size)",
                from: drop.source, at: drop.splitter.eventOffset, length: length, content: drop.splitter.event)
        case .brokenString:
            quarantine(
                .notJSON, "a string has a raw line break", from: drop.source, at: drop.splitter.eventOffset,
                length: drop.splitter.position - drop.splitter.eventOffset,
                content: Array(drop.splitter.event.dropLast()))
        }
        drop.taken = drop.splitter.place
        return true
    }

    private func handEvent(of drop: DropReading) -> Bool {
        let taken = drop.splitter.event.withUnsafeBytes {
            hand($0, from: drop.source, at: drop.splitter.eventOffset)
        }
        guard taken == drop.splitter.event.count else { return false }
        drop.isEventWaiting = false
        drop.taken = drop.splitter.place
        return true
    }

    /// What the next commit says about a file that is read in part; nil if it says nothing.
    func checkpoint(of drop: DropReading) -> Checkpoint? {
        guard drop.taken.offset > 0, drop.taken != drop.checkpointed else { return nil }
        drop.checkpointed = drop.taken
        return Checkpoint(
            key: drop.id.bytes, path: drop.source.path, offset: drop.taken.offset, state: drop.taken.encoded)
    }

    // MARK: Ending

    /// The text ends before it should: it is tried once more, then what is left is quarantined.
    func endedEarly(_ drop: DropReading) {
        reading = nil
        let file = drop.file
        if !drop.isSecondTry, cutDrops.count < SpoolReader.mostCut {
            if let place = checkpoint(of: drop) { pass.places[drop.id] = place }
            drop.descriptor = nil
            cutDrops[drop.id] = drop
            return remember(.retryCut(drop.id), after: options.secondTry)
        }
        do {
            guard let descriptor = drop.descriptor?.raw else { return }
            let size = try FileSystem.status(of: descriptor).size
            let rest = max(0, size - drop.taken.offset)
            let length = rest <= Int64(options.maxEventSize) ? Int(rest) : ObjectSplitter.excerpt
            let buffer = takeBuffer()
            let room = UnsafeMutableRawBufferPointer(rebasing: buffer[..<length])
            let count = try FileSystem.read(descriptor, into: room, at: drop.taken.offset)
            quarantine(
                .cutShort, size == 0 ? "the file is empty" : "the text ends too early", from: drop.source,
                at: drop.taken.offset, length: rest, content: Array(room[..<count]))
        } catch {
            note(error, "cannot read drop file", file.directory.path(of: file.claim))
            return giveUp(drop)
        }
        finish(drop)
    }

    /// The second try of a file that ended too early.
    func retryCut(_ id: FileID) {
        // One file at a time: the one that is being read goes first.
        guard reading == nil else { return remember(.retryCut(id), after: .milliseconds(10)) }
        guard let drop = cutDrops.removeValue(forKey: id) else { return }
        let file = drop.file
        guard let raw = descriptor(of: file.directory) else { return giveUp(drop) }
        do {
            let looked = try FileSystem.look(raw, file.claim)
            guard FileID(looked, try FileSystem.status(looked)) == id else { return giveUp(drop) }
            let descriptor = try FileSystem.read(looked)
            let again = DropReading(
                file, source: drop.source, format: drop.format, isKept: drop.isKept, status: drop.status,
                descriptor: descriptor, longest: options.maxEventSize, from: drop.taken)
            again.checkpointed = drop.checkpointed
            again.isSecondTry = true
            reading = again
            wake()
        } catch {
            giveUp(drop)
            cannotBegin(file.directory, file.claim, error, drop.status)
        }
    }

    /// Lets go of a file that cannot be read now. It goes on where the last commit left it when it is found again.
    func giveUp(_ drop: DropReading) {
        reading = nil
        inHand.remove(drop.id)
        if let place = drop.checkpointed {
            kept[drop.id] = Checkpoint(
                key: drop.id.bytes, path: drop.source.path, offset: place.offset, state: place.encoded)
        }
    }

    func finish(_ drop: DropReading) {
        reading = nil
        counters.dropFilesRead += 1
        uncount(drop)
        if drop.isKept {
            inHand.remove(drop.id)
            pass.places[drop.id] = keptCheckpoint(of: drop)
            return
        }
        if drop.checkpointed != nil || pass.places[drop.id] != nil {
            pass.places[drop.id] = nil
            pass.forgotten.append(drop.id)
        }
        pass.done.append(drop.file)
    }

    // MARK: Files that stay

    private func isKept(_ id: FileID, _ status: FileStatus) -> Bool {
        guard let checkpoint = kept[id], let done = FileTrace(checkpoint.state)?.doneVersion else { return false }
        return done == SpoolReader.version(of: status)
    }

    private func keptCheckpoint(of drop: DropReading) -> Checkpoint {
        var trace = FileTrace()
        trace.doneVersion = SpoolReader.version(of: drop.status)
        let checkpoint = Checkpoint(
            key: drop.id.bytes, path: drop.source.path, offset: drop.status.size, state: trace.encoded)
        kept[drop.id] = checkpoint
        return checkpoint
    }

    /// Tells a file's content from what it was before: by size and time of change.
    private static func version(of status: FileStatus) -> UInt64 {
        var numbers = (status.size, status.modified)
        return withUnsafeBytes(of: &numbers) { ByteHash.of($0) }
    }
}
