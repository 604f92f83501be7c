internal import EventLoops
internal import Logs
internal import Model

/// An opened database, ready for the store: tables upgraded, figures read, rows for new destinations
/// added.
struct Opening {
    let file: QueueFile
    let figures: Figures

    /// Number of damaged databases that were replaced on the way.
    var recoveries = 0

    /// Opens the database for the agent or a command; for the agent, replaces it if it is damaged.
    ///
    /// The order matters: a salvage that a crash interrupted is finished first, then the WAL is checked
    /// before SQLite opens the file, because SQLite would silently drop what follows a damaged frame.
    static func open(
        _ options: QueueOptions, _ directory: StateDirectory, now: Timestamp, _ log: Log
    ) throws(QueueError) -> Opening {
        guard options.opener == .agent else { return try inspect(options, directory) }
        if try directory.finishSalvage(now: now) != nil {
            log.warning("finished replacing the damaged queue database")
        }
        do throws(QueueError) {
            // With `durability = "crash"` a power cut can leave complete transactions behind a gap, so
            // there it is not damage.
            if options.durability == .powerLoss,
                WALImage(directory.database)?.isCutOff(directory.database) ?? false
            {
                throw QueueError(
                    .corrupt, "\(directory.database)-wal is damaged, with transactions after the damage")
            }
            let file = try QueueFile(path: directory.database, options: options)
            try TableCheck(file).run()
            // Frames of an earlier, longer WAL would otherwise stay behind the end of the present one,
            // and the next start would take them for transactions behind damage.
            _ = try file.database.integer("PRAGMA wal_checkpoint(TRUNCATE)")
            return try complete(Opening(file: file, figures: try FigureTables(file).load()), options, log)
        } catch {
            guard error.isDamage || error.code == .fileFull else { throw error }
            log.error("queue database is damaged", ["reason": error.message])
            return try replace(options, directory, now: now, log)
        }
    }

    /// Replaces a damaged database by what can be read of it, with a row for each configured destination.
    static func replace(
        _ options: QueueOptions, _ directory: StateDirectory, now: Timestamp, _ log: Log
    ) throws(QueueError) -> Opening {
        try complete(try Salvage.run(options, directory, now: now, log), options, log)
    }

    /// Opens the database for a command, without creating, repairing or configuring anything.
    private static func inspect(_ options: QueueOptions, _ directory: StateDirectory) throws(QueueError)
        -> Opening
    {
        do {
            let file = try QueueFile(path: directory.database, options: options)
            try TableCheck(file).run()
            let figures = try FigureTables(file).load()
            try file.limit(to: FileBounds(options, maxSize: figures.totals.maxSize))
            return Opening(file: file, figures: figures)
        } catch {
            guard error.code == .corrupt else { throw error }
            throw QueueError(.corrupt, "\(error.message); start the agent, which saves what can be read")
        }
    }

    /// Brings a database in line with the configuration: the cap, and rows for new destinations.
    private static func complete(
        _ opening: Opening, _ options: QueueOptions, _ log: Log
    ) throws(QueueError) -> Opening {
        let file = opening.file
        var figures = opening.figures
        // A cap below what is stored is neither a reason to delete events nor to refuse the start: the old
        // cap stays in force until a later start or reload finds a smaller queue.
        let stored = figures.totals.stored
        let cap = stored > options.maxSize ? max(figures.totals.maxSize, stored) : options.maxSize
        if cap != options.maxSize {
            log.warning(
                "queue.max_size is below the size stored, the old one stays in force",
                ["max_size": options.maxSize, "stored_bytes": stored, "in_force": cap])
        }
        // The start itself needs a page or two, even if the file is full. A request for more than 1 MiB
        // would come from a damaged page number.
        try file.grant(1 << 20)
        let tables = try TableWriter(file)
        for name in options.destinations where !figures.lanes.contains(where: { $0.name == name }) {
            try figures.add(name, to: tables)
        }
        figures.totals.maxSize = cap
        try tables.write(&figures)
        try tables.commit()
        try file.limit(to: FileBounds(options, maxSize: cap))
        // Delivery must know at once since when events wait: events from before the start cause no
        // other change that would publish it.
        for index in figures.lanes.indices {
            try file.refreshOldest(of: &figures.lanes[index], lookahead: options.eventTimeLookahead)
        }
        return Opening(file: file, figures: figures, recoveries: opening.recoveries)
    }
}

