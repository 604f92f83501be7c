internal import EventLoops
internal import Glibc
internal import Model

extension SpoolReader {
    // MARK: Knowing files

    /// Has a look at a name that an append file may have: a new file, a known one under a new name, or nothing new.
    ///
    /// - Parameter isNew: whether the name appeared just now, so that another file's claim to it is over.
    func notice(_ directory: SpoolDirectory, _ name: FileName) {
        guard let raw = descriptor(of: directory) else { return }
        do {
            let looked = try FileSystem.look(raw, name)
            let status = try FileSystem.status(looked)
            if admit(status, directory, name) { try notice(directory, name, looked, status) }
        } catch {
            notOpened(directory, name, error)
        }
    }

    /// An append file has been renamed; `file` is what we knew under the old name.
    ///
    /// The kernel tells later than it happens: when we first looked at the old name, it may have been the next file's already,
    /// or nobody's. So it is the new name that says which file it is.
    ///
    /// - Parameter wasRotated: whether the old name was one that rotation gives: then it may be a copy, shifted by now.
    func renamed(_ file: AppendFile?, to directory: SpoolDirectory, _ name: FileName, wasRotated: Bool) {
        guard let raw = descriptor(of: directory) else { return }
        do {
            let looked = try FileSystem.look(raw, name)
            let status = try FileSystem.status(looked)
            if let file, try FileID(looked, status) == file.id { return moved(file, to: directory, name) }
            if admit(status, directory, name) {
                try notice(directory, name, looked, status, was: wasRotated ? .rotated : .current)
            }
        } catch {
            // It has been renamed once more, which is told next; or it is out of reach.
            if let file { moved(file, to: directory, name) } else { notOpened(directory, name, error) }
        }
    }

    /// What is known of the name that a file had before.
    private enum EarlierName {
        case unknown
        /// An append file's own: it is no copy.
        case current
        /// One that rotation gives.
        case rotated
    }

    private func notice(
        _ directory: SpoolDirectory, _ name: FileName, _ looked: borrowing Descriptor, _ status: FileStatus,
        was earlier: EarlierName = .unknown
    ) throws(SystemError) {
        let id = try FileID(looked, status)
        let isKnownAgain = knowAgain(id, looked, status)
        if let known = directory.files[name], known.id != id { displaced(known) }
        if let file = appends.known[id] {
            if file.directory !== directory || file.name != name || !file.hasName { moved(file, to: directory, name) }
            update(file, status)
            return
        }
        // Rotated names of unknown kinds are followed only for files that are known.
        guard kind(of: name, in: directory) == .append || earlier != .unknown || remembered.kept[id] != nil else {
            return
        }
        // Those in which nothing is are kept while descriptors are left.
        let isKnown = remembered.kept[id] != nil || earlier != .unknown || isRotated(name) || name.claimed != nil
        guard status.size > 0 || isKnown || held.files.count < held.mostFiles else { return }
        let file = AppendFile(id, in: directory, name: name, owner: status.owner, size: status.size, now: now)
        file.isRotated = isRotated(name) || earlier != .unknown
        // Of one of which nothing was read it was not known at the stop either.
        let wasRead = (remembered.kept[id]?.offset ?? 0) != 0
        let mayBeCopy = mayBeRotated(name, of: file.holder) || file.isRotated
        file.isCopySuspect = mayBeCopy && earlier != .current && !wasRead && name.claimed == nil
        if file.isCopySuspect { appends.suspects += 1 }
        if name.claimed != nil { file.isRotated = true }
        resume(file)
        foundAgain(id)
        file.trace.inode = status.inode
        appends.add(file)
        directory.files[name] = file
        if isKnownAgain {
            // Its checkpoint comes under the name that it goes by now.
            file.isDirty = true
            pass.files.append(file)
        }
        do {
            try open(file, looked)
            settled(file.path)
        } catch {
            // Somebody's file lease is no fault of the file: it is opened when it is gone.
            if error.number == EWOULDBLOCK {
                cannotRead(file, error)
            } else {
                notRead(file.directory, file.name, error, status)
                guard appends.known[id] === file else { return }
            }
        }
        update(file, status)
        if file.unread == 0 { considerLater(file) }
    }

