internal import EventLoops
internal import Glibc
internal import Logs
internal import Model

/// Removes drop files whose commits are durable, unless they have to stay, and makes the removals durable.
final class DropRemoval {
    private let context: SpoolContext
    private let schedule: Schedule
    private let reports: Reports
    private let outlet: Outlet
    private let opener: Opener
    private let claims: Claims
    private let lister: Lister
    private let removal: Removal
    private let tree: Tree
    private let drops: DropTable

    init(
        _ context: SpoolContext, _ schedule: Schedule, _ reports: Reports, _ outlet: Outlet, _ opener: Opener,
        _ claims: Claims, _ lister: Lister, _ removal: Removal, _ tree: Tree, _ drops: DropTable
    ) {
        self.context = context
        self.schedule = schedule
        self.reports = reports
        self.outlet = outlet
        self.opener = opener
        self.claims = claims
        self.lister = lister
        self.removal = removal
        self.tree = tree
        self.drops = drops
    }

    /// Removes drop files whose commit is durable. Files that cannot be removed become stuck, and their done
    /// records stay.
    func remove(_ files: [ClaimedFile]) {
        for file in files {
            // If the directory is gone, the file stays stuck: both may come back under another name.
            guard let raw = opener.descriptor(of: file.directory),
                !stays(file.id, [file.record], file.claim, file.directory, file.share),
                remove(file.record, file.claim, in: file.directory, raw, of: file.app)
            else {
                // `stays` has made the file stuck already, under its own name.
                if !drops.isStuck(file.id) {
                    drops.stick(
                        file.id,
                        StuckFile(
                            records: [file.record], directory: file.directory, name: file.claim,
                            share: file.share))
                }
                continue
            }
            drops.wasRemoved(file.id)
        }
        scheduleSync()
        schedule.wake()
    }

    /// Whether a file that was read has to stay, because the quarantine could not hold its bad lines. Such a
    /// file gets its own name back, if that is free, and keeps its record.
    private func stays(
        _ id: FileID, _ records: [DoneRecord], _ claim: FileName, _ directory: SpoolDirectory, _ share: String
    ) -> Bool {
        guard outlet.sink.mustStay(id.bytes) else { return false }
        var name = claim
        if let original = claim.claimed, let raw = opener.descriptor(of: directory) {
            do {
                try FileSystem.rename(raw, claim, to: original)
                name = original
            } catch {
                // The name is taken, or renaming is not possible now: the file keeps the name of the claim.
                context.log.info(
                    "file could not get its own name back",
                    ["path": directory.path(of: claim).text, "reason": "\(error)"])
            }
        }
        if drops.stick(id, StuckFile(records: records, directory: directory, name: name, share: share)) {
            context.log.warning(
                "file stays: the quarantine could not hold its bad lines",
                [
                    "path": directory.path(of: name).text,
                    "hint": "`spoolship quarantine retry --files` reads them again",
                ])
        }
        return true
    }

    /// Removes files that no longer have to stay.
    func removeReleased() {
        for (id, file) in drops.allStuck where !outlet.sink.mustStay(id.bytes) {
            guard let raw = opener.descriptor(of: file.directory) else { continue }
            removeAgain(id, file.records, file.directory, file.name, raw, of: file.directory.app, file.share)
        }
        for line in drops.crowdedLines { listCrowded(line) }
    }

    /// A stuck file was deleted by another process: its records are deleted once the directory is synced.
    func stuckUntilDeleted(_ id: FileID, in directory: SpoolDirectory) {
        guard let file = drops.wasRemoved(id) else { return }
        for record in file.records { drops.unsynced.add(record, in: directory) }
        scheduleSync()
        listCrowded(file.share)
    }

    /// Removes a file. False if it still exists; its record stays, so that it is not read again.
    private func remove(
        _ record: DoneRecord, _ name: FileName, in directory: SpoolDirectory, _ raw: Int32, of app: String
    ) -> Bool {
        do {
            try claims.putAway(name, raw, of: app)
        } catch {
            let isLeft = error.number == ENOENT ? opener.isThere(name, in: directory) : true
            if isLeft {
                reports.note(error, "cannot remove file", directory.path(of: name))
                schedule.tryAgain(at: name, in: directory, error)
                return false
            }
        }
        drops.unsynced.add(record, in: directory)
        return true
    }

    /// Removes a file that is in the queue and still exists, because it was queued before the reader started
    /// or could not be removed.
    func removeAgain(
        _ id: FileID, _ records: [DoneRecord], _ directory: SpoolDirectory, _ name: FileName, _ raw: Int32,
        of app: String, _ share: String
    ) {
        guard !stays(id, records, name, directory, share) else { return }
        guard let first = records.first, remove(first, name, in: directory, raw, of: app) else {
            drops.stick(id, StuckFile(records: records, directory: directory, name: name, share: share))
            return
        }
        if drops.wasRemoved(id) != nil {
            listCrowded(share)
        }
        for record in records.dropFirst() { drops.unsynced.add(record, in: directory) }
        scheduleSync()
    }

    /// Every directory was listed once: done records whose files were not found are of files that are gone.
    func firstListingEnded() {
        guard let top = tree.top else { return }
        for record in drops.takeDoneBefore() {
            drops.unsynced.add(record, in: tree[FileName(record.claim).parent] ?? top)
        }
        scheduleSync()
    }

    /// Plans a sync of directories with removed files, so that many removals share one sync.
    private func scheduleSync() {
        if drops.unsynced.planSync() {
            schedule.plan(after: context.options.syncInterval, .syncRemovals)
        }
    }

    /// Makes removals durable, one directory at a time, and has their records deleted.
    func syncRemovals() {
        guard let (directory, records) = drops.unsynced.takeNext() else { return }
        if !directory.isGone {
            do {
                let raw = try opener.reach(directory)
                try removal.sync()
                try FileSystem.sync(raw)
            } catch  where error.number != ENOENT || error.call != "openat2" {
                reports.note(error, "cannot sync directory", directory.path)
                drops.unsynced.putBack(records, of: directory)
                return schedule.tryAgain(.sync, FileName(""), error, .syncRemovals)
            } catch {
                // The directory was removed just now, so there is nothing to sync.
            }
        }
        // If the directory is gone, its files are gone too.
        outlet.pass.unlinked.append(contentsOf: records)
        if drops.unsynced.planSync() {
            schedule.plan(after: .zero, .syncRemovals)
        }
        schedule.wake()
    }

    /// Lists the crowded directories of an app or owner again, if few of its files wait or stay.
    func listCrowded(_ line: String) {
        for directory in drops.takeCrowded(line) {
            reports.resolve(DropRemoval.crowdOfDrops(of: line, in: directory))
            if !directory.isGone {
                lister.scan(directory)
            }
        }
    }

    /// The path under which it is reported that drop files of an app or owner wait for others that stay.
    static func crowdOfDrops(of line: String, in directory: SpoolDirectory) -> FileName {
        FileName("\(directory.path.text)/*.json\(directory.isIncoming ? ", \(line)" : "")")
    }
}
