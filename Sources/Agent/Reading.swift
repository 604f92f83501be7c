internal import EventLoops
internal import Events
internal import Intake
internal import Model
internal import Spool

/// All that reads: the spool's reader, those of files that are read in place, and those of journals.
struct Reading: Sendable {
    let spool: SpoolReader
    /// A reader for each directory of `read`, in order, with its own intake: a commit holds what its checkpoints cover.
    let places: [(place: ReadPlace, reader: SpoolReader)]
    let journals: JournalReaders
    let intakes: (spool: LoopBound<Intake>, others: [LoopBound<Intake>])

    var figures: SpoolFigures { places.reduce(spool.figures) { $0.adding($1.reader.figures) } }

    func start() async {
        await spool.start()
        for (_, reader) in places { await reader.start() }
        await journals.start()
    }

    func configure(_ settings: IntakeSettings, others: IntakeSettings) async {
        await intakes.spool.use { $0.configure(settings) }
        for intake in intakes.others { await intake.use { $0.configure(others) } }
        for (place, reader) in places { await reader.join(text: others.events.apps[place.app]?.text == .blocks) }
    }

    /// Ends reading at commits; gives the calls of functions that are left.
    func stop() async -> [String: [UInt8]?] {
        let all = [intakes.spool] + intakes.others
        for intake in all { await intake.use { $0.stopWaiting() } }
        await spool.stop()
        for (_, reader) in places { await reader.stop() }
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
