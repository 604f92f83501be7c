internal import EventLoops
internal import Logs
internal import Model

struct Opening {
    let file: QueueFile
    let figures: Figures

    /// Databases that were replaced on the way.
    var recoveries = 0

    /// Opens the database, takes its figures, adds rows for new destinations; replaces one that is damaged.
    static func open(
        _ options: QueueOptions, _ directory: StateDirectory, now: Timestamp, _ log: Log
    ) throws(QueueError) -> Opening {
        guard options.opener == .agent else { return try inspect(options, directory) }
        if try directory.finishSalvage(now: now) != nil { log.warning("finished replacing the damaged queue database") }
        do throws(QueueError) {
            // SQLite would read neither, and say nothing.
            if options.durability == .powerLoss, WALImage(directory.database)?.isCutOff(directory.database) ?? false {
                throw QueueError(.corrupt, "\(directory.database)-wal is damaged, with transactions after the damage")
            }
            let file = try QueueFile(path: directory.database, options: options)
            try file.checkEnds()
            // Old frames behind the present end would look like transactions behind damage.
            _ = try file.database.integer("PRAGMA wal_checkpoint(TRUNCATE)")
            return try complete(Opening(file: file, figures: try file.load()), options, log)
        } catch {
            guard error.isDamage || error.code == .fileFull else { throw error }
            log.error("queue database is damaged", ["error": error.message])
            let salvage = try Salvage.run(options, directory, now: now, log)
            return try complete(salvage, options, log)
        }
    }

    /// Opens the database as it is, for a command.
    private static func inspect(_ options: QueueOptions, _ directory: StateDirectory) throws(QueueError) -> Opening {
        do {
            let file = try QueueFile(path: directory.database, options: options)
            try file.checkEnds()
            let figures = try file.load()
            try file.limit(to: FileBounds(options, maxSize: figures.totals.maxSize))
            return Opening(file: file, figures: figures)
        } catch {
            guard error.code == .corrupt else { throw error }
            throw QueueError(.corrupt, "\(error.message); start the agent, which saves what can be read")
        }
    }

    private static func complete(
        _ opening: Opening, _ options: QueueOptions, _ log: Log
    ) throws(QueueError) -> Opening {
        let file = opening.file
        var figures = opening.figures
        // One below what is stored is no reason to delete, nor to stay away (ac11).
        let stored = figures.totals.stored
        let cap = stored > options.maxSize ? max(figures.totals.maxSize, stored) : options.maxSize
        if cap != options.maxSize {
            log.warning(
                "queue.max_size is below the size stored, the old one stays in force",
                ["max_size": options.maxSize, "stored_bytes": stored, "in_force": cap])
        }
        // A start needs a page or two, however full the file is; one that asks for more names pages that are not there.
        try file.grant(1 << 20)
        let tables = try TableWriter(file)
        for name in options.destinations where !figures.lanes.contains(where: { $0.name == name }) {
            try figures.add(name, to: tables)
        }
        figures.totals.maxSize = cap
        try tables.write(&figures)
        try tables.commit()
        try file.limit(to: FileBounds(options, maxSize: cap))
        // What waited before this start waits on from its own time, without any change that would tell of it.
        for index in figures.lanes.indices {
            try file.refreshOldest(of: &figures.lanes[index], lookahead: options.eventTimeLookahead)
        }
        return Opening(file: file, figures: figures, recoveries: opening.recoveries)
    }
}

extension Figures {
    /// Adds a destination's row and its lanes.
    mutating func add(_ name: DestinationName, to tables: borrowing TableWriter) throws(QueueError) {
        let insert = try tables.statement("INSERT INTO destination (name) VALUES (?) RETURNING id").take(name.text)
        guard let id = try insert.all({ Int64($0.integer(0)) }).first else {
            throw QueueError(.io, "the database gave no id for destination \(name)")
        }
        lanes += Priority.allCases.map { Lane(key: LaneKey(destination: id, priority: $0), name: name) }
    }

    var expired: Int { lanes.reduce(0) { $0 + $1.ledger.expired } }

    var queued: Int { lanes.reduce(0) { $0 + $1.ledger.queued } }

