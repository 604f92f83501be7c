internal import CLinux
internal import EventLoops
internal import Glibc
internal import Logs
internal import Model

/// How an append file goes: sealed when its writers are gone, removed when all of it is queued, remembered for a while
/// because a copy or an archive of it may turn up.
extension SpoolReader {
    /// How often a file that is about to be removed is looked at: the longest that a writer who comes then must wait.
    private static let graceStep = Duration.milliseconds(50)

    /// Has a file that has been read as far as possible looked at again when it may be sealed, removed or forgotten.
    func considerLater(_ file: AppendFile) {
        guard streams.files[file.id] === file, !file.isReady, file.stage == .reading else { return }
        guard let quiet = quietTime(of: file) else { return file.rest() }
        file.wake(now)
        let due = max(now, file.lastChange + quiet)
        // An earlier check than was planned takes its place: what was current may be rotated or deleted by now.
        if let planned = file.checkAt, planned <= due { return }
        file.checkAt = due
        schedule(at: due, by: share(of: file)) { self.check(file) }
    }

    /// How long a file must be quiet until something is to be done about it; nil if there is nothing.
    private func quietTime(of file: AppendFile) -> Duration? {
        if file.isUnsealed {
            // A block of text that ends with a line feed waits for silence alone.
            if file.holdsText { return options.textTime }
            return file.isRotated ? options.settleTime : options.sealTime
        }
        if !file.hasName { return options.settleTime }
        guard options.afterRead != .keep, file.size > 0 || file.isRotated, !sink.mustStay(file.id.bytes) else {
            return nil
        }
        return file.isRotated ? options.settleTime : options.giveUpTime
    }

    func check(_ file: AppendFile) {
        guard let planned = file.checkAt, planned <= now else { return }
        file.checkAt = nil
        guard streams.files[file.id] === file, !file.isReady, file.stage == .reading else { return }
        guard let quiet = quietTime(of: file) else { return }
        if now - file.lastChange < quiet { return considerLater(file) }
        if file.holdsText {
            file.scanned = 0
            return makeReady(file)
        }
        if file.descriptor == nil, file.hasName {
            // Opening can fail because the file is gone; reading finds that out.
            guard (try? open(file)) != nil else { return makeReady(file) }
        }
        guard let descriptor = file.descriptor?.raw else { return file.hasName ? () : leave(file) }
        // What is only read is never locked.
        let isHeld = options.place == nil && clinux_take_lease(descriptor) == 0
        let refusal = options.place == nil ? errno : EACCES
        if !isHeld, !SpoolReader.isWithoutLeases(refusal) {
            // EAGAIN: a writer has it open. It will write or close it, and we are notified; not of a nameless one, nor where
            // directories are polled. Anything else is a shortage.
            return refusal != EAGAIN || !file.hasName || file.directory.isPolled ? again(file) : file.rest()
        }
        var isGoing = false
        defer { if isHeld, !isGoing { _ = clinux_return_lease(descriptor) } }
        // Asked once nobody can write to it any more: changes are reported late, and of a file without a name not always.
        guard let status = try? FileStatus(of: descriptor) else { return again(file) }
        if status.size != file.length || status.modified != file.modified {
            file.lastChange = now
            return makeReady(file)
        }
        // Without the capability nobody can tell whether there is a writer: an append file is kept then.
        guard isHeld else { return checkWithoutLease(file) }
        if file.isUnsealed { return seal(file) }
        // The commit that is under way asks again.
        guard file.committed >= file.size else { return }
        if file.hasName {
            isGoing = beginLeaving(file, descriptor)
        } else {
            isGoing = true
            leave(file)
        }
    }

    private func again(_ file: AppendFile) {
        let isSoon = !file.hasName || file.isRotated
        let due = now + max(isSoon ? options.settleTime : min(options.giveUpTime, options.sealTime), .milliseconds(100))
        file.checkAt = due
        schedule(at: due, by: share(of: file)) { self.check(file) }
    }

    private func checkWithoutLease(_ file: AppendFile) {
        if file.isUnsealed {
            // Closed as far as we saw, or gone from its name.
            guard file.end == .closed || file.isRotated else { return }
            return seal(file)
        }
        guard !file.hasName, file.committed >= file.size else { return }
        // A writer may have it open, and nobody tells of what it writes.
        if now - file.lastChange >= options.giveUpTime { leave(file) } else { again(file) }
    }

    /// Its last line counts as whole, and what zeros it ends with are looked through once more.
    private func seal(_ file: AppendFile) {
        file.end = .sealed
        file.padding?.known = 0..<0
        makeReady(file)
    }

