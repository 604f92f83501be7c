internal import CLinux
internal import EventLoops
internal import Glibc
internal import Logs

extension SpoolReader {
    /// What is watched: names that come and go, changes of content, closing writers, permissions.
    private static let mask = UInt32(
        IN_CREATE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_DELETE_SELF
            | IN_MOVE_SELF | IN_ONLYDIR)

    func beginWatching() {
        guard options.isWatching else {
            watching.pollReason = "watching is turned off"
            return
        }
        let raw = inotify_init1(Int32(IN_NONBLOCK | IN_CLOEXEC))
        do {
            let descriptor = try Descriptor(checking: raw, "inotify_init1")
            try listen(to: raw)
            watching.inotify = consume descriptor
        } catch {
            watching.pollReason = "inotify is not available: \(error)"
        }
    }

    func endWatching() {
        if let kernel = watching.inotify?.raw { loop.forget(kernel) }
        watching.inotify = nil
        watching.directories.removeAll()
    }

    /// Watches a directory, or has it looked at from time to time.
    func watch(_ directory: SpoolDirectory, _ descriptor: borrowing Descriptor) {
        guard let kernel = watching.inotify?.raw else { return beginPolling(directory) }
        let path = FileSystem.selfPath(descriptor.raw)
        let watch = path.withCString { inotify_add_watch(kernel, $0, SpoolReader.mask) }
        if watch >= 0 {
            // It may be watched by the name that it had before.
            watching.directories[watch]?.watch = nil
            directory.watch = watch
            watching.directories[watch] = directory
            if tree.isRemote {
                watching.pollReason = "the file system is on another machine"
                beginPolling(directory)
            }
            return
        }
        let error = SystemError("inotify_add_watch")
        if error.number == EACCES {
            complain(directory.path, nil, "the directory cannot be read: let the agent's group read and search it")
        } else if error.number == ENOSPC {
            watching.pollReason = "no more inotify watches: raise fs.inotify.max_user_watches"
        } else {
            watching.pollReason = error.description
        }
        beginPolling(directory)
        // What the limit refuses once it refuses again.
        if error.number != ENOSPC { tryAgain(.watch, directory.path, error) { self.watchAgain(directory) } }
    }

    func endWatch(of directory: SpoolDirectory) {
        guard let watch = directory.watch, let kernel = watching.inotify?.raw else { return }
        directory.watch = nil
        watching.directories[watch] = nil
        // Fails when the kernel has ended the watch itself, because the directory is gone.
        _ = inotify_rm_watch(kernel, watch)
    }

    private func watchAgain(_ directory: SpoolDirectory) {
        guard !directory.isGone, directory.watch == nil, descriptor(of: directory) != nil else { return }
        do {
            watch(directory, try FileSystem.openDirectory(tree.root.raw, directory.path))
        } catch {
            return tryAgain(.watch, directory.path, error) { self.watchAgain(directory) }
        }
        guard directory.watch != nil, !directory.isPolled || !tree.isRemote else { return }
        directory.isPolled = false
        watching.polled.removeAll { $0 === directory }
        scan(directory)
    }

    // MARK: Polling

    private func beginPolling(_ directory: SpoolDirectory) {
        guard !directory.isPolled else { return }
        if watching.polled.isEmpty {
            log.warning("directories are polled", ["reason": watching.pollReason ?? "a directory cannot be read"])
            schedule(after: options.pollInterval) { self.poll() }
        }
        directory.isPolled = true
        watching.polled.append(directory)
    }

    func poll() {
        watching.polled.removeAll { $0.isGone }
        for directory in watching.polled {
            scan(directory)
            for file in directory.files.values { pollSize(of: file) }
        }
        if !watching.polled.isEmpty { schedule(after: options.pollInterval) { self.poll() } }
    }

    /// Has a look at a file's size where no event tells of it.
    private func pollSize(of file: AppendFile) {
        guard let raw = descriptor(of: file.directory) else { return }
        let status: FileStatus
        do {
            status = try FileSystem.status(raw, file.name)
        } catch {
            // A file that is gone is read to its end and closed.
            if error.number == ENOENT, file.descriptor != nil { displaced(file) }
            return makeReady(file)
        }
        // The name is another file's, noticed while this one is known by it; reading finds out what has become of this one.
        guard status.inode == file.trace.inode else {
            notice(file.directory, file.name)
            return makeReady(file)
        }
        // A file can be rewritten to the same size.
        if status.size != file.length || status.modified != file.modified { changed(file) }
        update(file, status)
    }