    /// A file may have another identity than at the last stop, because its file system has handles now, or none any more: then
    /// its number and its content say which of those that were kept it is.
    private func knowAgain(_ id: FileID, _ looked: borrowing Descriptor, _ status: FileStatus) -> Bool {
        // Numbers are looked for during the first listing only.
        guard appends.known[id] == nil, remembered.kept[id] == nil, remembered.inodes.contains(status.inode) else {
            return false
        }
        for (other, checkpoint) in remembered.kept where !other.isOfSameForm(as: id) {
            guard let trace = FileTrace(checkpoint.state), trace.inode == status.inode, trace.doneVersion == nil,
                let last = trace.marks.last, last.offset == checkpoint.offset, last.offset <= status.size,
                let readable = try? FileSystem.read(looked), (try? mark(at: last.offset, readable.raw)) == last
            else { continue }
            remembered.remove(other)
            pass.forget(other)
            var renamed = checkpoint
            renamed.key = id.bytes
            remembered.keep(renamed)
            return true
        }
        return false
    }

    /// Takes over what was kept of a file.
    private func resume(_ file: AppendFile) {
        // A file that is read again is taken out of `missing` when its turn there comes.
        guard let checkpoint = remembered.remove(file.id), checkpoint.offset >= 0 else { return }
        file.trace = FileTrace(checkpoint.state) ?? FileTrace()
        file.origin = file.trace.origin ?? checkpoint.name
        if let last = file.trace.marks.last, last.offset == checkpoint.offset {
            file.taken = last
        } else {
            // A state that cannot be read: the offset alone must do, and the bytes before it cannot be checked.
            file.taken = (try? mark(at: checkpoint.offset, of: file)) ?? .start
        }
        file.committed = file.taken.offset
        file.trace.missingSince = nil
        file.trace.owner = nil
        file.trace.origin = nil
    }

    /// A file has another name, or another file has its name: it is being rotated.
    func moved(_ file: AppendFile, to directory: SpoolDirectory, _ name: FileName) {
        if file.hasName { file.directory.files[file.name] = nil }
        if !file.hasName || file.name != name || file.directory !== directory {
            if name.claimed == nil {
                if kind(of: name, in: directory) != .append || isRotated(name) { file.isRotated = true }
            }
        }
        // A name that rotation does not make of the one that it was written under is one that it is written under from now on.
        let own = name.claimed ?? name
        let isNew = kind(of: own, in: directory) == .append && own.base != file.origin.base
        appends.move(file, to: directory, name, origin: isNew ? own : file.origin)
        file.hasName = true
        appends.nameless[file.id] = nil
        if let other = directory.files[name], other !== file { displaced(other) }
        directory.files[name] = file
        makeReady(file)
    }

    /// A file no longer has the name it had: removed, renamed to we know not what, or replaced by another.
    func displaced(_ file: AppendFile) {
        guard file.hasName else { return }
        file.directory.files[file.name] = nil
        file.hasName = false
        file.isRotated = true
        counters.rotations += 1
        appends.nameless[file.id] = file
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
            appends.unread[file.id] = file
        }
        guard !file.isReady else { return }
        file.isReady = true
        lineUp(file)
        wake()
    }

    /// Has a file read when it is its app's turn.
    func lineUp(_ file: AppendFile) {
        appends.ready.append(file, to: app(of: file.directory, file.owner))
    }

    /// All of a file is in the queue.
    func isRead(_ file: AppendFile) {
        file.unreadSince = nil
        appends.unread[file.id] = nil
        file.rest()
    }
}