extension Figures {
    /// Adds a destination's row and its two lanes.
    mutating func add(_ name: DestinationName, to tables: borrowing TableWriter) throws(QueueError) {
        let insert = try tables.statement("INSERT INTO destination (name) VALUES (?) RETURNING id").with(
            name.text)
        guard let id = try insert.all({ Int64($0.integer(0)) }).first else {
            throw QueueError(.io, "the database gave no id for destination \(name)")
        }
        // Above all revisions that were published: delivery may know older lanes of this name.
        let revision = 1 + lanes.reduce(0) { max($0, $1.revision) }
        lanes += Priority.allCases.map { priority in
            var lane = Lane(key: LaneKey(destination: id, priority: priority), name: name)
            lane.revision = revision
            return lane
        }
    }

    /// Events that have expired since the database was made, of all lanes.
    var expired: Int { lanes.reduce(0) { $0 + $1.ledger.expired } }

    /// Queued events of all lanes.
    var queued: Int { lanes.reduce(0) { $0 + $1.ledger.queued } }

    /// Index of a lane; nil if the destination is unknown.
    func lane(_ name: DestinationName, _ priority: Priority) -> Int? {
        lanes.firstIndex { $0.priority == priority && $0.name == name }
    }

    /// Counts one dead letter less for its lane.
    mutating func forgetDeadLetter(_ key: LaneKey?) {
        guard let key, let index = lane(key) else { return }
        lanes[index].deadLetters -= 1
        lanes[index].isDirty = true
    }

    /// Index of a lane by its key; nil if there is no such lane.
    func lane(_ key: LaneKey) -> Int? { lanes.firstIndex { $0.key == key } }
}

extension RestoredState {
    /// Reads the state from which the agent continues after a start.
    init(_ file: QueueFile) throws(QueueError) {
        self.init()
        checkpoints = try file.statement("SELECT key, path, offset, state FROM checkpoint").all {
            Checkpoint(key: $0.bytes(0), path: $0.text(1), offset: Int64($0.integer(2)), state: $0.bytes(3))
        }
        done = try file.statement("SELECT claim, handle FROM done_record").all {
            DoneRecord(claim: $0.bytes(0), handle: $0.bytes(1))
        }
        let rows = try file.statement("SELECT name, value FROM memory").all { ($0.text(0), $0.bytes(1)) }
        memory = Dictionary(rows) { _, last in last }
    }
}

extension QueueSnapshot {
    /// What the queue holds by the store's state.
    init(_ state: inout QueueState, _ file: QueueFile?, _ health: QueueHealth) {
        let figures = state.figures
        let configured = state.options.destinations
        let places = figures.lanes.indices
        let orphans = places.filter { !configured.contains(figures.lanes[$0].name) }
        let ordered =
            configured.flatMap { name in places.filter { figures.lanes[$0].name == name } } + orphans
        lanes = ordered.map { place in
            let lane = figures.lanes[place]
            // Batches in flight, or waiting for a retry, are queued as well.
            let oldest = [lane.summary.oldestAcceptedAt, state.held.oldestAcceptance(in: place)]
            return LaneState(
                destination: lane.name, priority: lane.priority, isConfigured: configured.contains(lane.name),
                summary: lane.summary, ledger: lane.ledger, oldestQueuedAt: oldest.compactMap { $0 }.min(),
                deadLetters: lane.deadLetters)
        }
        intake = figures.totals.intake
        discarded = figures.discards.map { key, events in
            let name = figures.lanes.first { $0.key == key.lane }?.name
            return Discarded(
                destination: name, priority: key.lane.priority, reason: key.reason, events: events)
        }
        storedBytes = figures.totals.stored
        maxSize = figures.totals.maxSize
        fileBytes = file?.fileBytes ?? 0
        walBytes = file?.walBytes ?? 0
        deadLetters = figures.totals.deadLetters
        quarantine = figures.totals.quarantine
        unkept = figures.unkept
        expiredByApp = figures.expiredByApp
        consent = state.consent
        accepting =
            state.refusal.map { .nothing($0.reason) }
            ?? (state.fullEpisode?.isFullOfCritical ?? false ? .critical : .all)
        walReader = state.walReader
        unknownLosses = figures.unknownLosses
        self.health = health
    }
}
