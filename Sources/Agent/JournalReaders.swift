internal import EventLoops
internal import Intake
internal import Journal
internal import Logs
internal import Model
internal import Spool

/// Reads journald's entries: a reader and an intake for each app that names a journal.
///
/// The intakes live on this loop; each journal is read on a loop of its own, because its file system may never answer. The place in a
/// journal is committed with the events of the entries before it.
actor JournalReaders: LoopActor {
    nonisolated let loop: EventLoop
    private let log: Log
    private let sources: [Source]
    private let linger: Duration
    private var isStarted = false
    private var commits = 0
    private var isStopping = false
    private var stopWaiter: CheckedContinuation<Void, Never>?

    struct Source: Sendable {
        let app: String
        let intake: LoopBound<Intake>
        let reader: JournalReader
    }

    /// - Parameter linger: how long entries that drip are gathered for one commit.
    init(_ sources: [Source], linger: Duration, on loop: EventLoop, log: Log) {
        self.loop = loop
        self.log = log
        self.sources = sources
        self.linger = linger
    }

    /// Under which name the queue keeps an app's place.
    static func memoryName(of app: String) -> String { "journal/\(app)" }

    /// The journals in the order of the settings, with what is known of each; `silent`: loops that do not answer.
    nonisolated func states(
        _ silent: Set<String>
    ) -> [(app: String, directory: String?, figures: JournalFigures)] {
        sources.map { source in
            var figures = source.reader.figures
            if silent.contains(source.reader.loop.name) { figures.problem = .hangs }
            return (source.app, source.reader.options.directory, figures)
        }
    }

    /// The journals' loops, each with what may keep it. From any thread.
    nonisolated var loops: [(loop: EventLoop, hint: String)] {
        sources.map { ($0.reader.loop, "does the disk of \($0.reader.options.directory ?? "the journal") hang?") }
    }

    func start() {
        guard !isStarted, !isStopping else { return }
        isStarted = true
        for source in sources { Task(executorPreference: loop) { await self.read(source) } }
    }

    /// Ends reading at commits. A journal is not waited for: it may never answer.
    func stop() async {
        isStopping = true
        for reader in sources.map(\.reader) { reader.loop.post { reader.assumeIsolated { $0.stop() } } }
        if commits > 0 { await withCheckedContinuation { stopWaiter = $0 } }
    }

    private func read(_ source: Source) async {
        while let piece = await source.reader.next(), !isStopping {
            do {
                try await take(piece, of: source)
            } catch {
                // The agent stops, or cannot persist: what was not committed is read again after the next start.
                return log.info("reading ends", ["app": source.app, "reason": "\(error)"])
            }
            guard !piece.isFull, !isStopping else { continue }
            await withCheckedContinuation { continuation in _ = loop.after(linger) { continuation.resume() } }
        }
    }

    /// Takes a piece and commits it with its place, in several commits where one has no room for all of it.
    private func take(_ piece: JournalPiece, of source: Source) async throws {
        nonisolated(unsafe) let intake = source.intake.assumeOnLoop { $0 }
        let origin = SpoolSource(app: source.app, path: "journal", producer: nil)
        var taken = 0
        while true {
            taken += await intake.takeAside(piece.lines[taken...], from: origin, at: 0)
            guard !isStopping else { throw CancellationError() }
            guard taken < piece.lines.count else { return try await commit(piece.place, intake, source.app) }
            let entries = piece.lines[..<taken].count { $0 == 0x0A }
            let reached = await source.reader.place(after: entries, of: piece)
            guard !isStopping else { throw CancellationError() }
            try await commit(reached, intake, source.app)
        }
    }

    private func commit(_ place: JournalPlace, _ intake: Intake, _ app: String) async throws {
        commits += 1
        defer {
            commits -= 1
            if commits == 0 { stopWaiter?.resume() }
        }
        // The intake closes what it holds before it first suspends.
        try await intake.commit(
            SpoolProgress(), remembering: place.memory(under: JournalReaders.memoryName(of: app)))
    }
}
