internal import CLinux
internal import EventLoops
internal import Glibc
internal import Logs
internal import Model

/// Files that were unlinked, and whose records go once that is durable.
struct Removal {
    var waiting: [FileName: (directory: SpoolDirectory, records: [DoneRecord])] = [:]
    var isScheduled = false

    mutating func add(_ record: DoneRecord, in directory: SpoolDirectory) {
        waiting[directory.path, default: (directory, [])].records.append(record)
    }
}

extension SpoolReader {
    /// Removes a file that has been read, or moves it into the archive.
    func putAway(_ name: FileName, in directory: SpoolDirectory, _ raw: Int32, of app: String) throws(SystemError) {
        guard let archive = tree.archive else { return try FileSystem.unlink(raw, name) }
        try archive.take(
            name, from: raw, of: app, at: time.wallTime, isTrusted: { sink.isClockTrusted() }, using: &random)
    }

    func remove(_ files: [ClaimedFile]) {
        for file in files {
            drops.inHand.remove(file.id)
            // A directory that is gone may come back under another name, and the file with it.
            guard let raw = descriptor(of: file.directory),
                !stays(file.id, [file.record], file.claim, file.directory, file.share),
                remove(file.record, file.claim, in: file.directory, raw, of: file.app)
            else {
                drops.stuck[file.id] = [file.record]
                continue
            }
        }
        scheduleSync()
        wake()
    }

    /// Whether a file has to stay that has been read. It gets its own name back, if that is free, and its record stays.
    private func stays(
        _ id: FileID, _ records: [DoneRecord], _ claim: FileName, _ directory: SpoolDirectory, _ share: String
    ) -> Bool {
        guard sink.mustStay(id.bytes) else { return false }
        var name = claim
        if let original = claim.claimed, let raw = descriptor(of: directory) {
            do {
                try FileSystem.rename(raw, claim, to: original)
                name = original
            } catch {
                // Another file has the name, or nobody may rename it now: it stays under ours.
                log.info("file keeps the agent's name", ["path": directory.path(of: claim).text, "reason": "\(error)"])
            }
        }
        if drops.stay(id, as: name, in: directory, of: share) {
            log.warning(
                "file stays: the quarantine could not hold its bad lines",
                [
                    "path": directory.path(of: name).text,
                    "hint": "`spoolship quarantine retry --files` reads them again",
                ])
        }
        drops.stuck[id] = records
        drops.doneBefore[id] = nil
        return true
    }

    /// Where a file is that has to stay, relative to the spool; nil if there is none, empty until all was listed.
    public func path(ofFile key: [UInt8]) -> String? {
        guard listing.isFirstDone else { return "" }
        let id = FileID(bytes: key)
        return (streams.files[id]?.path ?? drops.staying[id].map { $0.directory.path(of: $0.name) })?.text
    }

    /// Removes what had to stay and has not any more.
    public func removeReleased() {
        for (id, place) in drops.staying where !sink.mustStay(id.bytes) {
            drops.release(id)
            guard let records = drops.stuck[id], let raw = descriptor(of: place.directory) else { continue }
            removeAgain(id, records, place.directory, place.name, raw, of: place.directory.app, place.share)
        }
        for line in drops.crowded.keys { listCrowded(line) }
        for file in streams.files.values { considerLater(file) }
        wake()
    }

    /// Somebody removed a file that had to stay: nothing is left to remember.
    func stayedUntilDeleted(_ id: FileID, in directory: SpoolDirectory) {
        guard let share = drops.release(id) else { return }
        for record in drops.stuck.removeValue(forKey: id) ?? [] { drops.removal.add(record, in: directory) }
        scheduleSync()
        listCrowded(share)
    }

    /// False: it is still there. Its record stays, so it is not read again.
    private func remove(
        _ record: DoneRecord, _ name: FileName, in directory: SpoolDirectory, _ raw: Int32, of app: String
    ) -> Bool {
        do {
            try putAway(name, in: directory, raw, of: app)
            counters.filesRemoved += 1
        } catch {
            let isLeft = error.number == ENOENT ? isThere(name, in: directory) : true
            if isLeft {
                note(error, "cannot remove file", directory.path(of: name))
                tryAgain(at: name, in: directory, error)
                return false
            }
        }
        drops.removal.add(record, in: directory)
        return true
    }

    /// A file that is in the queue, and still there: it was queued before the reader started, or could not be removed.
    func removeAgain(
        _ id: FileID, _ records: [DoneRecord], _ directory: SpoolDirectory, _ name: FileName, _ raw: Int32,
        of app: String, _ share: String
    ) {
        guard !stays(id, records, name, directory, share) else { return }
        drops.doneBefore[id] = nil
        guard let first = records.first, remove(first, name, in: directory, raw, of: app) else {
            drops.stuck[id] = records
            return
        }
        drops.stuck[id] = nil
        for record in records.dropFirst() { drops.removal.add(record, in: directory) }
        scheduleSync()
    }

    /// Every directory was listed once: what was not found is gone.
    func firstListingEnded() {
        missedSinceStart()
        if streams.remembered.release() { clinux_release_memory() }
        guard let root = tree.directories[FileName("")] else { return }
        for records in drops.doneBefore.values {
            for record in records {
                drops.removal.add(record, in: tree.directories[FileName(record.claim).parent] ?? root)
            }
        }
        drops.doneBefore.removeAll()
        scheduleSync()
    }

    private func scheduleSync() {
        guard !drops.removal.isScheduled, !drops.removal.waiting.isEmpty else { return }
        drops.removal.isScheduled = true
        schedule(after: options.syncInterval) { self.syncRemovals() }
    }

    /// Makes what was unlinked durable, a directory at a time, and has its records removed.
    func syncRemovals() {
        drops.removal.isScheduled = false
        guard let (path, entry) = drops.removal.waiting.first else { return }
        drops.removal.waiting[path] = nil
        if !entry.directory.isGone {
            do {
                let raw = try reach(entry.directory)
                // First where they came to: else a power cut could leave neither name.
                try tree.archive?.sync()
                try FileSystem.sync(raw)
            } catch  where !entry.directory.isGone {
                note(error, "cannot sync directory", path)
                drops.removal.waiting[path] = entry
                return tryAgain(.sync, FileName(""), error) { self.syncRemovals() }
            } catch {
                // It went just now.
            }
        }
        // A directory that is gone took its files with it.
        pass.unlinked.append(contentsOf: entry.records)
        if !drops.removal.waiting.isEmpty {
            drops.removal.isScheduled = true
            schedule(after: .zero) { self.syncRemovals() }
        }
        wake()
    }
}
