internal import EventLoops
internal import Frames
internal import Glibc
internal import Logs
internal import Model

/// The I/O of append files: they are noticed under their names, asked for writers, claimed and removed.
/// `AppendFiles` decides what becomes of a file.
extension SpoolReader {
    /// Which content each file holds.
    var streams: Streams {
        get { appendFiles.streams }
        _modify { yield &appendFiles.streams }
    }

    /// Looks at a name that an append file may have: a new file, a known one under a new name, or nothing
    /// new.
    ///
    /// inotify reports late: when a rename is handled, the old name may belong to the next file already. So
    /// the file under the new name is examined.
    ///
    /// - Parameters:
    ///   - file: the file that was known under the old name, if the name came by a rename.
    ///   - earlier: the old name. If rotation gives such names, the file may be a copy whose number was
    ///     shifted.
    func notice(
        _ directory: SpoolDirectory, _ name: FileName, renamed file: AppendFile? = nil,
        was earlier: Streams.EarlierName = .unknown
    ) {
        guard let raw = descriptor(of: directory) else { return }
        do {
            let looked = try openName(name, in: directory, raw)
            let status = try FileSystem.status(looked)
            if let file, try FileID(looked, status) == file.id { return moved(file, to: directory, name) }
            if admit(status, directory, name) {
                try notice(directory, name, looked, status, was: earlier)
            }
        } catch {
            // The file was renamed once more, which is reported next, or it cannot be examined now.
            if let file {
                moved(file, to: directory, name)
            } else {
                notOpened(directory, name, error)
            }
        }
    }

    private func notice(
        _ directory: SpoolDirectory, _ name: FileName, _ looked: borrowing Descriptor, _ status: FileStatus,
        was earlier: Streams.EarlierName
    ) throws(SystemError) {
        let id = try FileID(looked, status)
        guard !drops.isInHand(id) else {
            // The file is being read as a drop file, under its earlier name. Look again when that is done.
            return recheck(name, in: directory, after: options.settleTime)
        }
        let isKnownAgain = knowAgain(id, looked, status)
        let before = directory.files[name].flatMap { $0.id != id ? $0 : nil }
        if let before {
            displaced(before)
        }
        if let file = streams.files[id] {
            // One of several links: the file keeps the name that it is known by while that leads to it.
            let isOtherLink =
                mayHaveOtherNames(status) && file.hasName && file.name != name && isThere(file)
            let isMoved = file.directory !== directory || file.name != name || !file.hasName
            if isMoved, !isOtherLink {
                moved(file, to: directory, name)
            }
            update(file, status)
            return
        }
        // Rotated names of unknown kinds are followed only for files that are known.
        let isRemembered = streams.remembered.kept[id] != nil
        let isNew = if case .unknown = earlier { !isRemembered } else { false }
        guard options.kind(of: name, in: directory) == .append || !isNew else { return }
        // New empty files are known only while descriptors are left.
        let isKnown = !isNew || options.isRotated(name)
        guard status.size > 0 || isKnown || !openFiles.isFull else { return }
        let holder = directory.holder(status.owner)
        guard isRemembered ? true : streams.hasRoom(for: holder) else {
            return waitForRoom(directory, holder)
        }
        let file = AppendFile(id, in: directory, name: name, owner: status.owner, size: status.size, now: now)
        let isOther = options.kind(of: name, in: directory) != .append
        let isRotated = options.isRotated(name)
        let unreadable = streams.meet(file, isRotated: isOther || isRotated, was: earlier)
        if let unreadable {
            streams.goOn(file, at: (try? mark(at: unreadable, of: file)) ?? .start)
        }
        file.trace.inode = status.inode
        directory.files[name] = file
        // Write the checkpoint under the new identity.
        if isKnownAgain {
            handover.pass.add(file)
        }
        if isNew {
            passOver(file, looked, status)
        }
        do {
            try open(file, looked)
            reached(file.path)
            try passOverHistory(of: file)
        } catch {
            // Another process holds a file lease: the file is opened later, without a complaint.
            if error.number == EWOULDBLOCK {
                cannotRead(file, error)
            } else {
                notRead(file.directory, file.name, error, status)
                guard streams.files[id] === file else { return }
            }
        }
        update(file, status)
        if file.isSuspect {
            // An empty one has nothing to read, but is judged too. Otherwise it would stay, and losses of its
            // stream would never be counted, because it might be the copy that has the bytes.
            makeReady(file)
        } else if file.unread == 0 {
            considerLater(file)
        }
        if let before {
            warnOfRepeat(of: before, by: file, looked)
        }
    }