    /// The place of a lane; nil for an unknown destination.
    func lane(_ name: DestinationName, _ priority: Priority) -> Int? {
        lanes.firstIndex { $0.priority == priority && $0.name == name }
    }

    mutating func forgetDeadLetter(_ key: LaneKey?) {
        guard let key, let index = lane(key) else { return }
        lanes[index].deadLetters -= 1
        lanes[index].isDirty = true
    }

    /// The place of a lane by what tells its rows.
    func lane(_ key: LaneKey) -> Int? { lanes.firstIndex { $0.key == key } }
}

extension QueueFile {
    /// Reads both ends of each large table, milliseconds, whatever their size; all of the small tables; and all of the deliveries, row by
    /// row, half a second of CPU a million: one that cannot be found later takes its chunk along, which goes with the last that is found.
    func checkEnds() throws(QueueError) {
        for table in [
            "destination", "total", "ledger", "discard", "switch", "memory", "checkpoint", "done_record", "container",
            "delivery",
        ] {
            // With its index, which has a destination's name once more. The order of deliveries is looked at only so, too.
            let check = ["destination", "delivery"].contains(table) ? "integrity_check" : "quick_check"
            let answer = try statement("PRAGMA \(check)('\(table)')").all { $0.text(0) }
            guard answer.first == "ok" else { throw database.damage("table \(table)") }
        }
        let deliveries = try database.prepare("SELECT \(DeliveryRow.columns) FROM delivery")
        while try deliveries.step() { _ = try readRow(deliveries) }
        for end in ["", "DESC"] {
            _ = try database.integer("SELECT length(frame) FROM chunk ORDER BY id \(end) LIMIT 1")
            for table in ["dead_letter", "quarantine"] {
                _ = try database.integer("SELECT id FROM \(table) ORDER BY id \(end) LIMIT 1")
            }
        }
    }

    /// The state from which the agent continues after a start.
    func restore() throws(QueueError) -> RestoredState {
        var state = RestoredState()
        state.checkpoints = try statement("SELECT key, path, offset, state FROM checkpoint").all {
            Checkpoint(key: $0.bytes(0), path: $0.text(1), offset: Int64($0.integer(2)), state: $0.bytes(3))
        }
        state.done = try statement("SELECT claim, handle FROM done_record").all {
            DoneRecord(claim: $0.bytes(0), handle: $0.bytes(1))
        }
        let memory = try statement("SELECT name, value FROM memory").all { ($0.text(0), $0.bytes(1)) }
        state.memory = Dictionary(memory) { _, last in last }
        return state
    }
}

extension QueueSnapshot {
    /// This one with the store's state.
    func with(_ state: QueueState, _ file: QueueFile?) -> QueueSnapshot {
        let figures = state.figures
        var snapshot = self
        let configured = state.options.destinations
        let orphans = figures.lanes.filter { !configured.contains($0.name) }
        let ordered = configured.flatMap { name in figures.lanes.filter { $0.name == name } } + orphans
        snapshot.lanes = ordered.map { lane in
            LaneState(
                destination: lane.name, priority: lane.priority, isConfigured: configured.contains(lane.name),
                summary: lane.summary, ledger: lane.ledger, oldestQueuedAt: lane.summary.oldestAcceptedAt,
                deadLetters: lane.deadLetters)
        }
        snapshot.intake = figures.totals.intake
        snapshot.discarded = figures.discards.map { key, events in
            let name = figures.lanes.first { $0.key == key.lane }?.name
            return Discarded(destination: name, priority: key.lane.priority, reason: key.reason, events: events)
        }
        snapshot.storedBytes = figures.totals.stored
        snapshot.maxSize = figures.totals.maxSize
        snapshot.fileBytes = file?.fileBytes ?? 0
        snapshot.walBytes = file?.walBytes ?? 0
        snapshot.deadLetters = figures.totals.deadLetters
        snapshot.quarantine = figures.totals.quarantine
        snapshot.unkept = figures.unkept
        snapshot.accepting =
            state.refusal.map { .nothing($0.reason) }
            ?? (state.fullEpisode?.isFullOfCritical ?? false ? .critical : .all)
        snapshot.walReader = state.walReader
        snapshot.unknownLosses = figures.unknownLosses
        return snapshot
    }
}
