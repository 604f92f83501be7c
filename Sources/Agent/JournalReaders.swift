internal import EventLoops
internal import Intake
internal import Journal
internal import Logs
internal import Model
internal import Spool

/// Reads journald's entries: a reader and an intake for each app that names a journal.
///
/// The intakes live on this loop. Each journal is read on a loop of its own, because its file system may
/// never answer. The position in a journal is committed together with the events of the entries before it, so
/// that a crash neither loses nor repeats an entry.
actor JournalReaders: LoopActor {
    nonisolated let loop: EventLoop
    private let log: Log
    /// The journals, in the order of the settings.
    private let sources: [Source]
    /// How long entries that arrive slowly are gathered for one commit.
    private let linger: Duration
    private var isStarted = false
    /// Commits under way; the stop waits for them.
    private var commits = 0
    /// True once the stop has begun; pieces that a journal still returns are dropped, and read again after
    /// the next start.
    private var isStopping = false
    /// The caller of `stop`, while commits are under way.
    private var stopWaiter: CheckedContinuation<Void, Never>?

    /// A journal of one app.
    struct Source: Sendable {
        let app: String
        /// Turns entries into events and commits them; on the loop of `JournalReaders`.
        let intake: LoopBound<Intake>
        /// Reads the entries, on its own loop.
        let reader: JournalReader
    }

    /// - Parameter linger: how long entries that arrive slowly are gathered for one commit: each commit
    ///   writes about ten pages of the queue, however few its entries.
    init(_ sources: [Source], linger: Duration, on loop: EventLoop, log: Log) {
        self.loop = loop
        self.log = log
        self.sources = sources
        self.linger = linger
    }

    /// The name under which the queue stores an app's position in its journal.
    static func memoryName(of app: String) -> String { "journal/\(app)" }

    /// The journals in the order of the settings, each with its figures. From any thread.
    ///
    /// - Parameter silent: names of the loops that do not answer; their journals are reported as hanging.
    nonisolated func states(
        _ silent: Set<String>
    ) -> [(app: String, directory: String?, figures: JournalFigures)] {
        sources.map { source in
            var figures = source.reader.figures
            if silent.contains(source.reader.loop.name) {
                figures.problem = .hangs
            }
            return (source.app, source.reader.options.directory, figures)
        }
    }

    /// The journals' loops, each with a probable cause of its silence. From any thread.
    nonisolated var loops: [WatchedLoop] {
        sources.map {
            WatchedLoop(
                $0.reader.loop, hint: "does the disk of \($0.reader.options.directory ?? "the journal") hang?"
            )
        }
    }

    /// Begins to read all journals; does nothing after the first call.
    func start() {
        guard !isStarted, !isStopping else { return }
        isStarted = true
        for source in sources { Task(executorPreference: loop) { await self.read(source) } }
    }

    /// Ends reading at commits. It waits for commits under way, but not for a journal, whose disk may never
    /// answer.
    func stop() async {
        isStopping = true
        for reader in sources.map(\.reader) { reader.loop.post { reader.assumeIsolated { $0.stop() } } }
        if commits > 0 {
            await withCheckedContinuation { stopWaiter = $0 }
        }
    }

    /// Reads a journal until the stop, or until its entries cannot be stored.
    private func read(_ source: Source) async {
        while let piece = await source.reader.next(), !isStopping {
            do {
                try await take(piece, of: source)
            } catch {
                // The agent stops, or cannot store: entries that were not committed are read again after the
                // next start.
                return log.info("reading of the journal ends", ["app": source.app, "reason": "\(error)"])
            }
            // A full piece means a backlog: read on at once. Otherwise gather entries for a while.
            guard !piece.isFull, !isStopping else { continue }
            await withCheckedContinuation { continuation in _ = loop.after(linger) { continuation.resume() } }
        }
    }

    /// Passes a piece to the intake and commits it with its position; in several commits if the queue has no
    /// room for all of it at once.
    private func take(_ piece: JournalPiece, of source: Source) async throws {
        nonisolated(unsafe) let intake = source.intake.assumeOnLoop { $0 }
        let origin = SpoolSource(app: source.app, path: Rereader.journalPath, producer: nil)
        var taken = 0
        while true {
            taken += await intake.takeAside(piece.lines[taken...], from: origin, at: 0)
            guard !isStopping else { throw CancellationError() }
            guard taken < piece.lines.count else { return try await commit(piece.place, intake, source.app) }
            // Only a part of the lines fitted: ask the journal for the position after the entries of this
            // part.
            let entries = piece.lines[..<taken].count { $0 == 0x0A }
            let reached = await source.reader.place(after: entries, of: piece)
            guard !isStopping else { throw CancellationError() }
            try await commit(reached, intake, source.app)
        }
    }

    /// Commits what the intake holds, with a position in the journal.
    private func commit(_ place: JournalPlace, _ intake: Intake, _ app: String) async throws {
        commits += 1
        defer {
            commits -= 1
            if commits == 0 {
                stopWaiter?.resume()
            }
        }
        // The intake closes what it holds before it first suspends.
        try await intake.commit(
            SpoolProgress(), remembering: place.memory(under: JournalReaders.memoryName(of: app)))
    }
}