    /// Whether other names may lead to a file that is read in place: hard links, or links that are followed.
    private func mayHaveOtherNames(_ status: FileStatus) -> Bool {
        guard let place = options.place else { return false }
        return status.links > 1 || !place.follow.isEmpty
    }

    /// Notes how much of a file is passed over that was there when its pattern was seen for the first time.
    private func passOver(_ file: AppendFile, _ looked: borrowing Descriptor, _ status: FileStatus) {
        guard let place = options.place, let sight = tree.listing.sight, status.size > 0 else { return }
        let patterns = place.patterns(of: file.directory.path, file.name)
        let born = FileSystem.birth(looked)
        guard sight.passesOver(patterns, born: born, modified: status.modified) else { return }
        file.historyEnd = status.size
    }

    /// Passes over what a file held when its pattern was seen for the first time, up to the beginning of
    /// its last line if that is not whole.
    func passOverHistory(of file: AppendFile) throws(SystemError) {
        guard file.historyEnd > 0, let descriptor = file.descriptor?.raw else { return }
        let end = try lineEnd(before: file.historyEnd, descriptor, try decoder(of: file, descriptor))
        file.historyEnd = 0
        guard file.taken.offset == 0, end > 0 else { return }
        let head = try FileSystem.bytes(
            of: descriptor, at: 0, count: Int(min(end, Int64(Fingerprint.longest))))
        let fingerprint = Fingerprint(length: head.count, hash: head.withUnsafeBytes { ByteHash.of($0) })
        var mark = try mark(at: end, descriptor)
        mark.sum = try sumOfHistory(upTo: end, descriptor)
        streams.passOver(file, upTo: mark, fingerprint, in: &handover.pass)
        tree.listing.sight?.passedOver(end)
    }

    /// The checksum of a history that fits into one block, by which the position is found again if the file
    /// is cut later. Otherwise the history would be read then. A longer one has none: computing it would read
    /// all of what is to be passed over.
    private func sumOfHistory(upTo end: Int64, _ descriptor: Int32) throws(SystemError) -> UInt32 {
        guard end <= SpoolReader.sliceBytes else { return 0 }
        let room = UnsafeMutableRawBufferPointer(rebasing: takeBuffer()[..<Int(end)])
        let count = try FileSystem.read(descriptor, into: room, at: 0)
        return count == room.count ? crc32c(UnsafeRawBufferPointer(room), from: Mark.start.sum) : 0
    }

    /// The end of the last whole line before an offset; the offset itself if the line exceeds the longest
    /// event.
    private func lineEnd(
        before offset: Int64, _ descriptor: Int32, _ decoder: FileDecoder?
    ) throws(SystemError) -> Int64 {
        var end = decoder?.start(ofUnitAt: offset) ?? offset
        let offset = end
        let farthest = decoder?.length(beyond: options.maxEventSize) ?? options.maxEventSize
        while end > max(0, offset - Int64(farthest)) {
            let begin = max(0, end - 65_536)
            let bytes = try FileSystem.bytes(of: descriptor, at: begin, count: Int(end - begin))
            if let decoder {
                let last = bytes.withUnsafeBytes { decoder.endOfLastLine(in: $0) }
                if let last { return begin + Int64(last) }
            } else if let last = bytes.lastIndex(of: 0x0A) {
                return begin + Int64(last) + 1
            }
            end = begin
        }
        return end == 0 ? 0 : offset
    }

