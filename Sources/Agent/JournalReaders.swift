internal import EventLoops
internal import Intake
internal import Journal
internal import Logs
internal import Model
internal import Spool
internal import Synchronization

/// Reads journald's entries: a reader and an intake for each app that names a journal.
///
/// The intakes live on the reader's loop; the journals are read on their own loop, because the library waits for the disk. The
/// place in a journal is committed with the events of the entries before it.
actor JournalReaders: LoopActor {
    nonisolated let loop: EventLoop
    private let log: Log
    private let sources: [Source]
    private let started = Mutex<[JournalReader]>([])
    private let linger: Duration
    private let journalLoop: EventLoop?
    private var tasks: [Task<Void, Never>] = []
    /// Those whose intake waits for something else than a commit, by app.
    private var parked: [String: CheckedContinuation<Bool, Never>] = [:]
    private var isStopping = false

    struct Source: Sendable {
        let app: String
        let options: JournalOptions
        let intake: LoopBound<Intake>
        /// Where reading ended; nil: it never began.
        let place: JournalPlace?
    }

    /// - Parameter linger: how long entries that drip are gathered for one commit.
    init(_ sources: [Source], linger: Duration, on loop: EventLoop, log: Log) throws(SystemError) {
        self.loop = loop
        self.log = log
        self.sources = sources
        self.linger = linger
        journalLoop = sources.isEmpty ? nil : try EventLoop(name: "journal")
    }

    /// Under which name the queue keeps an app's place.
    static func memoryName(of app: String) -> String { "journal/\(app)" }

    /// The journals in the order of the settings, with what is known of each. From any thread.
    nonisolated var states: [(app: String, directory: String?, figures: JournalFigures)] {
        zip(sources, started.withLock { $0 }).map { ($0.app, $0.options.directory, $1.figures) }
    }

    func start() {
        guard let journalLoop, tasks.isEmpty, !isStopping else { return }
        do throws(SystemError) {
            try journalLoop.start()
        } catch {
            return log.error("the journal is not read", ["reason": "\(error)"])
        }
        for source in sources {
            let reader = JournalReader(source.options, from: source.place, on: journalLoop, log: log)
            started.withLock { $0.append(reader) }
            tasks.append(Task(executorPreference: loop) { await self.read(source, reader) })
        }
    }

    /// Ends reading at commits.
    func stop() async {
        isStopping = true
        for app in parked.keys { goOn(app, wasParked: true) }
        for reader in started.withLock({ $0 }) { await reader.stop() }
        for task in tasks { await task.value }
        journalLoop?.stop()
    }

    private func read(_ source: Source, _ reader: JournalReader) async {
        while !isStopping, let piece = await reader.next() {
            do {
                try await take(piece, of: source, reader)
            } catch {
                // The agent stops, or cannot persist: what was not committed is read again after the next start.
                return log.info("reading ends", ["app": source.app, "reason": "\(error)"])
            }
            guard !piece.isFull, !isStopping else { continue }
            await withCheckedContinuation { continuation in _ = loop.after(linger) { continuation.resume() } }
        }
    }

    /// Takes a piece and commits it with its place, in several commits where one has no room for all of it.
    private func take(_ piece: JournalPiece, of source: Source, _ reader: JournalReader) async throws {
        // What was taken, and of that what is committed.
        var (taken, committed) = (0, 0)
        while taken < piece.lines.count {
            guard !isStopping else { throw CancellationError() }
            taken += piece.lines[taken...].withUnsafeBytes { lines in
                source.intake.assumeOnLoop {
                    $0.take(lines, from: SpoolSource(app: source.app, path: "journal", producer: nil), at: 0)
                }
            }
            guard taken < piece.lines.count, !(await waitWhileParked(source)) else { continue }
            guard taken > committed else { throw CancellationError() }
            let entries = piece.lines[..<taken].count { $0 == 0x0A }
            let reached = await reader.place(after: entries, of: piece)
            guard !isStopping else { throw CancellationError() }
            try await commit(reached, of: source)
            committed = taken
        }
        try await commit(piece.place, of: source)
    }

    /// Waits for what the intake waits for beside a commit. False: a commit comes first.
    private func waitWhileParked(_ source: Source) async -> Bool {
        await withCheckedContinuation { continuation in
            parked[source.app] = continuation
            let isParked = source.intake.assumeOnLoop { intake in
                intake.park { self.assumeIsolated { $0.goOn(source.app, wasParked: true) } }
            }
            if !isParked { goOn(source.app, wasParked: false) }
        }
    }

    private func goOn(_ app: String, wasParked: Bool) {
        parked.removeValue(forKey: app)?.resume(returning: wasParked)
    }

    private func commit(_ place: JournalPlace, of source: Source) async throws {
        // The intake closes what it holds before it first suspends.
        nonisolated(unsafe) let intake = source.intake.assumeOnLoop { $0 }
        let memory = place.memory(under: JournalReaders.memoryName(of: source.app))
        try await intake.commit(SpoolProgress(), remembering: memory)
    }
}