    /// All of the file is queued, and nobody has it open for writing: it gets a hidden name, and goes if nobody comes
    /// for it within the time of grace. False: it does not go now, and its lease is given back.
    private func beginLeaving(_ file: AppendFile, _ descriptor: Int32) -> Bool {
        do throws(SystemError) {
            guard let raw = self.descriptor(of: file.directory) else {
                again(file)
                return false
            }
            let status = try FileStatus(of: descriptor)
            if status.size != file.length || file.hasUnread {
                makeReady(file)
            } else if file.name.claimed == nil, try !claim(file, status, raw) {
                displaced(file)
            } else {
                file.enter(.leaving, at: now)
                life.tasks += 1
                let id = file.id
                Task(executorPreference: loop) { await self.leaveOnceDurable(id) }
                return true
            }
        } catch {
            switch error.number {
            case ENOENT, EEXIST:
                makeReady(file)
                return false
            case EACCES, EPERM: complain(file.path, file.owner, SpoolReader.notRemoved(error))
            default: note(error, "cannot rename file", file.path)
            }
            tryAgain(.check, file.path, error) {
                file.checkAt = self.now
                self.check(file)
            }
        }
        return false
    }

    /// Gives a file a name of ours. False: its name is another file's by now, which keeps it.
    private func claim(_ file: AppendFile, _ status: FileStatus, _ raw: Int32) throws(SystemError) -> Bool {
        let (name, directory) = (file.name, file.directory)
        // Asked first, because others may be writing to that file by its name.
        let named = try FileSystem.status(raw, name)
        guard named.inode == status.inode, named.device == status.device,
            let claim = try claim(name, status, in: directory, raw)
        else { return false }
        directory.files[name] = nil
        streams.change(file) { $0.name = claim }
        directory.files[claim] = file
        return true
    }

    /// The time of grace begins once all of the file survives a power cut.
    private func leaveOnceDurable(_ id: FileID) async {
        defer {
            life.tasks -= 1
            wake()
        }
        do {
            try await sink.persist()
            guard let file = streams.files[id] else { return }
            file.leavesAt = now + options.graceTime
            schedule(after: min(SpoolReader.graceStep, options.graceTime), by: share(of: file)) { self.grace(file) }
        } catch {
            // The agent stops, or cannot persist: under the name that it has the file is found by the next start.
            guard let file = streams.files[id] else { return }
            log.info("file stays", ["path": file.path.text, "reason": "\(error)"])
            if let descriptor = file.descriptor?.raw { stay(file, descriptor) }
        }
    }

    func grace(_ file: AppendFile) {
        guard file.stage == .leaving, let descriptor = file.descriptor?.raw else { return }
        guard let status = try? FileStatus(of: descriptor), clinux_holds_lease(descriptor) == 1,
            status.size == file.length, !file.hasUnread, status.links == 1,
            let raw = self.descriptor(of: file.directory)
        else { return stay(file, descriptor) }
        guard now >= file.leavesAt else {
            let wait = min(SpoolReader.graceStep, file.leavesAt - now)
            return schedule(after: wait, by: share(of: file)) { self.grace(file) }
        }
        do {
            // The name is ours, so it is this file's: only files that nobody can reach are removed.
            try putAway(file.name, in: file.directory, raw, of: app(of: file.directory, file.owner))
            counters.filesRemoved += 1
            log.debug("file removed", ["path": file.path.text, "bytes": file.taken.offset])
            leave(file)
        } catch {
            note(error, "cannot remove file", file.path)
            stay(file, descriptor)
        }
    }

    /// Somebody came for the file at the last moment: it gets its name back, if that is free, and is read on.
    private func stay(_ file: AppendFile, _ descriptor: Int32) {
        file.enter(.reading, at: now)
        file.lastChange = now
        if let raw = self.descriptor(of: file.directory), let original = file.name.claimed {
            do {
                try FileSystem.rename(raw, file.name, to: original)
                file.directory.files[file.name] = nil
                streams.change(file) { $0.name = original }
                file.directory.files[original] = file
            } catch {
                // A new file has the name: this one is read on under ours, and goes later.
                file.naming = .rotated
            }
        }
        _ = clinux_return_lease(descriptor)
        makeReady(file)
    }

    /// Lets go of a file that is gone, and remembers it for a while.
    func leave(_ file: AppendFile) {
        closeDescriptor(of: file)
        if !file.hasUnread { counters.appendFilesRead += 1 }
        let hasWaiting = !drops.areAllRead
        streams.leave(file, hasWaiting: hasWaiting, in: &pass)
        useRoom()
        tellCutOffs()
        wake()
    }

    /// Whether a path's directory is known and could be listed.
    private func isListed(_ path: String) -> Bool {
        let parent = FileName(path).parent
        return tree.directories[parent] != nil && trouble.complaints[parent] == nil
    }

    /// Remembers the files that were known at the last stop and have not been found since.
    func missedSinceStart() {
        // Those that went first are forgotten first.
        for (id, checkpoint, trace) in streams.remembered.endFirstListing() {
            if trace == nil {
                // A drop file read in part, or a state of another version. While something cannot be accessed it may be there.
                guard trouble.complaints.isEmpty else { continue }
                // The other version's says nothing that it could be known by.
                guard ObjectSplitter.Place(checkpoint) != nil else {
                    streams.remembered.remove(id)
                    pass.forget(id)
                    continue
                }
            }
            let (isAway, hasWaiting) = (!isListed(checkpoint.path), !drops.areAllRead)
            streams.miss(checkpoint, trace, isAway: isAway, hasWaiting: hasWaiting, in: &pass)
        }
    }
}