    /// There is no room for a file: listing finds it again once others are gone.
    private func waitForRoom(_ directory: SpoolDirectory, _ holder: Holder) {
        let holder = holder.pooled
        tree.listing.crowd(holder, in: directory)
        complain(
            SpoolReader.crowd(of: holder), holder.owner,
            "too many files of lines: those beyond the limit are read once others were read and removed")
    }

    /// Files have gone: has directories listed again whose files waited for room.
    func useRoom() {
        let directories = tree.listing.takeCrowded { streams.hasRoom(for: $0, dividedBy: 2) }
        for directory in directories { scan(directory) }
    }

    /// A directory was listed: resolves the complaints of holders whose files all have room by now.
    func forgetCrowds() {
        for holder in tree.listing.takeUncrowded() { complaints.resolve(SpoolReader.crowd(of: holder)) }
    }

    /// Under which path it is reported that a holder has too many files.
    private static func crowd(of holder: Holder) -> FileName {
        FileName("\(FileName(holder.top).text)/*.jsonl\(holder.owner.map { ", uid \($0)" } ?? "")")
    }

    /// A file that took another one's name and begins with its lines repeats them: an editor, `sed -i` or
    /// rsync has written the file again.
    private func warnOfRepeat(of old: AppendFile, by file: AppendFile, _ looked: borrowing Descriptor) {
        let known = old.trace.fingerprint
        guard old.streams == file.streams, !file.isSuspect, known.length > 0, file.size >= old.taken.offset,
            complaints.mayReportRepeat(now),
            let readable = try? FileSystem.read(looked),
            let head = try? FileSystem.bytes(of: readable.raw, at: 0, count: known.length), known.begins(head)
        else { return }
        complaints.repeatReported(now)
        log.warning(
            """
            a file was replaced by one that begins with the same lines: all of it is read; \
            reported once an hour
            """,
            ["path": file.path.text, "read_before": old.taken.offset])
    }

    /// Finds the checkpoint of a file whose identity has another form than at the last stop, because its file
    /// system has gained or lost handles. The inode number and the content must match. True if a checkpoint
    /// was found; it has the new identity then.
    private func knowAgain(_ id: FileID, _ looked: borrowing Descriptor, _ status: FileStatus) -> Bool {
        // Numbers are looked for during the first listing only.
        guard streams.files[id] == nil, streams.remembered.kept[id] == nil,
            streams.remembered.inodes.contains(status.inode)
        else { return false }
        for (other, checkpoint) in streams.remembered.kept where !other.isOfSameForm(as: id) {
            guard let trace = FileTrace(checkpoint.state), trace.inode == status.inode,
                trace.doneVersion == nil,
                let last = trace.marks.last, last.offset == checkpoint.offset, last.offset <= status.size,
                let readable = try? FileSystem.read(looked),
                (try? mark(at: last.offset, readable.raw))?.ends(like: last) == true
            else { continue }
            streams.remembered.remove(other)
            handover.pass.forget(other)
            var renamed = checkpoint
            renamed.key = id.bytes
            streams.remembered.keep(renamed)
            return true
        }
        return false
    }

    /// A file has another name, or another file has its name: it is being rotated.
    func moved(_ file: AppendFile, to directory: SpoolDirectory, _ name: FileName) {
        if let other = directory.files[name], other !== file {
            displaced(other)
        }
        let isOwn = options.kind(of: name.claimed ?? name, in: directory) == .append
        let isNew = !file.hasName || file.name != name || file.directory !== directory
        let isOther = options.kind(of: name, in: directory) != .append
        let isRotated = options.isRotated(name)
        endWatch(of: file)
        streams.move(file, to: directory, name, isRotated: isNew && (isOther || isRotated), isOwn: isOwn)
        makeReady(file)
    }

    /// A file no longer has its name: it was removed, renamed to an unknown name, or replaced by another
    /// file.
    func displaced(_ file: AppendFile) {
        guard appendFiles.displace(file) else { return }
        watchNameless(file)
        makeReady(file)
        considerLater(file)
    }

