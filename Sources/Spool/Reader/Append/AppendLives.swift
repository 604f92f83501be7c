internal import EventLoops
internal import Glibc
internal import Logs
internal import Model

/// The append files that are known: what was seen of each, and when it is read or looked at next.
///
/// `AppendFiles` decides what becomes of a file, `Streams` which content it holds. `AppendLives` notes what
/// the kernel reports, lines files up, and plans their checks; it opens and removes nothing.
final class AppendLives {
    private let context: SpoolContext
    private let schedule: Schedule
    private let reports: Reports
    private let outlet: Outlet
    private let watching: SpoolWatch
    private let turns: Turns
    let appendFiles: AppendFiles
    /// Files that were truncated or removed before they were read, those that were noticed last.
    private(set) var lostFiles: [SpoolFigures.LostFile] = []

    init(
        _ appendFiles: AppendFiles, _ context: SpoolContext, _ schedule: Schedule, _ reports: Reports,
        _ outlet: Outlet, _ watching: SpoolWatch, _ turns: Turns
    ) {
        self.appendFiles = appendFiles
        self.context = context
        self.schedule = schedule
        self.reports = reports
        self.outlet = outlet
        self.watching = watching
        self.turns = turns
    }

    /// Which content each file holds.
    var streams: Streams {
        get { appendFiles.streams }
        _modify { yield &appendFiles.streams }
    }

    /// A file has another name, or another file has its name: it is being rotated.
    func moved(_ file: AppendFile, to directory: SpoolDirectory, _ name: FileName) {
        if let other = directory.files[name], other !== file {
            displaced(other)
        }
        let isOwn = context.options.kind(of: name.claimed ?? name, in: directory) == .append
        let isNew = !file.hasName || file.name != name || file.directory !== directory
        let isOther = context.options.kind(of: name, in: directory) != .append
        let isRotated = context.options.isRotated(name)
        watching.endWatch(of: file)
        streams.move(file, to: directory, name, isRotated: isNew && (isOther || isRotated), isOwn: isOwn)
        makeReady(file)
    }

    /// A file no longer has its name: it was removed, renamed to an unknown name, or replaced by another
    /// file.
    func displaced(_ file: AppendFile) {
        guard appendFiles.displace(file) else { return }
        watching.watchNameless(file)
        makeReady(file)
        considerLater(file)
    }

    /// Applies the status of a file, which may have changed.
    func update(_ file: AppendFile, _ status: FileStatus) {
        if appendFiles.saw(file, length: status.size, modified: status.modified) {
            makeReady(file)
        }
    }

    /// The content of a file has changed.
    func changed(_ file: AppendFile) {
        appendFiles.changed(file, at: schedule.now)
        makeReady(file)
    }

    /// A writer has closed a file; other writers may still have it open.
    func closed(_ file: AppendFile) {
        if appendFiles.closed(file, at: schedule.now) {
            makeReady(file)
        }
        considerLater(file)
    }

    /// inotify reports changes of a nameless file under the name that the file had.
    func changedNameless(in directory: SpoolDirectory, _ name: FileName) {
        for file in nameless(in: directory, name) { changed(file) }
    }

    /// The files without a name that had this one last.
    func nameless(in directory: SpoolDirectory, _ name: FileName) -> [AppendFile] {
        guard !streams.nameless.isEmpty else { return [] }
        return streams.nameless.values.filter { $0.directory === directory && $0.name == name }
    }

    /// Queues a file to be read, unless it is queued already.
    func makeReady(_ file: AppendFile) {
        guard appendFiles.makeReady(file, at: schedule.now, context.time.wallTime) else { return }
        lineUp(file)
        // While reading is held back, the file is opened soon, so that its lines are not lost if it is
        // deleted.
        if outlet.isWaiting, file.descriptor == nil, file.hasName {
            schedule.plan(at: schedule.now, .hold(file.id))
        }
        schedule.wake()
    }

    /// Queues a file to be read at its app's turn.
    func lineUp(_ file: AppendFile) { turns.lineUp(file, of: reports.share(of: file)) }

    // MARK: How a file goes

    /// Plans the next look at a file that was read to its end: it may be sealed, removed or forgotten later.
    func considerLater(_ file: AppendFile) {
        if case .check(let due) = appendFiles.consider(file, situation(of: file), at: schedule.now) {
            schedule.plan(at: due, .check(file.id))
        }
    }

    func situation(of file: AppendFile) -> AppendFiles.Situation {
        AppendFiles.Situation(
            mustStay: context.options.afterRead != .keep && !file.isUnsealed
                && outlet.sink.mustStay(file.id.bytes),
            isReported: watching.isReported(file))
    }

    /// Counts and logs bytes that were given up, and plans the next call of `giveUpUncopied`.
    func tellCutOffs() {
        for cut in appendFiles.takeGivenUp() {
            lost(
                cut.path, from: cut.begin, bytes: cut.end - cut.begin,
                cut.gone == nil ? .truncated : cut.wasStopped ? .removedWhileStopped : .removed)
        }
        if let due = streams.cutOffs.plan(schedule.now) {
            schedule.plan(at: due, .giveUpUncopied)
        }
    }

    /// Logs bytes that disappeared before they were read, or may have, and keeps them for `status`.
    ///
    /// - Parameter bytes: their number; of an archive that is not read, its size.
    func lost(
        _ path: FileName, from offset: Int64 = 0, bytes: Int64, _ way: SpoolFigures.LostFile.Way
    ) {
        let message: StaticString =
            switch way {
            case .truncated: "file was truncated before it was read"
            case .removed: "file vanished before it was read"
            case .removedWhileStopped: "file vanished while the agent was stopped, before it was read"
            case .packedWhileStopped: "archive may hold unread lines: compressed while the agent was stopped"
            }
        context.log.error(message, ["path": path.text, "offset": offset, "bytes": bytes])
        let lost = SpoolFigures.LostFile(
            path: context.wholePath(path), bytes: bytes, at: context.time.wallTime, way: way)
        lostFiles = lostFiles.suffix(SpoolFigures.LostFile.most - 1) + [lost]
    }

    /// Gives up bytes of which no copy was found in time.
    func giveUpUncopied() {
        let suspected = streams.suspected
        streams.cutOffs.giveUpOld(schedule.now, isHeldBack: outlet.isHeldBack, suspected: suspected)
        tellCutOffs()
    }
}
