internal import EventLoops
internal import Logs
internal import Glibc
internal import Model

extension SpoolReader {
    /// Has a look at a name that an append file may have: a new file, a known one under a new name, or nothing new.
    ///
    /// The kernel tells later than it happens: when we first looked at the old name, it may have been the next file's already,
    /// or nobody's. So it is the new name that says which file it is.
    ///
    /// - Parameters:
    ///   - file: what was known under the old name, if one has been renamed.
    ///   - earlier: the old name; if it was one that rotation gives it may be a copy, shifted by now.
    func notice(
        _ directory: SpoolDirectory, _ name: FileName, renamed file: AppendFile? = nil,
        was earlier: Streams.EarlierName = .unknown
    ) {
        guard let raw = descriptor(of: directory) else { return }
        do {
            let looked = try FileSystem.openPath(raw, name)
            let status = try FileSystem.status(looked)
            if let file, try FileID(looked, status) == file.id { return moved(file, to: directory, name) }
            if admit(status, directory, name) { try notice(directory, name, looked, status, was: earlier) }
        } catch {
            // It has been renamed once more, which is reported next; or it is out of reach.
            if let file { moved(file, to: directory, name) } else { notOpened(directory, name, error) }
        }
    }

    private func notice(
        _ directory: SpoolDirectory, _ name: FileName, _ looked: borrowing Descriptor, _ status: FileStatus,
        was earlier: Streams.EarlierName
    ) throws(SystemError) {
        let id = try FileID(looked, status)
        guard !drops.inHand.contains(id) else {
            // It is read as the drop file that it was: what it is now is asked once that is done.
            return recheck(name, in: directory, after: options.settleTime)
        }
        let isKnownAgain = knowAgain(id, looked, status)
        let before = directory.files[name].flatMap { $0.id != id ? $0 : nil }
        if let before { displaced(before) }
        if let file = streams.files[id] {
            if file.directory !== directory || file.name != name || !file.hasName { moved(file, to: directory, name) }
            update(file, status)
            return
        }
        // Rotated names of unknown kinds are followed only for files that are known.
        let isRemembered = streams.remembered.kept[id] != nil
        let isNew = if case .unknown = earlier { !isRemembered } else { false }
        guard kind(of: name, in: directory) == .append || !isNew else { return }
        // Those in which nothing is are kept while descriptors are left.
        let isKnown = !isNew || isRotated(name) || name.claimed != nil
        guard status.size > 0 || isKnown || held.files.count < held.mostFiles else { return }
        let holder = directory.holder(status.owner)
        guard isRemembered ? true : streams.hasRoom(for: holder) else { return waitForRoom(directory, holder) }
        let file = AppendFile(id, in: directory, name: name, owner: status.owner, size: status.size, now: now)
        let (isOther, isRotated) = (kind(of: name, in: directory) != .append, isRotated(name))
        let unreadable = streams.meet(file, isRotated: isOther || isRotated, was: earlier)
        if let unreadable { streams.goOn(file, at: (try? mark(at: unreadable, of: file)) ?? .start) }
        file.trace.inode = status.inode
        directory.files[name] = file
        // Its checkpoint comes under the name that it goes by now.
        if isKnownAgain { pass.add(file) }
        do {
            try open(file, looked)
            reached(file.path)
        } catch {
            // Somebody's file lease is no fault of the file: it is opened when it is gone.
            if error.number == EWOULDBLOCK {
                cannotRead(file, error)
            } else {
                notRead(file.directory, file.name, error, status)
                guard streams.files[id] === file else { return }
            }
        }
        update(file, status)
        if file.unread == 0 { considerLater(file) }
        if let before { warnOfRepeat(of: before, by: file, looked) }
    }

    /// A file is not known for want of room: listing finds it again once others have gone.
    private func waitForRoom(_ directory: SpoolDirectory, _ holder: Holder) {
        let holder = holder.pooled
        trouble.crowded[holder, default: [:]][directory.path] = directory
        complain(
            SpoolReader.crowd(of: holder), holder.owner,
            "too many files of lines: those beyond the limit are read once others were read and removed")
    }