    /// Applies the status of a file, which may have changed.
    func update(_ file: AppendFile, _ status: FileStatus) {
        if appendFiles.saw(file, length: status.size, modified: status.modified) {
            makeReady(file)
        }
    }

    /// Queues a file to be read, unless it is queued already.
    func makeReady(_ file: AppendFile) {
        guard appendFiles.makeReady(file, at: now, time.wallTime) else { return }
        lineUp(file)
        if isWaiting {
            hold(file)
        }
        wake()
    }

    /// Queues a file to be read at its app's turn.
    func lineUp(_ file: AppendFile) { turns.lineUp(file, of: share(of: file)) }

    // MARK: How a file goes

    /// Plans the next look at a file that was read to its end: it may be sealed, removed or forgotten later.
    func considerLater(_ file: AppendFile) {
        carryOut(appendFiles.consider(file, situation(of: file), at: now), file)
    }

    /// Looks at a file whose check is due.
    func check(_ file: AppendFile) {
        carryOut(appendFiles.due(file, situation(of: file), at: now), file)
    }

    /// The same, whenever the check was planned for.
    func checkAnyway(_ file: AppendFile) {
        carryOut(appendFiles.dueNow(file, situation(of: file), at: now), file)
    }

    private func situation(of file: AppendFile) -> AppendFiles.Situation {
        AppendFiles.Situation(
            mustStay: options.afterRead != .keep && !file.isUnsealed
                && sink.mustStay(file.id.bytes),
            isReported: isReported(file))
    }