    // MARK: Changes

    private static let longestChange = MemoryLayout<inotify_event>.size + Int(NAME_MAX) + 1

    /// Takes up what the kernel has told, for so long at most: a flood of changes must not keep the loop from all else.
    func readChanges(within limit: Duration) {
        guard let kernel = watching.inotify?.raw else { return }
        let end = now + limit
        withUnsafeTemporaryAllocation(byteCount: 8 << 10, alignment: 8) { buffer in
            while true {
                let count = Glibc.read(kernel, buffer.baseAddress, buffer.count)
                guard count > 0 else { break }
                let isMoving = take(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
                // The two halves of a rename come one after the other, and belong together.
                if isMoving { continue }
                // With room for another change left, these were all.
                if buffer.count - count >= SpoolReader.longestChange || now >= end { break }
            }
        }
        // A file that was renamed and has not turned up is outside of what is watched.
        watching.moved.removeAll(keepingCapacity: true)
    }

    /// True: the last of them is the first half of a rename.
    private func take(_ changes: UnsafeRawBufferPointer) -> Bool {
        var isMoving = false
        var offset = 0
        let header = MemoryLayout<inotify_event>.size
        while offset + header <= changes.count {
            let event = changes.loadUnaligned(fromByteOffset: offset, as: inotify_event.self)
            let end = offset + header + Int(event.len)
            guard end <= changes.count else { break }
            let name = UnsafeRawBufferPointer(rebasing: changes[(offset + header)..<end])
            offset = end
            isMoving = Int(event.mask) & Int(IN_MOVED_FROM) != 0
            if !isOfNoConcern(event, name) { take(event, FileName(name.prefix { $0 != 0 })) }
        }
        return isMoving
    }

    /// Whether a change is of a hidden file where no file is known by any name. Of the changes that drop files bring, most
    /// are: their writing, their claims, their removals.
    private func isOfNoConcern(_ event: inotify_event, _ name: UnsafeRawBufferPointer) -> Bool {
        guard name.first == UInt8(ascii: "."), Int(event.mask) & Int(IN_ISDIR | IN_IGNORED) == 0,
            watching.moved.isEmpty, streams.nameless.isEmpty, trouble.complaints.isEmpty,
            let directory = watching.directories[event.wd]
        else { return false }
        return directory.files.isEmpty && directory.settling.isEmpty && directory.linked.isEmpty
    }

    private func take(_ event: inotify_event, _ name: FileName) {
        let mask = Int(event.mask)
        if mask & Int(IN_Q_OVERFLOW) != 0 {
            counters.overflows += 1
            log.info("changes came too fast, listing everything again")
            for directory in tree.directories.values { scan(directory) }
            for file in streams.files.values { makeReady(file) }
            return
        }
        guard let directory = watching.directories[event.wd] else { return }
        if mask & Int(IN_IGNORED) != 0 {
            watching.directories[event.wd] = nil
            return close(directory)
        }
        if directory.path.bytes.isEmpty {
            if mask & Int(IN_MOVE_SELF) != 0 { return close(directory) }
            if mask & Int(IN_DELETE) != 0, mask & Int(IN_ISDIR) != 0 { planRootCheck() }
        }
        guard !name.bytes.isEmpty else { return }
        if mask & Int(IN_ISDIR) != 0 { return takeDirectory(mask, directory, name) }
        if mask & Int(IN_MODIFY) != 0 {
            if let file = directory.files[name] {
                changed(file)
            } else if kind(of: name, in: directory) == .append, trouble.complaints[directory.path(of: name)] == nil {
                notice(directory, name)
            }
            changedNameless(in: directory, name)
        } else if mask & Int(IN_CLOSE_WRITE) != 0 {
            if let file = directory.files[name] {
                // What was written into mapped memory is reported by nothing else.
                if file.padding != nil { changed(file) }
                if file.end == .open { file.end = .closed }
                considerLater(file)
            } else if kind(of: name, in: directory) == .other {
                passOver(directory, name)
            } else {
                appeared(directory, name, isComplete: false)
            }
            changedNameless(in: directory, name)
        } else if mask & Int(IN_CREATE) != 0 {
            appeared(directory, name, isComplete: false)
        } else if mask & Int(IN_MOVED_TO) != 0 {
            if let (file, old) = watching.moved.removeValue(forKey: event.cookie),
                file != nil || !name.isHidden && !name.isUnfinished
            {
                notice(directory, name, renamed: file, was: isRotated(old) ? .rotated(old) : .current(old))
            } else {
                appeared(directory, name, isComplete: true)
            }
        } else if mask & Int(IN_MOVED_FROM) != 0 {
            let file = directory.files[name]
            if let file { displaced(file) }
            let isLines = kind(of: name, in: directory) == .append
            if file != nil || isLines { watching.moved[event.cookie] = (file, name) }
            drops.movedAway(from: directory.path(of: name))
            forgetName(name, in: directory)
        } else if mask & Int(IN_DELETE) != 0 {
            if let file = directory.files[name] { displaced(file) }
            directory.settling[name] = nil
            if let id = drops.stays(at: directory.path(of: name)) { stayedUntilDeleted(id, in: directory) }
            reached(directory.path(of: name))
            forgetName(name, in: directory)
            reviewLinked(in: directory)
        } else if mask & Int(IN_ATTRIB) != 0 {
            permissionsChanged(directory, name)
        }
    }

    private func takeDirectory(_ mask: Int, _ directory: SpoolDirectory, _ name: FileName) {
        // Not for us, or not finished: `.spoolship` is one of them.
        guard !name.isHidden else { return }
        if directory.isIncoming, mask & Int(IN_MOVED_FROM | IN_DELETE) != 0 {
            return forgetNested(directory.path(of: name))
        }
        if mask & Int(IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE) != 0 {
            // Told later than it happens: what counts is where the name leads now.
            open(directory.path(of: name), depth: directory.depth + 1)
        } else if mask & Int(IN_ATTRIB) != 0 {
            let path = directory.path(of: name)
            guard let known = tree.directories[path] else { return open(path, depth: directory.depth + 1) }
            if trouble.complaints[path] != nil {
                close(known)
                open(path, depth: directory.depth + 1)
            } else if !trouble.complaints.paths(below: path).isEmpty {
                // What could not be opened in it may be opened now.
                scan(known)
            }
        }
    }

    private func changed(_ file: AppendFile) {
        file.lastChange = now
        if file.end != .open { file.wasClosed = true }
        file.end = .open
        makeReady(file)
    }

    /// Changes of a file that lost its name are reported under the name it had.
    private func changedNameless(in directory: SpoolDirectory, _ name: FileName) {
        guard !streams.nameless.isEmpty else { return }
        for file in streams.nameless.values where file.directory === directory && file.name == name { changed(file) }
    }

    /// A name has appeared, or its writer has closed the file.
    func appeared(_ directory: SpoolDirectory, _ name: FileName, isComplete: Bool) {
        switch kind(of: name, in: directory) {
        case .append: notice(directory, name)
        case .drop:
            // Our own claims are reported too; those of earlier readers are found by listing.
            if name.claimed == nil { offer(directory, name, isComplete: isComplete) }
        // Written and closed, or renamed to that name: it stays.
        case .other: if isComplete { passOver(directory, name) }
        }
    }

    /// A name has gone: it may have been the second one of a file that was refused.
    private func reviewLinked(in directory: SpoolDirectory) {
        guard !directory.linked.isEmpty else { return }
        let names = directory.linked
        directory.linked.removeAll()
        for name in names { appeared(directory, name, isComplete: false) }
    }

    private func permissionsChanged(_ directory: SpoolDirectory, _ name: FileName) {
        if let file = directory.files[name] {
            // Unlinking the last name of an open file is reported as a change of attributes too.
            let isMissed = trouble.complaints[file.path] != nil
            if isMissed || file.descriptor == nil { makeReady(file) }
        } else if !trouble.complaints.isEmpty {
            appeared(directory, name, isComplete: false)
        }
    }
}
