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
public actor SpoolReader: LoopActor {
    /// The loop that it lives on.
    public nonisolated let loop: EventLoop
    private(set) var options: SpoolOptions
    let log: Log
    let time: any TimeSource
    let sink: any SpoolSink
    var random: any RandomNumberGenerator

    // MARK: Its parts

    var tree: SpoolTree
    var watching = SpoolWatch()
    var listing = Listing()
    var held: HeldDescriptors
    var ready = FairQueue<AppendFile>()
    var streams: Streams
    var drops = DropFiles()
    var trouble = SpoolTrouble()
    var backlog = Backlog()
    var buffer: ReadBuffer
    var names = OwnerNames()
    /// Finds out a user's name, or `uid-N`; it may block.
    var findUser: @Sendable (UInt32) -> String = { FileStatus.nameIfAny(ofUser: $0) ?? "uid-\($0)" }
    var lastClaim: UInt64

    // MARK: Its work

    var shares = Shares()
    var errands = SpoolErrands()
    var pass = Pass()
    var commits = SpoolCommits()
    var life = SpoolReaderLife()
    var counters = SpoolFigures()
    nonisolated let published = Mutex(SpoolFigures())

    /// A reader of a spool; it does nothing before `start`.
    ///
    /// - Parameters:
    ///   - options: what to read, and how.
    ///   - start: what the queue has kept of earlier reading.
    ///   - sink: takes the lines; lives on `loop` too.
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
        held = HeldDescriptors(mostFiles: options.maxOpenFiles)
        buffer = ReadBuffer(size: Fingerprint.longest + max(SpoolReader.sliceBytes, options.maxEventSize + 1) + 1)
        (self.sink, self.loop, self.log, self.time, self.random) = (sink, loop, log, time, random)
        lastClaim = self.random.next()
        streams = Streams(
            SpoolReader.own(start.checkpoints, options), joinedTops: options.place?.joinedTops ?? [],
            settleTime: options.settleTime,
            most: options.afterRead == .keep ? 4 * options.mostAppendFiles : options.mostAppendFiles, time: time)
        for record in start.done where options.place == nil {
            drops.doneBefore[FileID(bytes: record.handle), default: []].append(record)
        }
        // That of a place is found later.
        tree = SpoolTree(root: try SpoolReader.openRoot(options.place == nil ? options.directory : "/"))
        if case .archive(let path, let retention, let mostBytes) = options.afterRead {
            tree.archive = try Archive(path, retention: retention, mostBytes: mostBytes, spool: tree.root, log: log)
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
                switch error.number {
                case ENOSYS:
                    "openat2 is not available: it needs Linux 5.6, and no sandbox that forbids it (RestrictSUIDSGID= does)"
                case ENOENT, ENOTDIR: "cannot open the spool \(path): create it, or set spool.directory"
                default: "cannot open the spool \(path)"
                }
            throw SpoolError(.noDirectory, message, cause: error)
        }
    }

    /// The figures, as they were published last. From any thread.
    public nonisolated var figures: SpoolFigures { published.withLock { $0 } }

    /// Whether lines of text that follow each other are handed over together from now on.
    public func join(text isJoined: Bool) { options.joinsText = isJoined }

    /// Has what the sink holds committed soon, although nothing was read: it took something from elsewhere.
    public func commitSoon() {
        commits.isWanted = true
        wake()
    }

    /// Begins to watch and to read.
    public func start() {
        guard life.phase == .idle else { return }
        life.phase = .running
        // A writer who breaks one of our file leases is noticed by asking; the signal that comes too would kill us.
        signal(SIGIO, SIG_IGN)
        fitDescriptors()
        beginWatching()
        if let place = options.place { follow(place) } else { open(FileName(""), depth: 0) }
        wake()
    }

    /// Ends reading at a commit: what was taken is committed, nothing new is taken. Returns when that is done.
    ///
    /// Whoever waits in the sink's `commit` for room must make it throw, or this waits as long.
    public func stop() async {
        await withCheckedContinuation { continuation in
            // In here, because other work may come before it.
            guard life.phase == .running || life.phase == .stopping else {
                if life.phase == .idle { life.phase = .stopped }
                return continuation.resume()
            }
            life.phase = .stopping
            life.stopWaiters.append(continuation)
            wake()
        }
    }

    // MARK: Work, a piece at a time

    /// Has the next piece of work done as soon as the loop comes to it.
    func wake() {
        guard !life.isPumpPosted, life.phase == .running || life.phase == .stopping else { return }
        life.isPumpPosted = true
        loop.post { self.assumeIsolated { $0.pump() } }
    }

    private func pump() {
        life.isPumpPosted = false
        switch life.phase {
        case .idle, .stopped: return
        case .stopping: return windUp()
        case .running: break
        }
        // Both come before the apps' work, and in small parts: whoever makes many of them must not have all of the time.
        hear()
        runErrands(within: SpoolReader.errandsTime)
        // The sink must have closed the commit before anything new is taken; `run` wakes us.
        guard commits.closing == nil else { return }
        guard commits.underWay < 2 else { return publish() }
        var isQuiet = false
        let limit = pass.bytes + SpoolReader.sliceBytes
        let end = now + SpoolReader.sliceTime
        // Pieces are counted too: not all bring bytes. Holes, archives that hold nothing and long directories do not.
        for _ in 0..<SpoolReader.pieces where !isQuiet && !isCommitDue && pass.bytes < limit && now < end {
            isQuiet = !step()
        }
        if isCommitDue || isCommitLate && !isQuiet {
            beginCommit()
        } else if isQuiet {
            becomeQuiet()
        } else {
            wake()
        }
    }

    /// Whether what was taken has waited long enough for more: reading may go on for hours without bringing any.
    private var isCommitLate: Bool {
        commits.underWay == 0 && !pass.isEmpty && now - commits.last >= max(SpoolReader.longestWait, options.linger)
    }

    private static let longestWait = Duration.milliseconds(100)

    /// How many bytes are read before timers and changes get their turn.
    static let sliceBytes = 1 << 20
    /// How many pieces of work are done before that: each reads a megabyte at most.
    private static let pieces = 16
    /// How long work is done before that, at the end of a piece.
    static let sliceTime = Duration.milliseconds(20)
    static let changesTime = Duration.milliseconds(10)
    private static let errandsTime = Duration.milliseconds(5)
    /// How long nothing is read before the buffer is given back.
    static let bufferRest = Duration.seconds(1)

    private enum Work: CaseIterable { case names, lines, drops }

    /// A piece of work: a block of a file, some small files, some names of a directory. False: there is none.
    ///
    /// Whoever has had the least time goes first, whatever the work; the kinds take turns where that is equal. So whoever
    /// has endless work, or work that takes long, holds up nobody for more than a piece.
    private func step() -> Bool {
        shares.turn &+= 1
        // Most of the time no other kind has work.
        if listing.isFirstDone, listing.waiting.isEmpty, drops.areAllRead { return readAppendFile() }
        var kinds = Work.allCases.indices.map { index in
            let kind = Work.allCases[(index + Int(shares.turn % 3)) % Work.allCases.count]
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

    /// Whether no app that has had less time waits for other work than a drop file.
    var isDropNext: Bool { least(.drops) <= min(least(.names), least(.lines)) }

    /// What the app has used that comes next in a kind of work.
    private func least(_ kind: Work) -> Int64 {
        switch kind {
        case .names: listing.waiting.least(shares) ?? .max
        case .lines: ready.least(shares) ?? .max
        case .drops:
            drops.reading.map { shares.spent(by: $0.share) }
                ?? min(drops.waiting.least(shares) ?? .max, drops.asides.least(shares) ?? .max)
        }
    }

    /// Begins work for an app, which pays for it with its share.
    func beginTurn(of app: String) -> (app: String, start: BootInstant) {
        shares.begin(app)
        return (app, now)
    }

    func endTurn(_ turn: (app: String, start: BootInstant)) { shares.charge(turn.app, now - turn.start) }

    private func becomeQuiet() {
        // Whoever waits for room hears of files that come and go meanwhile.
        if pass.isEmpty || commits.underWay > 0 {
            if isRested { endRest() }
        } else {
            let isDue = commits.last + options.linger <= now
            // Lines that came in a rest were a drip, which goes on: one look for each commit.
            let isDrip = !isDue || isRested
            if isDue { beginCommit() }
            if isDrip { rest(until: commits.last + options.linger) }
        }
        if buffer.rest() { schedule(after: SpoolReader.bufferRest) { self.releaseBuffer() } }
        endCount()
        publish()
    }

    private func releaseBuffer() {
        if buffer.releaseIfUnused() { schedule(after: SpoolReader.bufferRest) { self.releaseBuffer() } }
    }

    private func windUp() {
        guard commits.closing == nil, commits.underWay < 2 else { return }
        if !pass.isEmpty || commits.isWanted { return beginCommit() }
        guard life.tasks == 0 else { return }
        life.phase = .stopped
        endWatching()
        if let alarm = errands.alarm { loop.cancel(alarm.timer) }
        errands = SpoolErrands()
        for file in held.files { file.descriptor = nil }
        held.files.removeAll()
        buffer.release()
        publish()
        trouble.secondTries = SecondTries()
        for waiter in life.stopWaiters { waiter.resume() }
        life.stopWaiters.removeAll()
    }

    // MARK: Figures

    func publish() {
        if counters.root == nil, tree.directories[FileName("")] != nil, let status = try? FileSystem.status(tree.root) {
            counters.root = SpoolFigures.Root(path: options.directory, device: status.device, inode: status.inode)
        }
        counters.directories = tree.directories.count
        counters.polledDirectories = watching.polled.count
        counters.pollReason = watching.pollReason
        counters.appendFiles = streams.files.count
        counters.openFiles = held.files.count
        countUnread()
        counters.isHeldBack = isHeldBack
        if let shown = trouble.complaints.takeChanged(atMost: 16) {
            counters.complaints = shown.map(\.value)
            for index in shown.indices {
                counters.complaints[index].ownerName = shownName(of: shown[index].value.owner)
            }
            counters.inaccessible = trouble.complaints.count
        }
        if let shown = trouble.refusals.takeChanged(atMost: 8) {
            counters.refusedNames = shown.map { "\(self.shown($0.path)) (\($0.value.rawValue))" }
            counters.refusedFiles = trouble.refusals.count
        }
        if let shown = trouble.passedOver.takeChanged(atMost: 8) {
            counters.passedOverNames = shown.map(\.path.text)
            counters.passedOver = trouble.passedOver.count
        }
        counters.crowdedDirectories = trouble.crowded.values.reduce(0) { $0 + $1.count }
        counters.secondTries = trouble.secondTries.counts
        let figures = counters
        published.withLock { $0 = figures }
    }

    /// Counts and logs an error that reading survives.
    func note(_ error: SystemError, _ text: StaticString, _ path: FileName) {
        counters.errors += 1
        log.warning(text, ["path": path.text, "error": error.description])
    }
}