    /// Asks the kernel for writers with a file lease, and carries out the order that follows. The lease stays
    /// held if the file is being removed, so that a writer that comes is noticed.
    private func askForWriters(of file: AppendFile, _ known: FileFacts) {
        if file.descriptor == nil, file.hasName {
            // Opening can fail because the file is gone; reading finds that out.
            guard (try? open(file)) != nil else { return makeReady(file) }
        }
        guard let descriptor = file.descriptor?.raw else { return leave(file) }
        var facts = known
        facts.writers = writers(descriptor)
        if facts.writers == .unknown {
            relyOnReports(of: file)
            facts.isReported = isReported(file)
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
        let isGoing = carryOut(appendFiles.answered(file, facts, at: now), file)
        if isHeld, !isGoing {
            FileLease.giveBack(descriptor)
        }
    }

    /// Asks for a file lease, which the kernel grants only while no process has the file open for writing.
    private func writers(_ descriptor: Int32) -> FileFacts.Writers {
        // Files that are read in place are never leased, because a lease blocks writers.
        options.place == nil ? FileLease.ask(descriptor) : .unknown
    }

    /// Carries out an order. True if the file is being removed or forgotten, so that its lease must not be
    /// given back.
    @discardableResult
    private func carryOut(_ order: AppendFiles.Order, _ file: AppendFile) -> Bool {
        switch order {
        case .nothing: break
        case .check(let due): schedule(at: due, .check(file.id))
        case .askForWriters(let facts): askForWriters(of: file, facts)
        case .read: makeReady(file)
        case .readUnclosed(let bytes):
            log.warning(
                "a last line without a line feed counts as whole: no writer has closed its rotated file",
                ["path": options.shown(file.path), "bytes": bytes])
            makeReady(file)
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
            guard let raw = self.descriptor(of: file.directory) else {
                carryOut(appendFiles.postpone(file, situation(of: file), at: now), file)
                return false
            }
            let status = try FileStatus(of: descriptor)
            if status.size != file.length || file.hasUnread {
                makeReady(file)
            } else if let claim = try claim(file, status, raw) {
                reached(file.path)
                appendFiles.beginLeaving(file, as: claim, at: now)
                life.beginTask()
                let id = file.id
                Task(executorPreference: loop) { await self.leaveOnceDurable(id) }
                return true
            } else {
                displaced(file)
            }
        } catch {
            switch error.number {
            case ENOENT:
                makeReady(file)
                return false
            case EEXIST: complain(file.path, file.owner, SpoolReader.nameTaken)
            case EACCES, EPERM: complain(file.path, file.owner, SpoolReader.notRemoved(error))
            default: note(error, "cannot rename file", file.path)
            }
            tryAgain(.check, file.path, error, .checkAnyway(file.id))
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
        return try claim(file.name, status, in: file.directory, raw)
    }

    /// Begins the time of grace once the commit of the whole file survives a power cut.
    private func leaveOnceDurable(_ id: FileID) async {
        defer {
            life.endTask()
            wake()
        }
        do {
            try await sink.persist()
            guard let file = streams.files[id], file.stage == .leaving else { return }
            schedule(after: appendFiles.beginGrace(file, at: now), .endGrace(file.id))
        } catch {
            // The agent stops, or cannot persist: under the name that it has the file is found by the next
            // start.
            guard let file = streams.files[id], file.stage == .leaving else { return }
            log.info("file stays", ["path": file.path.text, "reason": "\(error)"])
            if let descriptor = file.descriptor?.raw {
                stay(file, descriptor)
            }
        }
    }

    /// Removes a claimed file once its time of grace is over, or keeps it if a writer has opened or changed
    /// it.
    func grace(_ file: AppendFile) {
        guard file.stage == .leaving, let descriptor = file.descriptor?.raw else { return }
        let status = try? FileStatus(of: descriptor)
        let isUntouched =
            FileLease.isHeld(descriptor) && status?.size == file.length && status?.links == 1
        switch appendFiles.leavingStep(file, isUntouched: isUntouched, at: now) {
        case .stay: return stay(file, descriptor)
        case .lookAgain(let wait): return schedule(after: wait, .endGrace(file.id))
        case .remove: break
        }
        guard let raw = self.descriptor(of: file.directory) else { return stay(file, descriptor) }
        do {
            // Only the agent uses the name of a claim, so it still belongs to this file.
            try putAway(file.name, raw, of: app(of: file.directory, file.owner))
            log.debug("file removed", ["path": file.path.text, "bytes": file.taken.offset])
            leave(file)
        } catch {
            note(error, "cannot remove file", file.path)
            stay(file, descriptor)
        }
    }

    /// Keeps a claimed file that is needed after all: it gets its name back, if that is free, and is read on.
    private func stay(_ file: AppendFile, _ descriptor: Int32) {
        var original = file.name.claimed
        if let name = original {
            let raw = self.descriptor(of: file.directory)
            let isFree = raw.map { (try? FileSystem.rename($0, file.name, to: name)) != nil } ?? false
            original = isFree ? name : nil
        }
        appendFiles.stay(file, as: original, at: now)
        FileLease.giveBack(descriptor)
        makeReady(file)
    }

    /// Lets go of a file that is gone, and remembers it for a while.
    func leave(_ file: AppendFile) {
        closeDescriptor(of: file)
        let hasWaiting = !drops.areAllRead
        appendFiles.letGo(file, hasWaiting: hasWaiting, in: &handover.pass)
        useRoom()
        tellCutOffs()
        wake()
    }

    /// Whether a path's directory is known and could be listed.
    private func isListed(_ path: String) -> Bool {
        let parent = FileName(path).parent
        return tree[parent] != nil && complaints[parent] == nil
    }

    /// Remembers the files that were known at the last stop and have not been found since.
    func missedSinceStart() {
        // In the order in which the files went missing, so that the oldest are forgotten first.
        for (id, checkpoint, trace) in streams.remembered.endFirstListing() {
            if trace == nil {
                // A drop file read in part, or a state of another version. While something cannot be
                // accessed it may be there.
                guard complaints.isEmpty else { continue }
                // The other version's says nothing that it could be known by.
                guard ObjectSplitter.Place(checkpoint) != nil else {
                    streams.remembered.remove(id)
                    handover.pass.forget(id)
                    continue
                }
            }
            let isAway = !isListed(checkpoint.path)
            let hasWaiting = !drops.areAllRead
            streams.miss(checkpoint, trace, isAway: isAway, hasWaiting: hasWaiting, in: &handover.pass)
        }
    }
}
