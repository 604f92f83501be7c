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
    let spool: SpoolReader
    /// A reader for each directory of `read`, in order. Each has an intake of its own: a commit may only hold
    /// events that its checkpoints cover.
    let places: [(place: ReadPlace, reader: SpoolReader)]
    /// The readers of journald's entries, which have their own intakes.
    let journals: JournalReaders
    /// The intakes of the spool and of all others.
    let intakes: (spool: LoopBound<Intake>, others: [LoopBound<Intake>])

    /// The sum of the figures of the spool and of all directories that are read in place.
    var figures: SpoolFigures { places.reduce(spool.figures) { $0.adding($1.reader.figures) } }

    /// Begins to read: the spool first, then the other places.
    func start() async {
        await spool.start()
        for (_, reader) in places { await reader.start() }
        await journals.start()
    }

    /// Applies new settings.
    ///
    /// - Parameters:
    ///   - settings: for the spool.
    ///   - others: for files that are read in place and for journals.
    func configure(_ settings: IntakeSettings, others: IntakeSettings) async {
        await intakes.spool.use { $0.configure(settings) }
        for intake in intakes.others { await intake.use { $0.configure(others) } }
        for (place, reader) in places {
            let app = others.events.apps[place.app]
            await reader.join(text: app?.text == .blocks, records: app?.textFormat?.recordStart)
        }
    }

    /// Ends reading at commits. Returns the calls of functions that are not committed yet, for the last
    /// commit of the stop.
    func stop() async -> [String: [UInt8]?] {
        let all = [intakes.spool] + intakes.others
        // First of all: a reader that waits for room in a full queue would never end.
        for intake in all { await intake.use { $0.stopWaiting() } }
        await spool.stop()
        for (_, reader) in places { await reader.stop() }
        await journals.stop()
        var left: [String: [UInt8]?] = [:]
        for intake in all { left.merge(await intake.use { $0.takeLeftCalls() }) { _, new in new } }
        return left
    }

    /// Lets intakes that wait for room try again. To be called on the readers' loop.
    func queueChanged() {
        for intake in [intakes.spool] + intakes.others { intake.assumeOnLoop { $0.queueChanged() } }
    }
}
