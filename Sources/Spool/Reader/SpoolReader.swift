internal import CLinux
public import EventLoops
internal import Glibc
public import Logs
public import Model
internal import Synchronization

/// Reads the spool: finds its files, hands their lines to a sink, commits, and removes files that are safely
/// queued.
///
/// The actor runs on an event loop and does one bounded piece of work at a time (`pump`, `step`); with
/// nothing to do it makes no system call. It does the I/O, and leaves decisions to its parts, which are
/// values.
///
/// Exactly-once hand-over: the lines of a file and the position up to which it was read go into the same
/// commit, and a file is removed only after the commit that covers all of it.
public actor SpoolReader: LoopActor {
    /// The loop that is the actor's executor.
    public nonisolated let loop: EventLoop
    let options: SpoolOptions
    let log: Log
    let time: any TimeSource
    let sink: any SpoolSink

    // MARK: Its parts

    var root: SpoolRoot
    var tree = Tree()
    let removal: Removal
    var watching = SpoolWatch()
    var openFiles: OpenFiles
    var appendFiles: AppendFiles
    var drops: DropTable
    var complaints = Complaints()
    var backlog = Backlog()
    /// The read buffer and the inotify instance that all readers on the loop share.
    let shared: LoopBound<SharedReading>
    /// Size of the read buffer: the bytes before the position that are compared, a block that is longer than
    /// any line, and one byte for the LF that a last line may lack.
    private let blockSize: Int
    let owners: Owners

    // MARK: Its work

    var turns = Turns()
    var agenda = Agenda()
    var handover: Handover
    var life = SpoolReaderLife()
    /// The figures as they were published last, for other threads.
    nonisolated let published = Mutex(SpoolFigures())

    /// A reader of a spool; it does nothing before `start`.
    ///
    /// - Parameters:
    ///   - options: what to read, and how.
    ///   - start: the state that the queue has stored of earlier reading.
    ///   - sink: takes the lines; runs on `loop` too.
    ///   - loop: the loop on which the reader runs.
    ///   - log: for messages to people.
    ///   - time: for time stamps and ages; timers are the loop's.
    ///   - random: for the names of claims.
    ///   - shared: resources that other readers on `loop` use too; nil for a single reader.
    ///   - findUser: looks up a user's name, or gives `uid-N`; may block. By default it asks the system
    ///     (NSS).
    /// - Throws: `noDirectory` if the spool cannot be opened, `noArchive` if the archive cannot.
    public init(
        _ options: SpoolOptions, start: SpoolStart = SpoolStart(), sink: sending any SpoolSink,
        on loop: EventLoop,
        log: Log, time: any TimeSource = SystemTime(),
        random: sending any RandomNumberGenerator = SystemRandomNumberGenerator(),
        sharing shared: LoopBound<SharedReading>? = nil, findUser: (@Sendable (UInt32) -> String)? = nil
    ) throws(SpoolError) {
        self.options = options
        handover = Handover(Handover.Limits(bytes: options.commitBytes, linger: options.linger))
        openFiles = OpenFiles(mostFiles: options.maxOpenFiles)
        let shared = shared ?? LoopBound(SharedReading(on: loop), to: loop)
        self.shared = shared
        blockSize = Fingerprint.longest + max(SpoolReader.sliceBytes, options.maxEventSize + 1) + 1
        self.sink = sink
        self.loop = loop
        self.log = log
        self.time = time
        owners = Owners(findUser)
        let own = options.ownCheckpoints(among: start.checkpoints)
        let streams = Streams(
            own, joinedTops: options.place?.joinedTops ?? [],
            settleTime: options.settleTime,
            most: options.afterRead == .keep ? 4 * options.mostAppendFiles : options.mostAppendFiles,
            time: time)
        appendFiles = AppendFiles(streams, options)
        drops = DropTable(
            DropTable.Limits(
                waiting: options.mostWaitingDrops, waitingInAll: options.mostDropsInAll,
                stuck: options.mostStayingDrops),
            done: options.place == nil ? start.done : [])
        tree.listing.sight = options.place.map {
            FirstSight($0, options.since, hasRead: !own.isEmpty, memory: start.memory)
        }
        // The directory of a place is looked for after the start (`follow`), because it may be missing.
        let opened = try SpoolReader.openRoot(options.place == nil ? options.directory : "/")
        if case .archive(let path, let retention, let mostBytes) = options.afterRead {
            let archive = try Archive(
                path, retention: retention, mostBytes: mostBytes, spool: opened, log: log)
            removal = Removal(archive, random)
        } else {
            removal = Removal(nil, random)
        }
        root = SpoolRoot(opened)
    }

    /// Opens the spool, and checks that openat2 works.
    static func openRoot(_ path: String) throws(SpoolError) -> Descriptor {
        do throws(SystemError) {
            let root = try FileSystem.openRoot(path)
            _ = try FileSystem.openDirectory(root.raw, FileName("."))
            return root
        } catch {
            // Without openat2 an agent would start, look healthy and read nothing, so the start fails.
            let message =
                switch error.number {
                case ENOSYS:
                    "openat2 is not available: it needs Linux 5.6, and no sandbox that forbids it (RestrictSUIDSGID= does)"
                case ENOENT, ENOTDIR: "cannot open the spool \(path): create it, or set spool.directory"
                default: "cannot open the spool \(path)"
                }
            throw SpoolError(.noDirectory, message, cause: error)
        }
    }

    /// The figures as they were published last. May be called on any thread.
    public nonisolated var figures: SpoolFigures { published.withLock { $0 } }

    /// Sets which lines are handed over together from now on: consecutive lines of text, or the lines of
    /// records with this beginning.
    public func join(text isJoined: Bool, records start: RecordStart?) {
        appendFiles.join(text: isJoined, records: start)
    }

    /// Begins a commit soon although nothing was read, because the sink has taken something from elsewhere.
    public func commitSoon() {
        handover.want()
        wake()
    }

    /// Begins to watch and to read. Has no effect after the first call.
    public func start() {
        guard life.start() else { return }
        // The kernel sends SIGIO when a writer breaks a file lease, which would kill the process. The reader
        // finds out by asking (`FileLease.isHeld`).
        signal(SIGIO, SIG_IGN)
        fitDescriptors()
        beginWatching()
        tree.listing.sight?.begin(at: time.wallTime)
        if let place = options.place {
            follow(place)
        } else {
            open(FileName(""), depth: 0)
        }
        wake()
    }

    /// Ends reading: lines that were taken are committed, and no further ones are taken. Returns when this is
    /// done.
    ///
    /// If a commit waits for room in the queue, the caller must make the sink's `commit` throw; otherwise
    /// `stop` waits as long.
    public func stop() async {
        await withCheckedContinuation { continuation in
            // Checked inside of the continuation, because other work of the actor may run before it.
            guard life.stop(continuation) else { return continuation.resume() }
            wake()
        }
    }

    // MARK: Work, a piece at a time

    /// Posts the next call of `pump` to the loop, unless one is posted already.
    func wake() {
        guard life.postPump() else { return }
        loop.post { self.assumeIsolated { $0.pump() } }
    }

    /// One turn of the reader: changes, errands, a slice of reading, and a commit if one is due.
    private func pump() {
        life.pumpBegins()
        switch life.phase {
        case .idle, .stopped: return
        case .stopping: return windUp()
        case .running: break
        }
        // Changes and errands come before reading, each for a few milliseconds only: an app that causes many
        // of them must not take all of the reader's time.
        hear()
        runErrands(within: SpoolReader.errandsTime)
        // The sink must close its part of the last commit before it takes new lines; `commit` wakes the
        // reader.
        guard !handover.isClosing else { return }
        guard !handover.isFull else { return waitForRoom() }
        var isQuiet = false
        let limit = handover.pass.bytes + SpoolReader.sliceBytes
        let end = now + SpoolReader.sliceTime
        // Pieces and time are limited too, because holes, empty archives and long directories bring no bytes.
        for _ in 0..<SpoolReader.pieces
        where !isQuiet && !handover.isDue && handover.pass.bytes < limit && now < end {
            isQuiet = !step()
        }
        switch handover.next(now, isQuiet: isQuiet) {
        case .work: wake()
        case .commit: beginCommit()
        case .quiet(let holdsLines): becomeQuiet(holdsLines: holdsLines)
        }
    }

    /// Two commits wait for room, so nothing is read. Directories are listed all the same: a file that
    /// rotation removes before it is known would be lost without a trace.
    private func waitForRoom() {
        // Changes were left to gather until the next commit, which now waits. Otherwise they would go unread
        // as long as a destination is down.
        if isRested {
            endRest()
        }
        let end = now + SpoolReader.sliceTime
        var hasMore = true
        for _ in 0..<SpoolReader.pieces where hasMore && now < end { hasMore = list() }
        publish()
        if hasMore {
            wake()
        }
    }

    /// Bytes read in a turn before timers and changes are handled.
    static let sliceBytes = 1 << 20
    /// Pieces of work in a turn; each reads at most a megabyte.
    private static let pieces = 16
    /// Time for the pieces of a turn; checked after each piece.
    static let sliceTime = Duration.milliseconds(20)
    /// Time for changes in a turn.
    static let changesTime = Duration.milliseconds(10)
    /// Time for errands in a turn.
    private static let errandsTime = Duration.milliseconds(5)
    /// Time without reading after which the read buffer is freed.
    static let bufferRest = Duration.seconds(1)

    /// Does a piece of work: a block of a file, some small files, or some names of a directory. False if no
    /// work is left.
    private func step() -> Bool {
        turns.beginPiece()
        // The common case: only append files have work.
        if tree.listing.isDone, drops.areAllRead { return readAppendFile() }
        let order = turns.order(names: tree.listing.least(turns.shares), drops: drops.least(turns.shares))
        for work in order {
            let isDone =
                switch work {
                case .names: list()
                case .lines: readAppendFile()
                case .drops: readDropFiles()
                }
            if isDone { return true }
        }
        return false
    }

    /// Whether the next drop file's app has used no more time than any app with other work.
    var isDropNext: Bool {
        turns.isDropNext(names: tree.listing.least(turns.shares), drops: drops.least(turns.shares))
    }

    /// No work is left: begins a commit that is due, lets changes gather while lines drip, and publishes the
    /// figures.
    ///
    /// - Parameter holdsLines: whether lines wait for the next commit, and no commit is under way.
    private func becomeQuiet(holdsLines: Bool) {
        if !holdsLines {
            // While a commit waits for room, new and removed files must still be noticed.
            if isRested {
                endRest()
            }
        } else {
            let isDue = handover.dripDue <= now
            // Lines that came during a rest are a drip, which probably continues: read changes once for each
            // commit.
            let isDrip = !isDue || isRested
            if isDue {
                beginCommit()
            }
            if isDrip {
                rest(until: handover.dripDue)
            }
        }
        if readBuffer.rest() {
            schedule(after: SpoolReader.bufferRest, .releaseBuffer)
        }
        endCount()
        publish()
    }

    private var readBuffer: ReadBuffer { shared.assumeOnLoop { $0.buffer } }

    /// The read buffer; its old content is undefined.
    func takeBuffer() -> UnsafeMutableRawBufferPointer { readBuffer.take(blockSize) }

    /// The read buffer, with room for the longest line of a file in another encoding.
    func takeBuffer(for decoder: FileDecoder?) -> UnsafeMutableRawBufferPointer {
        guard let decoder else { return takeBuffer() }
        let longest = Fingerprint.longest + decoder.room(forLineOf: options.maxEventSize)
        return readBuffer.take(max(blockSize, longest))
    }

    /// Frees the read buffer if it was not used lately, or asks again later.
    func releaseBuffer() {
        if readBuffer.releaseIfUnused() {
            schedule(after: SpoolReader.bufferRest, .releaseBuffer)
        }
    }

    /// The turn of a reader that stops: commits what was taken, waits for all commits, then frees everything
    /// and resumes the callers of `stop`.
    private func windUp() {
        guard !handover.isClosing, !handover.isFull else { return }
        if !handover.isEmpty { return beginCommit() }
        guard let waiters = life.end() else { return }
        endWatching()
        if let alarm = life.takeAlarm() {
            loop.cancel(alarm)
        }
        agenda = Agenda()
        for file in openFiles.takeAll() { file.descriptor = nil }
        readBuffer.release()
        publish()
        for waiter in waiters { waiter.resume() }
    }

    // MARK: Figures

    /// Copies the figures of all parts for other threads.
    func publish() {
        if root.identity == nil, tree.top != nil, let status = try? FileSystem.status(root.descriptor) {
            root.identity = SpoolFigures.Root(
                path: options.directory, device: status.device, inode: status.inode)
        }
        var figures = self.figures
        figures.root = root.identity
        figures.directories = tree.count
        figures.polledDirectories = watching.polled.count
        figures.pollReason = watching.pollReason
        figures.overflows = watching.overflows
        figures.crowdedDirectories = tree.listing.crowdedCount
        figures.secondTries = agenda.obstacles
        figures.secondTryPaths = agenda.obstructed.map { wholePath($0) }
        figures.isHeldBack = isHeldBack
        countFiles(in: &figures)
        countUnread(in: &figures)
        showComplaints(in: &figures)
        published.withLock { [figures] in $0 = figures }
    }

    /// A path in the spool as a person finds it.
    func wholePath(_ path: FileName) -> String {
        path.bytes.isEmpty ? options.directory : "\(options.directory)/\(path.text)"
    }

    private func countFiles(in figures: inout SpoolFigures) {
        figures.appendFiles = streams.files.count
        figures.appendFilesRead = appendFiles.counts.read
        figures.rotations = appendFiles.counts.rotations
        figures.truncations = appendFiles.counts.truncations
        figures.unclosedLines = appendFiles.counts.unclosedLines
        figures.bytesGivenUp = appendFiles.counts.bytesGivenUp
        figures.zeroBytes = appendFiles.counts.zeroBytes
        figures.openFiles = openFiles.count
        figures.loweredOpenFiles = openFiles.lowered
        figures.leaseWaits = openFiles.leaseWaits
        figures.dropFilesRead = drops.countRead
        figures.filesRemoved = removal.count
        figures.bytesRead = handover.counts.bytes
        figures.commits = handover.counts.commits
        figures.linesTooLong = handover.counts.tooLong
    }

    /// Some of the complaints; a list that has not changed is left as it was published last.
    private func showComplaints(in figures: inout SpoolFigures) {
        figures.refused = complaints.refused
        figures.errors = complaints.errors
        if let (shown, count) = complaints.takeUnresolved(atMost: 16) {
            figures.complaints = shown
            for index in shown.indices {
                figures.complaints[index].ownerName = shownName(of: shown[index].owner)
            }
            figures.inaccessible = count
        }
        if let (shown, count) = complaints.takeRefusals(atMost: 8) {
            figures.refusedNames = shown.map { "\(options.shown($0.path)) (\($0.reason.rawValue))" }
            figures.refusedFiles = count
        }
        if let (shown, count) = complaints.takePassedOver(atMost: 8) {
            figures.passedOverNames = shown.map(\.text)
            figures.passedOver = count
        }
    }

    /// Counts and logs an error after which reading continues.
    func note(_ error: SystemError, _ text: StaticString, _ path: FileName) {
        complaints.failed()
        log.warning(text, ["path": path.text, "error": error.description])
    }
}
