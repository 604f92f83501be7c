internal import CLinux
internal import EventLoops
internal import Glibc
internal import Logs
internal import Model

/// Counts what waits while reading waits: takes a census of drop files, and looks at the sizes of append
/// files, as `Backlog` plans them.
final class Census {
    private let context: SpoolContext
    private let schedule: Schedule
    private let outlet: Outlet
    private let lives: AppendLives
    private let opener: Opener
    private let departures: Departures
    private let tree: Tree
    private let drops: DropTable
    private var backlog = Backlog()

    init(
        _ context: SpoolContext, _ schedule: Schedule, _ outlet: Outlet, _ lives: AppendLives,
        _ opener: Opener, _ departures: Departures, _ tree: Tree, _ drops: DropTable
    ) {
        self.context = context
        self.schedule = schedule
        self.outlet = outlet
        self.lives = lives
        self.opener = opener
        self.departures = departures
        self.tree = tree
        self.drops = drops
    }

    /// Plans a census and a look, in case the commit that has begun, or a parked file, waits for long.
    func plan() {
        if backlog.planCensus() {
            schedule.plan(after: Backlog.censusInterval, .takeCensus)
        }
        if backlog.planLook() {
            schedule.plan(after: context.options.lookInterval, .lookAtSizes)
        }
    }

    /// Asks waiting files for their lengths, a slice at a time, and opens them as far as descriptors suffice,
    /// so that deleted ones are not lost.
    func lookAtSizes() {
        guard outlet.isWaiting else {
            // A commit that began after the look was planned may still wait for hours.
            if outlet.handover.underWay > 0 {
                return schedule.plan(after: context.options.lookInterval, .lookAtSizes)
            }
            return backlog.endLook()
        }
        for file in backlog.filesToAsk(Array(lives.streams.unread.keys), schedule.now) {
            seeLength(of: file)
        }
        switch backlog.endLookSlice(schedule.now, interval: context.options.lookInterval) {
        case .goOn: schedule.plan(after: .zero, .lookAtSizes)
        case .done(let wait):
            departures.shedNameless()
            schedule.plan(at: schedule.now, .publish)
            schedule.plan(after: wait, .lookAtSizes)
        }
    }

    /// Updates the length of a file from its status.
    private func seeLength(of file: AppendFile) {
        // A file that is not ready was read to its end; a change would make it ready.
        guard lives.streams.files[file.id] === file, file.isReady else { return }
        opener.hold(file)
        if let raw = file.descriptor?.raw {
            if let status = try? FileStatus(of: raw) {
                file.see(length: status.size)
            }
        } else if !file.hasName {
            departures.letGoUnread(file)
        } else if let raw = opener.descriptor(of: file.directory),
            let looked = try? opener.openName(file.name, in: file.directory, raw),
            let status = try? FileSystem.status(looked),
            (try? FileID(looked, status)) == file.id
        {
            file.see(length: status.size)
        }
    }

    /// Does a slice of the census, or ends it once reading continues.
    func takeCensus() {
        guard outlet.isHeldBack else {
            if outlet.handover.underWay > 0 {
                return schedule.plan(after: Backlog.censusInterval, .takeCensus)
            }
            backlog.endCensus()
            if backlog.releasesMemory(schedule.now, read: outlet.handover.counts.bytes) {
                clinux_release_memory()
            }
            return schedule.plan(at: schedule.now, .publish)
        }
        backlog.beginCensus(Array(tree.all), schedule.now)
        var isWhole = false
        for _ in 0..<Backlog.slice where !isWhole { isWhole = !countNext() }
        switch backlog.endSlice(isWhole: isWhole, schedule.now) {
        case .goOn: schedule.plan(after: .zero, .takeCensus)
        case .done(let wait):
            schedule.plan(at: schedule.now, .publish)
            schedule.plan(after: wait, .takeCensus)
        }
    }

    /// Counts a name, or opens the next directory. False if all were listed.
    private func countNext() -> Bool {
        guard let (directory, stream) = backlog.listed else {
            guard let directory = backlog.nextDirectory() else { return false }
            // A directory that cannot be listed is skipped; reading reports it.
            guard let raw = opener.descriptor(of: directory),
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
        let kind = context.options.kind(of: entry.name, in: directory)
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
                    lives.makeReady(file)
                }
                file.see(length: status.size)
            }
        } else if !isReadAndKept(entry.name, status, in: directory, stream.descriptor) {
            // By st_ctim, because the owner can set st_mtim to any value.
            backlog.counted(size: status.size, changed: status.changed, context.time.wallTime)
        }
        return true
    }

    /// Whether a drop file was read to the end and stays: by `after_read = "keep"`, or because of its bad
    /// lines.
    private func isReadAndKept(
        _ name: FileName, _ status: FileStatus, in directory: SpoolDirectory, _ raw: Int32
    ) -> Bool {
        if drops.stuck(at: directory.path(of: name)) != nil { return true }
        guard context.options.afterRead == .keep, let looked = try? FileSystem.openPath(raw, name),
            let id = try? FileID(looked, status)
        else { return false }
        return lives.streams.remembered.isDone(id, status)
    }

    /// A drop file was read.
    func wasRead(size: Int64) { backlog.read(size: size) }

    /// Nothing is left to read: resets the census.
    func endCount() {
        guard backlog.drops != Backlog.Drops(), !outlet.isHeldBack else { return }
        backlog.forget()
    }

    /// Counts the backlog for the figures: bytes that wait, and since when.
    func countUnread(in figures: inout SpoolFigures) {
        var bytes = backlog.drops.bytes
        var oldest = backlog.drops.oldest
        var unfinished: [(since: Timestamp, file: AppendFile)] = []
        for (file, since) in lives.streams.unread {
            bytes += ByteCount(file.unread)
            oldest = min(oldest ?? since, since)
            if file.endsInLine {
                unfinished.append((since, file))
            }
        }
        figures.unfinishedLines = unfinished.sorted { $0.since < $1.since }
            .prefix(SpoolFigures.UnfinishedLine.most).map { since, file in
                SpoolFigures.UnfinishedLine(
                    app: file.directory.app, path: context.wholePath(file.directory.path(of: file.name)),
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