    /// Files have gone: has directories listed again whose files waited for room.
    func useRoom() {
        for (holder, directories) in trouble.crowded where streams.hasRoom(for: holder, dividedBy: 2) {
            trouble.crowded[holder] = [:]
            for directory in directories.values { scan(directory) }
        }
    }

    /// A directory was listed: of holders whose files all have room by now nothing is reported any more.
    func forgetCrowds() {
        for (holder, directories) in trouble.crowded where directories.isEmpty {
            trouble.crowded[holder] = nil
            trouble.complaints.remove(SpoolReader.crowd(of: holder))
        }
    }

    /// Under which path it is reported that a holder has too many files.
    private static func crowd(of holder: Holder) -> FileName {
        FileName("\(FileName(holder.top).text)/*.jsonl\(holder.owner.map { ", uid \($0)" } ?? "")")
    }

    /// A file that took another one's name and begins with its lines repeats them: an editor, `sed -i` or rsync has written the file anew.
    private func warnOfRepeat(of old: AppendFile, by file: AppendFile, _ looked: borrowing Descriptor) {
        let known = old.trace.fingerprint
        guard old.streams == file.streams, !file.isSuspect, known.length > 0, file.size >= old.taken.offset,
            trouble.lastRepeat.map({ now - $0 >= .seconds(3600) }) ?? true,
            let readable = try? FileSystem.read(looked),
            let head = try? FileSystem.bytes(of: readable.raw, at: 0, count: known.length), known.begins(head)
        else { return }
        trouble.lastRepeat = now
        log.warning(
            "a file was replaced by one that begins with the same lines: all of it is read; reported once an hour",
            ["path": file.path.text, "read_before": old.taken.offset])
    }

    /// A file may have another identity than at the last stop, because its file system has handles now, or none any more: then
    /// its number and its content say which of those that were kept it is.
    private func knowAgain(_ id: FileID, _ looked: borrowing Descriptor, _ status: FileStatus) -> Bool {
        // Numbers are looked for during the first listing only.
        guard streams.files[id] == nil, streams.remembered.kept[id] == nil,
            streams.remembered.inodes.contains(status.inode)
        else { return false }
        for (other, checkpoint) in streams.remembered.kept where !other.isOfSameForm(as: id) {
            guard let trace = FileTrace(checkpoint.state), trace.inode == status.inode, trace.doneVersion == nil,
                let last = trace.marks.last, last.offset == checkpoint.offset, last.offset <= status.size,
                let readable = try? FileSystem.read(looked),
                (try? mark(at: last.offset, readable.raw))?.ends(like: last) == true
            else { continue }
            streams.remembered.remove(other)
            pass.forget(other)
            var renamed = checkpoint
            renamed.key = id.bytes
            streams.remembered.keep(renamed)
            return true
        }
        return false
    }

    /// A file has another name, or another file has its name: it is being rotated.
    func moved(_ file: AppendFile, to directory: SpoolDirectory, _ name: FileName) {
        if let other = directory.files[name], other !== file { displaced(other) }
        let isOwn = kind(of: name.claimed ?? name, in: directory) == .append
        let isNew = !file.hasName || file.name != name || file.directory !== directory
        let (isOther, isRotated) = (kind(of: name, in: directory) != .append, isRotated(name))
        streams.move(file, to: directory, name, isRotated: isNew && (isOther || isRotated), isOwn: isOwn)
        makeReady(file)
    }

    /// A file no longer has the name it had: removed, renamed to we know not what, or replaced by another.
    func displaced(_ file: AppendFile) {
        guard file.hasName else { return }
        streams.displace(file)
        counters.rotations += 1
        makeReady(file)
        considerLater(file)
    }

    /// What the kernel says about a file has changed, or may have.
    func update(_ file: AppendFile, _ status: FileStatus) {
        file.see(length: status.size)
        file.modified = status.modified
        if status.size != file.taken.offset { makeReady(file) }
    }

    func makeReady(_ file: AppendFile) {
        file.wake(now)
        if file.unreadSince == nil {
            file.unreadSince = time.wallTime
            streams.unread[file.id] = file
        }
        guard !file.isReady else { return }
        file.isReady = true
        lineUp(file)
        wake()
    }

    /// Has a file read when it is its app's turn.
    func lineUp(_ file: AppendFile) { ready.append(file, to: share(of: file)) }
}
