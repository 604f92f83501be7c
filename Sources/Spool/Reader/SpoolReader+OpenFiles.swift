internal import EventLoops
internal import Glibc
internal import Logs

/// Opening and closing of append files within the limits of descriptors, and claims: drop files are claimed
/// before they are read, append files before they are removed (`Removal`).
extension SpoolReader {
    /// Opens a file under its name, if it is not open, and notes the use.
    ///
    /// - Throws: ENOENT if the file has no name, or if another file has it by now.
    func open(_ file: AppendFile) throws(SystemError) {
        openFiles.use(file)
        guard file.descriptor == nil else { return }
        guard file.hasName else { throw SystemError("open", number: ENOENT) }
        let raw = try reach(file.directory)
        let looked = try openName(file.name, in: file.directory, raw)
        let status = try FileSystem.status(looked)
        // Another file has the name by now; inotify has not reported that yet.
        guard status.isRegular, try FileID(looked, status) == file.id else {
            throw SystemError("open", number: ENOENT)
        }
        try open(file, looked)
        reached(file.path)
    }

    /// Opens a file by a descriptor that was opened with O_PATH.
    func open(_ file: AppendFile, _ looked: borrowing Descriptor) throws(SystemError) {
        // The file may be open already, because a restored position was compared before this.
        guard file.descriptor == nil else { return openFiles.use(file) }
        let owner = try FileSystem.status(looked).owner
        if owner != file.owner {
            streams.change(file) {
                $0.owner = owner
            }
        }
        file.descriptor = try FileSystem.read(looked)
        close(idle: openFiles.opened(file))
    }

    /// Closes files that `OpenFiles` has chosen; they can be opened again by name.
    func close(idle files: [AppendFile]) {
        for file in files {
            file.descriptor = nil
            file.rest()
            // A file that was always empty need not be known: inotify reports when it is written to.
            if file.isResting, file.length == 0, file.taken.offset == 0, !file.isRotated {
                streams.remove(file)
            }
        }
    }

    /// Opens a file whose lines wait, so that they are not lost if the file is deleted meanwhile. For this,
    /// files that were read to the end are closed, but no file whose lines wait too.
    func hold(_ file: AppendFile) {
        guard file.descriptor == nil, file.hasName, openFiles.mayOpenMore else { return }
        // An error is reported when the file is to be read.
        _ = try? open(file)
    }

    /// Bounds the number of nameless files while reading is held back. Files with the fewest unread bytes are
    /// let go first; their bytes are counted as given up unless a copy of the file turns up.
    func shedNameless() {
        for file in openFiles.namelessBeyondLimit() { letGoUnread(file) }
    }

    /// Lets go of a file that cannot be read any more, because it has no name and its descriptor is closed or
    /// must be.
    func letGoUnread(_ file: AppendFile) {
        if let raw = file.descriptor?.raw, let status = try? FileStatus(of: raw) {
            file.see(length: status.size)
        }
        streams.vanished(file)
        leave(file)
    }

    /// Closes a file and ends its own watch.
    func closeDescriptor(of file: AppendFile) {
        guard file.descriptor != nil else { return }
        endWatch(of: file)
        file.descriptor = nil
        openFiles.closed(file)
    }

    // MARK: How many may be open

    /// Time after a shortage of descriptors until the configured limits are tried again.
    private static let shortage = Duration.seconds(60)

    /// Sets the limits of open files, at the start and after a shortage, from the configuration and the
    /// descriptors that the process has left.
    func fitDescriptors() {
        let limit = SpoolReader.descriptorLimit
        let isBounded = limit < 1 << 30
        let count = isBounded ? (try? WholeFile.names(in: "/proc/self/fd"))?.count ?? 16 : 0
        close(openFiles.fit(limit: limit, open: count), limit)
    }

    /// Closes half of the open files and directories, because the process has no descriptors left, and lowers
    /// the limits for a while.
    func shedDescriptors() {
        if !openFiles.isShort {
            schedule(after: SpoolReader.shortage, .fitDescriptors)
        }
        let limit = SpoolReader.descriptorLimit
        close(openFiles.shed(limit: limit), limit)
    }

    private static var descriptorLimit: Int {
        var limit = rlimit()
        let isKnown = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0
        return isKnown ? Int(clamping: limit.rlim_cur) : .max
    }

    /// Closes the files and directories that exceed lowered limits, and warns.
    private func close(_ closing: OpenFiles.Closing, _ limit: Int) {
        for directory in closing.directories { directory.descriptor = nil }
        close(idle: closing.files)
        guard let files = closing.mostFiles else { return }
        log.warning(
            "fewer files are held open than spool.max_open_files allows: the process may not open more",
            ["files": files, "descriptors": limit, "hint": "raise LimitNOFILE"])
    }

    // MARK: Claims

    /// Claims a file: renames it to a hidden name of the agent.
    ///
    /// Renames by others are noticed late, in polled directories much later. So the name may belong to
    /// another file by now, which was not read and must not be removed. Such a file gets its name back and is
    /// read as a new one.
    ///
    /// - Parameter status: status of the file, which must be open, so that no other file can have its inode
    ///   number.
    /// - Returns: the name of the claim; nil if another file had the name.
    func claim(
        _ name: FileName, _ status: FileStatus, in directory: SpoolDirectory, _ raw: Int32
    ) throws(SystemError) -> FileName? {
        let claim = try removal.claim(name, status, in: raw)
        guard !claim.isExpected else { return claim.name }
        restoreName(claim.name, name, in: directory, raw)
        if let error = claim.error { throw error }
        return nil
    }

    /// Gives a file that was claimed by mistake its name back. If the name is taken, the file is read under
    /// the claim.
    private func restoreName(
        _ claim: FileName, _ name: FileName, in directory: SpoolDirectory, _ raw: Int32
    ) {
        do {
            try FileSystem.rename(raw, claim, to: name)
            look(at: name, in: directory, isComplete: true)
        } catch {
            if error.number != EEXIST {
                note(error, "cannot restore the name of a file", directory.path(of: name))
            }
            look(at: claim, in: directory, isComplete: true)
        }
    }
}
