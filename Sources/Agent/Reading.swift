internal import EventLoops
internal import Events
internal import Intake
internal import Model
internal import Spool

/// All parts that read: the spool's reader, the readers of files that are read in place, and those of
/// journals.
///
/// Start, stop and reload treat them as one.
struct Reading: Sendable {
    let spool: MovableReader
    /// A reader for each directory of `read`, in order. Each has an intake of its own: a commit may only hold
    /// events that its checkpoints cover.
    let places: [MovableReader]
    /// The readers of journald's entries, which have their own intakes.
    let journals: JournalReaders
    /// The intakes of journals, in order.
    let journalIntakes: [LoopBound<Intake>]
    /// The loops of file systems that may never answer.
    let mounts: MountLoops
    /// What the readers on the loop *reader* share.
    let shared: LoopBound<SharedReading>

    /// How long the stop waits for readers whose file system may never answer. What they had not committed by
    /// then is read again after the next start.
    private static let stopLimit = Duration.seconds(3)

    /// The sum of the figures of the spool and of all directories that are read in place.
    var figures: SpoolFigures { places.reduce(spool.figures) { $0.adding($1.figures) } }

    private var otherIntakes: [LoopBound<Intake>] { places.map(\.intake) + journalIntakes }

    /// All loops of which a file system may hang, with what that means.
    var watchedLoops: [WatchedLoop] { journals.loops + mounts.watched }

    /// Begins to read: the spool first, then the other places.
    func start() async {
        await spool.start()
        for place in places { await place.start() }
        await journals.start()
    }

    /// Applies new settings.
    ///
    /// - Parameters:
    ///   - settings: for the spool.
    ///   - others: for files that are read in place and for journals.
    func configure(_ settings: IntakeSettings, others: IntakeSettings) async {
        await spool.intake.use { $0.configure(settings) }
        for intake in otherIntakes { await intake.use { $0.configure(others) } }
        for reader in places {
            let app = others.events.apps[reader.place?.app ?? ""]
            await reader.join(text: app?.text == .blocks, records: app?.textFormat?.recordStart)
        }
    }

    /// Ends reading at commits. Returns the calls of functions that are not committed yet, for the last
    /// commit of the stop.
    func stop() async -> [String: [UInt8]?] {
        let all = [spool.intake] + otherIntakes
        // First of all: a reader that waits for room in a full queue would never end.
        for intake in all { await intake.use { $0.stopWaiting() } }
        // At the same time: several file systems that hang are waited for once.
        await withDiscardingTaskGroup { group in
            for reader in [spool] + places { group.addTask { await reader.stop(atMost: Reading.stopLimit) } }
        }
        await journals.stop()
        var left: [String: [UInt8]?] = [:]
        for intake in all { left.merge(await intake.use { $0.takeLeftCalls() }) { _, new in new } }
        return left
    }

    /// Lets intakes that wait for room try again. To be called on the readers' loop.
    func queueChanged() {
        for intake in [spool.intake] + otherIntakes { intake.assumeOnLoop { $0.queueChanged() } }
    }
}
