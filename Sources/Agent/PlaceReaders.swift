internal import EventLoops
internal import Intake
internal import Logs
internal import Model
internal import Spool
internal import Synchronization

/// Reads files in place: a reader and an intake for each directory that `read` names. They live on the reader's loop.
///
/// Each has its own intake, because a commit must hold just what its checkpoints cover.
actor PlaceReaders {
    /// How often a directory is looked for that is not there, and whether the paths of the others still lead to them: of a link above, or
    /// of a parent that is replaced, no watch would tell.
    private static let look = Duration.seconds(10)

    nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }
    private let loop: EventLoop
    private let log: Log
    private let time: any TimeSource
    private let checkpoints: [Checkpoint]
    private let pairs: [Pair]
    private let opened = Mutex<[Int: SpoolReader]>([:])
    private var timer: EventLoop.TimerID?
    private var hasStarted = false
    private var isStopping = false

    /// How a place is read, and the intake of its lines.
    typealias Pair = (options: SpoolOptions, intake: LoopBound<Intake>)

    /// - Parameter checkpoints: what the queue has kept of all files.
    init(_ pairs: [Pair], checkpoints: [Checkpoint], on loop: EventLoop, time: any TimeSource, log: Log) {
        self.loop = loop
        self.log = log
        self.time = time
        self.checkpoints = pairs.isEmpty ? [] : checkpoints
        self.pairs = pairs
    }

    /// The places in the order of the settings, with what is known of each: nil while its directory is not there, or cannot be
    /// opened. From any thread.
    nonisolated var states: [(place: ReadPlace, figures: SpoolFigures?)] {
        let opened = opened.withLock { $0 }
        return pairs.indices.compactMap { index in
            pairs[index].options.place.map { ($0, opened[index]?.figures) }
        }
    }

    /// Begins to read what is there; what is not is looked for again.
    func start() async {
        guard !hasStarted else { return }
        hasStarted = true
        await openAll()
    }

    private func openAll() async {
        guard !isStopping, !pairs.isEmpty else { return }
        for reader in opened.withLock({ Array($0.values) }) { await reader.followPath() }
        for (index, pair) in pairs.enumerated() where opened.withLock({ $0[index] == nil }) {
            do throws(SpoolError) {
                // Both live on this loop.
                nonisolated(unsafe) let sink = pair.intake.assumeOnLoop { $0 }
                let reader = try SpoolReader(
                    pair.options, start: SpoolStart(checkpoints: checkpoints), sink: sink, on: loop, log: log,
                    time: time)
                opened.withLock { $0[index] = reader }
                await reader.start()
            } catch {
                // It is looked for again.
            }
        }
        timer = loop.after(PlaceReaders.look) { Task { await self.openAll() } }
    }

    /// Ends reading at commits.
    func stop() async {
        isStopping = true
        if let timer { loop.cancel(timer) }
        for reader in opened.withLock({ Array($0.values) }) { await reader.stop() }
    }
}

/// All that reads: the spool's reader, those of files that are read in place, and those of journals.
struct Reading: Sendable {
    let spool: SpoolReader
    let places: PlaceReaders
    let journals: JournalReaders
    /// The intake of the spool, and those of all that is elsewhere.
    let intakes: (spool: LoopBound<Intake>, others: [LoopBound<Intake>])

    var figures: SpoolFigures { places.states.reduce(spool.figures) { $0.adding($1.figures ?? SpoolFigures()) } }

    func start() async {
        await spool.start()
        await places.start()
        await journals.start()
    }

    func configure(_ settings: IntakeSettings, others: IntakeSettings) async {
        await intakes.spool.use { $0.configure(settings) }
        for intake in intakes.others { await intake.use { $0.configure(others) } }
    }

    /// Ends reading at commits; gives the calls of functions that are left.
    func stop() async -> [String: [UInt8]?] {
        let all = [intakes.spool] + intakes.others
        for intake in all { await intake.use { $0.stopWaiting() } }
        await spool.stop()
        await places.stop()
        await journals.stop()
        var left: [String: [UInt8]?] = [:]
        for intake in all { left.merge(await intake.use { $0.takeLeftCalls() }) { _, new in new } }
        return left
    }

    /// To be called on the reader's loop when the queue may have room again.
    func queueChanged() {
        for intake in [intakes.spool] + intakes.others { intake.assumeOnLoop { $0.queueChanged() } }
    }
}
