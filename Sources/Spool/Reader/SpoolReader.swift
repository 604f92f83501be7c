internal import CLinux
public import EventLoops
internal import Glibc
public import Logs
internal import Model
internal import Synchronization

/// Reads the spool: finds its files, hands their lines to a sink, commits, and removes what is safely queued.
///
/// It lives on an event loop and does a bounded piece of work at a time. With nothing to do it makes no system call.
/// Exactly-once hand-over (invariant 1): a file's lines, and how far it was read, go into the same commit; a file is
/// removed only after the commit that covers all of it.
public actor SpoolReader {
    /// Where the reader lives.
    nonisolated let loop: EventLoop
    /// The loop, as the compiler checks it.
    public nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

    let options: SpoolOptions
    let log: Log
    let time: any TimeSource
    let sink: any SpoolSink
    var random: any RandomNumberGenerator

    // MARK: The tree

    var root: Descriptor
    var archive: Archive?
    var inotify: Descriptor?
    var directories: [FileName: SpoolDirectory] = [:]
    var watches: [Int32: SpoolDirectory] = [:]
    var polled: [SpoolDirectory] = []
    var pollReason: String?
    var openDirectories: [SpoolDirectory] = []
    /// How many directories and files are held open at most.
    var mostOpenDirectories = SpoolReader.mostOpenDirectories
    var mostOpenFiles: Int
    var isShortOfDescriptors = false
    static let mostOpenDirectories = 64
    var listing = Listing()

    // MARK: Files

    /// Whose turn it is, whatever the work.
    var shares = Shares()
    var files = FileTable<ByID>()
    var ready = FairQueue<AppendFile>()
    var drops = FairQueue<PendingDrop>()
    /// Drop boxes where owners have more files than may wait; listed again when few of an owner's are left.
    var crowded: [String: [FileName: SpoolDirectory]] = [:]
    var reading: DropReading?
    /// Whether the next drop file is one that was set aside.
    var isAsideNext = false
    /// Drop files that ended too early and are tried once more.
    var cutDrops: [FileID: DropReading] = [:]
    /// Drop files that wait for the sink's word, and those that have it.
    var parkedDrops: [FileID: DropReading] = [:]
    /// Drop files that are read in part and go on when it is their turn.
    var asides = FairQueue<DropReading>()
    /// Drop files under names of ours: those that are being read, and those that wait for their commit or removal.
    var inHand: Set<FileID> = []
    /// Drop files that are in the queue and could not be removed: tried again when they are found again.
    var stuck: [FileID: [DoneRecord]] = [:]
    /// Append files that lost their name and are not read to the end.
    var nameless = FileTable<ByID>()
    /// Files renamed in the watch's last events, by the kernel's cookie.
    var moved: [UInt32: AppendFile] = [:]
    /// Renames, in the watch's last events, of append files that had gone before they were looked at; and whether their old
    /// name was one that rotation gives.
    var movedUnseen: [UInt32: Bool] = [:]
    /// Checkpoints of files that have not been seen since the start.
    var kept: [FileID: Checkpoint]
    /// Inode numbers in `kept`, to find files under names that say nothing; only during the first listing.
    var keptInodes: Set<UInt64> = []
    /// Of `kept`, drop files that stay and were found; only during the first listing.
    var keptSeen: Set<FileID> = []
    /// Of `kept`, files that are gone, in the order in which they were missed.
    var missing = Queue<FileID>()
    /// Of `kept`, files that were missed together with their directories: when those come back, so do they.
    var away = Queue<FileID>()
    /// Drop files that are in the queue and whose removal was not durable when the reader started.
    var doneBefore: [FileID: [DoneRecord]] = [:]
    var openFiles: [AppendFile] = []
    /// Append files with bytes that are not in the queue.
    var unread = FileTable<ByID>()
    var uses: UInt64 = 0
    var lastClaim: UInt64
    var owners: [UInt32: String] = [:]
    var complaints: [FileName: SpoolComplaint] = [:]
    var refusals: Set<FileName> = []
    var passedOver = PassedOver()
    /// What was truncated before it was read, and is looked for in copies.
    var cutOffs: [CutOff] = []
    /// What could not be done, and is done again later.
    var secondTries = SecondTries()

    // MARK: The pass

    var pass = Pass()
    var removal = Removal()
    var commitsUnderWay = 0
    /// The pass that the sink has not closed its part of; nothing is taken meanwhile.
    var closing: ClosedPass?
    var sinkWantsCommit = false
    /// Whether the file that was read last waits for the sink's word.
    var isParked = false
    var lastCommit: BootInstant
    var buffer: UnsafeMutableRawBufferPointer?
    var isBufferUsed = false
    var bufferTimer: EventLoop.TimerID?
    var turn: UInt64 = 0

    // MARK: Life

    enum Phase { case idle, running, stopping, stopped }
    var phase = Phase.idle
    var isPumpPosted = false
    var tasks = 0
    var agenda = Agenda<Errand>()
    var alarm: (deadline: BootInstant, timer: EventLoop.TimerID)?
    var census: Census?
    var isCensusPlanned = false
    var rootChecksLeft = 0
    var waitingDrops = 0
    var waitingDropBytes: ByteCount = 0
    var oldestDrop: Timestamp?
    var stopWaiters: [CheckedContinuation<Void, Never>] = []
    var counters = SpoolFigures()
    nonisolated let published = Mutex(SpoolFigures())

    /// A reader of a spool; it does nothing before `start`.
    ///
    /// - Parameters:
    ///   - options: what to read, and how.
    ///   - start: what the queue has kept of earlier reading.
    ///   - sink: takes the lines; lives on `loop` as well.
    ///   - loop: where to live.
    ///   - log: for what a person should know.
    ///   - time: for time stamps and ages; waits are the loop's.
    ///   - random: for the names of claims.
    /// - Throws: `noDirectory` if the spool cannot be opened, `noArchive` if the archive cannot.
    public init(
        _ options: SpoolOptions, start: SpoolStart = SpoolStart(), sink: sending any SpoolSink, on loop: EventLoop,
        log: Log, time: any TimeSource = SystemTime(),
        random: sending any RandomNumberGenerator = SystemRandomNumberGenerator()
    ) throws(SpoolError) {
        self.options = options
        mostOpenFiles = options.maxOpenFiles
        self.sink = sink
        self.loop = loop
        self.log = log
        self.time = time
        self.random = random
        lastClaim = self.random.next()
        kept = Dictionary(start.checkpoints.map { (FileID(bytes: $0.key), $0) }) { _, last in last }
        keptInodes = Set(kept.values.compactMap { FileTrace($0.state)?.inode })
        for record in start.done { doneBefore[FileID(bytes: record.handle), default: []].append(record) }
        lastCommit = BootInstant(nanoseconds: 0)
        root = try SpoolReader.openRoot(options.directory)
        if case .archive(let path, let retention, let mostBytes) = options.afterRead {
            archive = try Archive(path, retention: retention, mostBytes: mostBytes, spool: root, log: log)
        }
    }

    static func openRoot(_ path: String) throws(SpoolError) -> Descriptor {
        do throws(SystemError) {
            let root = try FileSystem.openRoot(path)
            _ = try FileSystem.openDirectory(root.raw, FileName("."))
            return root
        } catch {
            // A start that went on without it would look well and read nothing.
            let message =
                error.number == ENOSYS
                ? "openat2 is not to be had: it needs Linux 5.6, and no sandbox that forbids it (RestrictSUIDSGID= does)"
                : "cannot open the spool \(path): make it, or set spool.directory"
            throw SpoolError(.noDirectory, message, cause: error)
        }
    }

    /// The figures, as they were published last. From any thread.
    public nonisolated var figures: SpoolFigures { published.withLock { $0 } }

    /// Lets the caller reach the sink, on the reader's loop.
    public func withSink<Value: Sendable>(_ body: @Sendable (any SpoolSink) throws -> Value) rethrows -> Value {
        try body(sink)
    }

    /// Has what the sink holds committed soon, although nothing was read: it took something from elsewhere.
    public func commitSoon() {
        sinkWantsCommit = true
        wake()
    }

    /// Begins to watch and to read.
    public func start() {
        guard phase == .idle else { return }
        phase = .running
        // A writer who breaks one of our file leases is noticed by asking; the signal that comes too would kill us.
        signal(SIGIO, SIG_IGN)
        fitDescriptors()
        beginWatching()
        open(FileName(""), depth: 0)
        wake()
    }

    /// Ends reading at a commit: what was taken is committed, nothing new is taken. Returns when that is done.
    ///
    /// Whoever waits in the sink's `commit` for room must make it throw, or this waits as long.
    public func stop() async {
        await withCheckedContinuation { continuation in
            // In here, because other work may come before it.
            guard phase == .running || phase == .stopping else {
                if phase == .idle { phase = .stopped }
                return continuation.resume()
            }
            phase = .stopping
            stopWaiters.append(continuation)
            wake()
        }
    }

    // MARK: Work, a piece at a time

    /// Has the next piece of work done as soon as the loop comes to it.
    func wake() {
        guard !isPumpPosted, phase == .running || phase == .stopping else { return }
        isPumpPosted = true
        loop.post { self.assumeIsolated { $0.pump() } }
    }

    private func pump() {
        isPumpPosted = false
        switch phase {
        case .idle, .stopped: return
        case .stopping: return windUp()
        case .running: break
        }
        // Both come before the apps' work, and in small parts: whoever makes many of them must not have all of the time.
        readChanges(within: SpoolReader.changesTime)
        runErrands(within: SpoolReader.errandsTime)
        // The sink must have closed the commit before anything new is taken; `run` wakes us.
        guard closing == nil else { return }
        guard commitsUnderWay < 2 else { return publish() }
        var isQuiet = false
        let limit = pass.bytes + SpoolReader.sliceBytes
        let end = now + SpoolReader.sliceTime
        // Pieces are counted too: not all bring bytes. Holes, archives that hold nothing and long directories do not.
        for _ in 0..<SpoolReader.pieces where !isQuiet && !isCommitDue && pass.bytes < limit && now < end {
            isQuiet = !step()
        }
        if isCommitDue || isCommitLate {
            beginCommit()
        } else if isQuiet {
            becomeQuiet()
        } else {
            wake()
        }
    }

    /// Whether what was taken has waited long enough for more: reading may go on for hours without bringing any.
    private var isCommitLate: Bool {
        commitsUnderWay == 0 && !pass.isEmpty && now - lastCommit >= SpoolReader.longestWait
    }

    private static let longestWait = Duration.milliseconds(100)

    /// How many bytes are read before timers and changes get their turn.
    static let sliceBytes = 1 << 20
    /// How many pieces of work are done before that: each reads a megabyte at most.
    private static let pieces = 16
    /// How long work is done before that, at the end of a piece.
    static let sliceTime = Duration.milliseconds(20)
    private static let changesTime = Duration.milliseconds(10)
    private static let errandsTime = Duration.milliseconds(5)

    private enum Work: CaseIterable { case names, lines, drops }

    /// A piece of work: a block of a file, some small files, some names of a directory. False: there is none.
    ///
    /// Whoever has had the least time goes first, whatever the work; the kinds take turns where that is equal. So whoever
    /// has endless work, or work that takes long, holds up nobody for more than a piece.
    private func step() -> Bool {
        turn &+= 1
        var kinds = Work.allCases.indices.map { index in
            let kind = Work.allCases[(index + Int(turn % 3)) % Work.allCases.count]
            return (kind: kind, spent: least(kind))
        }
        while let first = kinds.indices.min(by: { kinds[$0].spent < kinds[$1].spent }) {
            switch kinds.remove(at: first).kind {
            case .names: if list() { return true }
            case .lines: if readAppendFile() { return true }
            case .drops: if readDropFiles() { return true }
            }
        }
        return false
    }

    /// Whether nobody who has had less time waits for other work than a drop file.
    var isDropNext: Bool { least(.drops) <= min(least(.names), least(.lines)) }

    /// What the app has used that comes next in a kind of work.
    private func least(_ kind: Work) -> Int64 {
        switch kind {
        case .names: listing.waiting.least(shares) ?? .max
        case .lines: ready.least(shares) ?? .max
        case .drops:
            reading.map { shares.spent(by: $0.source.app) }
                ?? min(drops.least(shares) ?? .max, asides.least(shares) ?? .max)
        }
    }

    /// Does an app's work, which pays for it with its share.
    func spend<Result>(of app: String, _ work: () -> Result) -> Result {
        shares.begin(app)
        let start = now
        defer { shares.charge(app, now - start) }
        return work()
    }

    private func becomeQuiet() {
        if !pass.isEmpty, commitsUnderWay == 0 {
            let next = lastCommit + options.linger
            if next <= now { beginCommit() } else { remember(.commit, at: next) }
        }
        releaseBufferLater()
        endCount()
        publish()
    }

    private func windUp() {
        guard closing == nil, commitsUnderWay < 2 else { return }
        if !pass.isEmpty || sinkWantsCommit { return beginCommit() }
        guard tasks == 0 else { return }
        phase = .stopped
        endWatching()
        if let alarm { loop.cancel(alarm.timer) }
        alarm = nil
        for file in openFiles { file.descriptor = nil }
        openFiles.removeAll()
        releaseBuffer()
        publish()
        for waiter in stopWaiters { waiter.resume() }
        stopWaiters.removeAll()
    }

    // MARK: Figures

    func publish() {
        if counters.root == nil, directories[FileName("")] != nil, let status = try? FileSystem.status(root) {
            counters.root = SpoolFigures.Root(path: options.directory, device: status.device, inode: status.inode)
        }
        counters.directories = directories.count
        counters.polledDirectories = polled.count
        counters.pollReason = pollReason
        counters.appendFiles = files.count
        counters.openFiles = openFiles.count
        countUnread()
        counters.isHeldBack = isHeldBack
        counters.complaints = Array(complaints.values.prefix(16))
        counters.inaccessible = complaints.count
        counters.secondTries = secondTries.counts
        if counters.passedOver != passedOver.count {
            counters.passedOver = passedOver.count
            counters.passedOverNames = passedOver.names
        }
        let figures = counters
        published.withLock { $0 = figures }
    }

    /// Counts and logs an error that reading survives.
    func note(_ error: SystemError, _ text: StaticString, _ path: FileName) {
        counters.errors += 1
        log.warning(text, ["path": path.text, "error": error.description])
    }
}
