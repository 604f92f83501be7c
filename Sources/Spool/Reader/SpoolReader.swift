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
/// nothing to do it makes no system call. The actor only decides the order of work. The I/O of each job is a
/// type of its own (`Directories`, `AppendReader`, `DropFiles`, ...), and parts, which are values, make the
/// decisions. Dependencies go one way: a type never holds a type that uses it, and asks for that type's work
/// by putting an errand on the agenda.
///
/// Exactly-once hand-over: the lines of a file and the position up to which it was read go into the same
/// commit, and a file is removed only after the commit that covers all of it.
public actor SpoolReader: LoopActor {
    /// The loop that is the actor's executor.
    public nonisolated let loop: EventLoop
    let context: SpoolContext

    // MARK: What several types know

    let tree = Tree()
    let drops: DropTable
    let turns = Turns()
    let removal: Removal
    private let shared: LoopBound<SharedReading>

    // MARK: Its types, each of which uses only those above it

    let schedule: Schedule
    let reports: Reports
    let outlet: Outlet
    let watching: SpoolWatch
    let lives: AppendLives
    let opener: Opener
    let admission: Admission
    let lister: Lister
    let departures: Departures
    let content: AppendReader
    let arrivals: Arrivals
    let directories: Directories
    let census: Census
    let removals: DropRemoval
    let dropFiles: DropFiles
    let buffer: BlockBuffer
    let padding: PaddingReader

    /// Whether the last commit was given the lengths of files with unread bytes.
    private var hasNotedUnread = false

    /// The figures as they were published last, for other threads.
    nonisolated let published = Mutex(SpoolFigures())
    /// When the figures are published again, although reading goes on.
    var publishDue = BootInstant(nanoseconds: .min)

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
        let shared = shared ?? LoopBound(SharedReading(on: loop), to: loop)
        let own = options.ownCheckpoints(among: start.checkpoints)
        let streams = Streams(
            own, joinedTops: options.place?.joinedTops ?? [],
            settleTime: options.settleTime,
            most: options.afterRead == .keep ? 4 * options.mostAppendFiles : options.mostAppendFiles,
            time: time)
        let drops = DropTable(
            DropTable.Limits(
                waiting: options.mostWaitingDrops, waitingInAll: options.mostDropsInAll,
                stuck: options.mostStayingDrops),
            done: options.place == nil ? start.done : [])
        tree.listing.sight = options.place.map {
            FirstSight($0, options.since, hasRead: !own.isEmpty, memory: start.memory)
        }
        // The directory of a place is looked for after the start (`follow`), because it may be missing.
        let opened = try SpoolRoot.open(options.place == nil ? options.directory : "/")
        let removal: Removal
        if case .archive(let path, let retention, let mostBytes) = options.afterRead {
            let archive = try Archive(
                path, retention: retention, mostBytes: mostBytes, spool: opened, log: log)
            removal = Removal(archive, random)
        } else {
            removal = Removal(nil, random)
        }
        let context = SpoolContext(options, log, time, on: loop, SpoolRoot(opened))
        let schedule = Schedule(time)
        let reports = Reports(context, schedule, Owners(findUser))
        let outlet = Outlet(context, schedule, sink)
        let watching = SpoolWatch(context, schedule, reports)
        let lives = AppendLives(
            AppendFiles(streams, options), context, schedule, reports, outlet, watching, turns)
        let opener = Opener(context, schedule, reports, watching, lives)
        let admission = Admission(context, schedule, reports, watching, lives, opener)
        let claims = Claims(context, schedule, reports, outlet, removal)
        let lister = Lister(context, schedule, reports, outlet, opener, admission, tree, drops, turns)
        let departures = Departures(
            context, schedule, reports, outlet, watching, lives, opener, admission, claims, lister, tree,
            drops)
        let buffer = BlockBuffer(shared, schedule, outlet, maxEventSize: options.maxEventSize)
        let judge = Judge(context, schedule, reports, outlet, lives, opener, tree, drops, buffer)
        let padding = PaddingReader(context, schedule, lives)
        let content = AppendReader(
            context, schedule, reports, outlet, lives, opener, departures, judge, turns, buffer, padding,
            HistoryReader(context, outlet, lives, judge, tree, buffer))
        let census = Census(context, schedule, outlet, lives, opener, departures, tree, drops)
        let removals = DropRemoval(
            context, schedule, reports, outlet, opener, claims, lister, removal, tree, drops)
        arrivals = Arrivals(
            context, schedule, reports, outlet, watching, lives, opener, admission, lister, departures, judge,
            content, tree, drops)
        directories = Directories(
            context, schedule, reports, watching, lives, opener, lister, removal, tree, drops, sharing: shared
        )
        dropFiles = DropFiles(
            context, schedule, reports, outlet, lives, opener, admission, claims, lister, judge, removals,
            census, tree, drops, turns, buffer)
        self.loop = loop
        self.shared = shared
        self.drops = drops
        self.removal = removal
        self.context = context
        self.schedule = schedule
        self.reports = reports
        self.outlet = outlet
        self.watching = watching
        self.lives = lives
        self.opener = opener
        self.admission = admission
        self.lister = lister
        self.departures = departures
        self.buffer = buffer
        self.padding = padding
        self.content = content
        self.census = census
        self.removals = removals
    }

    /// The figures as they were published last. May be called on any thread.
    public nonisolated var figures: SpoolFigures { published.withLock { $0 } }

    /// Sets which lines are handed over together from now on: consecutive lines of text, or the lines of
    /// records with this beginning.
    public func join(text isJoined: Bool, records start: RecordStart?) {
        lives.appendFiles.join(text: isJoined, records: start)
    }

    /// Begins a commit soon although nothing was read, because the sink has taken something from elsewhere.
    public func commitSoon() {
        outlet.wantCommit()
        schedule.wake()
    }

    /// Begins to watch and to read. Has no effect after the first call.
    public func start() {
        guard schedule.life.start() else { return }
        // The kernel sends SIGIO when a writer breaks a file lease, which would kill the process. The reader
        // finds out by asking (`FileLease.isHeld`).
        signal(SIGIO, SIG_IGN)
        schedule.attach(
            post: { [weak self] in
                guard let self else { return }
                self.loop.post { self.assumeIsolated { $0.pump() } }
            },
            setTimer: { [weak self] wait in self?.assumeIsolated { $0.setTimer(wait) } })
        opener.fitDescriptors()
        // The spool has an instance of its own; all apps that read in place share one.
        watching.begin(
            context.options.place == nil ? KernelQueue(on: loop) : shared.assumeOnLoop { $0.places }
        ) {
            [weak self] in self?.assumeIsolated { $0.watching.changesCame() }
        }
        tree.listing.sight?.begin(at: context.time.wallTime)
        if let place = context.options.place {
            arrivals.lookAtLinks()
            directories.follow(place)
        } else {
            directories.open(FileName(""), depth: 0)
        }
        publish()
        schedule.wake()
    }

    /// Ends reading: lines that were taken are committed, and no further ones are taken. Returns when this is
    /// done.
    ///
    /// If a commit waits for room in the queue, the caller must make the sink's `commit` throw; otherwise
    /// `stop` waits as long.
    public func stop() async {
        await withCheckedContinuation { continuation in
            // Checked inside of the continuation, because other work of the actor may run before it.
            guard schedule.life.stop(continuation) else { return continuation.resume() }
            schedule.wake()
        }
    }

    // MARK: Work, a piece at a time

    /// One turn of the reader: changes, errands, a slice of reading, and a commit if one is due.
    private func pump() {
        schedule.life.pumpBegins()
        switch schedule.life.phase {
        case .idle, .stopped: return
        case .stopping: return windUp()
        case .running: break
        }
        // Changes and errands come before reading, each for a few milliseconds only: an app that causes many
        // of them must not take all of the reader's time.
        if watching.readKernelEvents() {
            takeChanges()
        }
        runErrands(within: SpoolReader.errandsTime)
        // The sink must close its part of the last commit before it takes new lines; `commit` wakes the
        // reader.
        guard !outlet.handover.isClosing else { return }
        guard !outlet.handover.isFull else { return waitForRoom() }
        var isQuiet = false
        let limit = outlet.pass.bytes + SpoolReader.sliceBytes
        let end = schedule.now + SpoolReader.sliceTime
        // Pieces and time are limited too, because holes, empty archives and long directories bring no bytes.
        for _ in 0..<SpoolReader.pieces
        where !isQuiet && !outlet.handover.isDue && outlet.pass.bytes < limit && schedule.now < end {
            isQuiet = !step()
        }
        if outlet.takeParked() {
            census.plan()
        }
        switch outlet.handover.next(schedule.now, isQuiet: isQuiet) {
        case .work: schedule.wake()
        case .commit: beginCommit()
        case .quiet(let holdsLines): becomeQuiet(holdsLines: holdsLines)
        }
    }

    /// Sets the only timer, or cancels it (nil).
    private func setTimer(_ wait: Duration?) {
        if let timer = schedule.life.takeAlarm() {
            loop.cancel(timer)
        }
        if let wait {
            schedule.life.set(loop.after(wait) { self.assumeIsolated { $0.timerFired() } })
        }
    }

    /// The timer has fired.
    private func timerFired() {
        _ = schedule.life.takeAlarm()
        schedule.alarmFired()
        runErrands(within: SpoolReader.sliceTime)
    }

    /// Two commits wait for room, so nothing is read. Directories are listed all the same: a file that
    /// rotation removes before it is known would be lost without a trace.
    private func waitForRoom() {
        // Changes were left to gather until the next commit, which now waits. Otherwise they would go unread
        // as long as a destination is down.
        watching.endPauseIfOver()
        let end = schedule.now + SpoolReader.sliceTime
        var hasMore = true
        for _ in 0..<SpoolReader.pieces where hasMore && schedule.now < end { hasMore = list() }
        publish()
        if hasMore {
            schedule.wake()
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
    /// Time between two publications of the figures while reading goes on.
    static let publishInterval = Duration.milliseconds(500)
    /// Time for errands in a turn.
    private static let errandsTime = Duration.milliseconds(5)

    /// Does a piece of work: a block of a file, some small files, or some names of a directory. False if no
    /// work is left.
    private func step() -> Bool {
        turns.beginPiece()
        // The common case: only append files have work.
        if tree.listing.isDone, drops.areAllRead { return content.readAppendFile() }
        let order = turns.order(names: tree.listing.least(turns.shares), drops: drops.least(turns.shares))
        for work in order {
            let isDone =
                switch work {
                case .names: list()
                case .lines: content.readAppendFile()
                case .drops: dropFiles.readDropFiles()
                }
            if isDone { return true }
        }
        return false
    }

    /// Reads some names of a directory. False if no directory waits, or if enough files wait.
    private func list() -> Bool {
        lookAtNamesBefore()
        if lister.mayEndFirst {
            // A due errand may open a directory again, and its files must be known before a listing ends.
            guard !schedule.isAnyDue else {
                schedule.wake()
                return false
            }
            if tree.listing.endFirst() {
                firstListingEnded()
            }
            lister.endFirstSight()
        }
        return lister.list { found($0, $1, $2, in: $3) }
    }

    /// Every directory was listed once: known files and done records whose files were not found are gone.
    private func firstListingEnded() {
        departures.missedSinceStart()
        if lives.streams.remembered.release() {
            clinux_release_memory()
        }
        removals.firstListingEnded()
    }

    /// No work is left: begins a commit that is due, lets changes gather while lines drip, and publishes the
    /// figures.
    ///
    /// - Parameter holdsLines: whether lines wait for the next commit, and no commit is under way.
    private func becomeQuiet(holdsLines: Bool) {
        if !holdsLines {
            // While a commit waits for room, new and removed files must still be noticed.
            watching.endPauseIfOver()
        } else {
            let isDue = outlet.dripDue <= schedule.now
            // Lines that came during a rest are a drip, which probably continues: read changes once in each
            // `linger`.
            let isDrip = !isDue || watching.isPauseOver
            if isDue {
                beginCommit()
            }
            if isDrip {
                let look = schedule.now + context.options.linger
                // A pause that is under way keeps its end: otherwise each turn would put the next look off.
                watching.pause(until: isDue ? look : min(outlet.dripDue, watching.pauseEnd ?? look))
            }
        }
        buffer.becomeQuiet()
        census.endCount()
        publish()
    }

    /// The turn of a reader that stops: commits what was taken, waits for all commits, then frees everything
    /// and resumes the callers of `stop`.
    private func windUp() {
        guard !outlet.handover.isClosing, !outlet.handover.isFull else { return }
        if !hasNotedUnread {
            hasNotedUnread = true
            lives.streams.noteUnread(in: &outlet.pass)
        }
        if !outlet.handover.isEmpty { return beginCommit() }
        guard let waiters = schedule.life.end() else { return }
        watching.stop()
        schedule.clear()
        for file in opener.takeAll() { file.descriptor = nil }
        buffer.release()
        publish()
        for waiter in waiters { waiter.resume() }
    }

    // MARK: Commits

    /// Closes the pass and begins a commit. Reading continues once the sink has closed its part
    /// (`Handover.isClosing`).
    func beginCommit() {
        var closed = outlet.beginCommit(schedule.now)
        if let reading = drops.reading, let checkpoint = reading.nextCheckpoint() {
            closed.keep(checkpoint, of: reading.id)
        }
        var progress = SpoolProgress()
        let content = lives.streams.close(&closed)
        progress.checkpoints = content.checkpoints + closed.checkpoints.values
        for index in progress.checkpoints.indices {
            if context.options.place != nil {
                progress.checkpoints[index].path = context.options.shown(
                    FileName(progress.checkpoints[index].path))
            }
            progress.checkpoints[index] = progress.checkpoints[index].keepingPath
        }
        progress.forgotten = closed.forgotten.map(\.bytes)
        progress.done = closed.done.map(\.record)
        progress.unlinked = closed.unlinked
        progress.memory = tree.listing.sight?.takeChanges() ?? [:]
        schedule.life.beginTask()
        census.plan()
        outlet.closed(ClosedPass(progress: progress, files: content.covered, done: closed.done))
        if schedule.now >= publishDue {
            publish()
        }
        Task(executorPreference: loop) { await self.commit() }
    }

    /// Commits the closed pass, then removes drop files that it covers.
    private func commit() async {
        // The sink closes its part before its first suspension, and there is no suspension before that call.
        // So no line can be taken between `takeClosed` and the closing.
        guard let closed = outlet.takeClosed() else { return }
        schedule.wake()
        var isUnderWay = true
        do {
            try await outlet.sink.commit(closed.progress)
            outlet.endCommit(isDurable: true)
            isUnderWay = false
            for file in closed.files { covered(file) }
            schedule.wake()
            if !closed.done.isEmpty {
                // A removed file must not be needed again after a power cut, so the commit must be synced
                // first.
                try await outlet.sink.persist()
                removals.remove(closed.done)
            }
        } catch {
            // Stop reading. The next start continues at the last successful commit.
            if schedule.life.fail() {
                context.log.info("reading of the spool ends", ["reason": "\(error)"])
                outlet.giveUp()
                drops.giveUpReading()
            }
            if isUnderWay {
                outlet.endCommit(isDurable: false)
            }
        }
        schedule.life.endTask()
        schedule.wake()
    }

    /// A position of a file is durable now: the file may be removed or forgotten.
    private func covered(_ covered: CoveredFile) {
        if lives.appendFiles.covered(covered) {
            lives.considerLater(covered.file)
        }
    }

    /// Lets the time of grace of claimed files begin once their commits survive a power cut.
    func beginLeaving() {
        for id in departures.takeClaimed() {
            schedule.life.beginTask()
            Task(executorPreference: loop) { await self.leaveOnceDurable(id) }
        }
    }

    private func leaveOnceDurable(_ id: FileID) async {
        defer {
            schedule.life.endTask()
            schedule.wake()
        }
        do {
            try await outlet.sink.persist()
            departures.beginGrace(of: id)
        } catch {
            departures.cannotPersist(id, error)
        }
    }

    /// The path of a file that has to stay, relative to the spool; nil if the file is gone, and empty until
    /// the first listing has ended.
    public func path(ofFile key: [UInt8]) -> String? {
        guard tree.listing.isFirstDone else { return "" }
        let id = FileID(bytes: key)
        return (lives.streams.files[id]?.path ?? drops.stuck(id)?.path)?.text
    }

    /// Removes files that no longer have to stay. Called after quarantined lines were repaired or dropped.
    public func removeReleased() {
        removals.removeReleased()
        for file in lives.streams.files.values { lives.considerLater(file) }
        schedule.wake()
    }
}
