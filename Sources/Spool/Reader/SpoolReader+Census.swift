internal import CLinux
internal import EventLoops
internal import Glibc
internal import Model

/// The I/O of the census and of the looks at sizes, which `Backlog` plans.
extension SpoolReader {
    /// Whether reading waits for commits.
    var isHeldBack: Bool {
        handover.isHeldBack(now, longerThan: Backlog.censusInterval)
    }

    /// Whether lines are not read for now, because reading is held back or the sink has parked files.
    var isWaiting: Bool { isHeldBack || handover.parked > 0 }

    /// Plans a census and a look, in case the commit that has begun, or a parked file, waits for long.
    func planCensus() {
        if backlog.planCensus() {
            schedule(after: Backlog.censusInterval, .takeCensus)
        }
        if backlog.planLook() {
            schedule(after: options.lookInterval, .lookAtSizes)
        }
    }

    /// Asks waiting files for their lengths, a slice at a time, and opens them as far as descriptors suffice,
    /// so that deleted ones are not lost.
    func lookAtSizes() {
        guard isWaiting else {
            // A commit that began after the look was planned may still wait for hours.
            if handover.underWay > 0 { return schedule(after: options.lookInterval, .lookAtSizes) }
            return backlog.endLook()
        }
        for file in backlog.filesToAsk(Array(streams.unread.values), now) { seeLength(of: file) }
        switch backlog.endLookSlice(now, interval: options.lookInterval) {
        case .goOn: schedule(after: .zero, .lookAtSizes)
        case .done(let wait):
            shedNameless()
            publish()
            schedule(after: wait, .lookAtSizes)
        }
    }

    /// Updates the length of a file from its status.
    private func seeLength(of file: AppendFile) {
        // A file that is not ready was read to its end; a change would make it ready.
        guard streams.files[file.id] === file, file.isReady else { return }
        hold(file)
        if let raw = file.descriptor?.raw {
            if let status = try? FileStatus(of: raw) {
                file.see(length: status.size)
            }
        } else if !file.hasName {
            letGoUnread(file)
        } else if let raw = descriptor(of: file.directory),
            let looked = try? openName(file.name, in: file.directory, raw),
            let status = try? FileSystem.status(looked),
            status.inode == file.trace.inode
        {
            file.see(length: status.size)
        }
    }

    /// Does a slice of the census, or ends it once reading continues.
    func takeCensus() {
        guard isHeldBack else {
            if handover.underWay > 0 { return schedule(after: Backlog.censusInterval, .takeCensus) }
            backlog.endCensus()
            if backlog.releasesMemory(now, read: handover.counts.bytes) {
                clinux_release_memory()
            }
            return publish()
        }
        backlog.beginCensus(Array(tree.all), now)
        var isWhole = false
        for _ in 0..<Backlog.slice where !isWhole { isWhole = !countNext() }
        switch backlog.endSlice(isWhole: isWhole, now) {
        case .goOn: schedule(after: .zero, .takeCensus)
        case .done(let wait):
            publish()
            schedule(after: wait, .takeCensus)
        }
    }

    /// Counts a name, or opens the next directory. False if all were listed.
    private func countNext() -> Bool {
        guard let (directory, stream) = backlog.listed else {
            guard let directory = backlog.nextDirectory() else { return false }
            // A directory that cannot be listed is skipped; reading reports it.
            guard let raw = self.descriptor(of: directory),
                let looked = try? FileSystem.openDirectory(raw, FileName(".")),
                let stream = try? DirectoryStream(looked)
            else { return true }
            backlog.began(stream, of: directory)
            return true
        }
        guard let entry = try? stream.next() else {
            backlog.endedListing()
            return true
        }
        let kind = options.kind(of: entry.name, in: directory)
        guard kind != .other, entry.type != Int(DT_DIR) else { return true }
        // The file may be gone by now.
        guard let status = try? FileSystem.status(stream.descriptor, entry.name), status.isRegular else {
            return true
        }
        if kind == .append {
            // Another file may have the name by now; its size says nothing about the known one.
            if let file = directory.files[entry.name], file.trace.inode == status.inode {
                // Writes through mapped memory cause no inotify event.
                if status.size != file.length {
                    makeReady(file)
                }
                file.see(length: status.size)
            }
        } else if !isReadAndKept(entry.name, status, in: directory, stream.descriptor) {
            // By st_ctim, because the owner can set st_mtim to any value.
            backlog.counted(size: status.size, changed: status.changed, time.wallTime)
        }
        return true
    }

    /// Whether a drop file was read to the end and stays: by `after_read = "keep"`, or because of its bad
    /// lines.
    private func isReadAndKept(
        _ name: FileName, _ status: FileStatus, in directory: SpoolDirectory, _ raw: Int32
    ) -> Bool {
        if drops.stuck(at: directory.path(of: name)) != nil { return true }
        guard options.afterRead == .keep, let looked = try? FileSystem.openPath(raw, name),
            let id = try? FileID(looked, status)
        else { return false }
        return streams.remembered.isDone(id, status)
    }

    /// Nothing is left to read: resets the census.
    func endCount() {
        guard backlog.drops != Backlog.Drops(), !isHeldBack else { return }
        backlog.forget()
    }

    /// Counts the backlog for the figures: bytes that wait, and since when.
    func countUnread(in figures: inout SpoolFigures) {
        var bytes = backlog.drops.bytes
        var oldest = backlog.drops.oldest
        var unfinished: [(since: Timestamp, file: AppendFile)] = []
        for file in streams.unread.values {
            bytes += ByteCount(file.unread)
            if let since = file.unreadSince {
                oldest = min(oldest ?? since, since)
                if file.endsInLine {
                    unfinished.append((since, file))
                }
            }
        }
        figures.unfinishedLines = unfinished.sorted { $0.since < $1.since }
            .prefix(SpoolFigures.UnfinishedLine.most).map { since, file in
                SpoolFigures.UnfinishedLine(
                    app: file.directory.app, path: wholePath(file.directory.path(of: file.name)),
                    since: since, bytes: file.unread)
            }
        if !backlog.isCounting, backlog.drops.bytes == 0 {
            for drop in drops.openDrops { bytes += ByteCount(drop.unread) }
        }
        figures.unreadBytes = bytes
        figures.oldestUnread = bytes > 0 ? oldest : nil
        figures.waitingDropFiles = max(backlog.drops.files, drops.countUnread)
    }
}
