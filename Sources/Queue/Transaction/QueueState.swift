internal import EventLoops
internal import Model

/// What the store knows about the queue in addition to its rows. A transaction changes a copy, which
/// replaces the store's with the COMMIT; a failed transaction just drops the copy.
struct QueueState {
    /// Clock, random numbers and other parts that no transaction rolls back.
    let environment: QueueEnvironment

    /// The settings in force, and what follows from them.
    private var inForce: SettingsInForce
    /// The cap in force in bytes; lower than `options.maxSize` after the database file ran out of pages
    /// before its cap was reached (`lowerCap`).
    var effectiveCap: Int
    /// All counts of lanes and totals.
    var figures: Figures
    /// Batches that are leased, given back, or acknowledged and not yet deleted.
    var held = HeldBatches()
    /// Acknowledged batches whose rows the next transaction deletes, in the order of their
    /// acknowledgements.
    var acknowledged: [BatchID] = []
    /// Why storing waits; nil while events are stored.
    var refusal: Refusal?
    /// The process that keeps the WAL from being written back, while storing waits for that.
    var walReader: String?
    /// What was evicted and refused since the cap was reached; nil while there is room.
    var fullEpisode: FullEpisode?
    /// Destinations that must give up events because too much is unread (`spool.when_full.max_unread`).
    var givenUp: GivenUp?
    /// The relief while the file is full although it is below its bounds.
    var relief = Relief()
    /// Text about the clock's steps that is in the database, so that a COMMIT writes it only after a
    /// change.
    var keptSteps = ""

    init(
        _ options: QueueOptions, _ figures: Figures, _ environment: QueueEnvironment,
        consent: ConsentStates = ConsentStates()
    ) {
        inForce = SettingsInForce(options, consent)
        self.figures = figures
        self.environment = environment
        effectiveCap = options.maxSize
    }

    /// The settings in force.
    var options: QueueOptions {
        get { inForce.options }
        set { inForce.options = newValue }
    }

    /// What commands have set about consent; the same as in table `switch`.
    var consent: ConsentStates {
        get { inForce.consent }
        set { inForce.consent = newValue }
    }

    /// Bounds of the files, which follow from the settings.
    var bounds: FileBounds {
        get { inForce.bounds }
        set { inForce.bounds = newValue }
    }

    /// What must leave a lane because of its app; nil for nothing.
    var appRules: AppRules? { inForce.appRules }

    /// Why storing waits.
    struct Refusal {
        let reason: WaitReason
        /// Bytes that the refused commit needs; the refusal lasts until they fit.
        var needs = 0
        /// Queued deliveries at that time; fewer mean that a destination has acknowledged some.
        var queued = 0
    }

    /// Destinations that give up events for new ones, and for how many bytes of new events they still
    /// do.
    struct GivenUp {
        let destinations: Set<DestinationName>
        var bytes: Int
    }

    /// Whether an event time is too old for a lane's destination.
    func isExpired(_ newest: Timestamp, in lane: Int) -> Bool {
        environment.isExpired(newest, maxAge: maxAge(of: figures.lanes[lane].name))
    }

    /// Age after which a destination's events expire.
    func maxAge(of destination: DestinationName) -> Duration {
        options.maxAges.isEmpty ? options.maxAge : options.maxAges[destination] ?? options.maxAge
    }

    /// Whether any destination may have to give up events when storing would wait.
    var anyYields: Bool { !options.skipping.isEmpty || givenUp != nil }

    /// Whether a full queue evicts events of all destinations: by its setting, or because all
    /// destinations are given up.
    var evicts: Bool {
        options.whenFull == .evict || givenUp?.destinations.isSuperset(of: options.destinations) ?? false
    }

    /// Whether a destination gives up events when storing would wait: it is set to skip or is given up,
    /// and holds more than an equal share of the queued bytes. All destinations cannot hold more than
    /// an equal share, so never all of them give way, nor a single destination.
    func givesWay(_ name: DestinationName) -> Bool {
        guard yields(name) else { return false }
        let queued = figures.lanes.filter { options.destinations.contains($0.name) || yields($0.name) }
        let own = queued.reduce(0) { $0 + ($1.name == name ? $1.queuedBytes : 0) }
        return own * queued.count > queued.reduce(0) { $0 + $1.queuedBytes } * Priority.allCases.count
    }

    /// Whether a destination is set to skip, or is given up at present.
    private func yields(_ name: DestinationName) -> Bool {
        options.skipping.contains(name) || givenUp?.destinations.contains(name) ?? false
    }

    /// Subtracts stored bytes from those that may be stored at the cost of given-up destinations.
    mutating func stored(_ bytes: Int) {
        givenUp?.bytes -= bytes
        if let left = givenUp?.bytes, left <= 0 {
            givenUp = nil
        }
    }

    /// Whether a row's batch is leased, or acknowledged and about to be deleted.
    func isInFlight(_ row: DeliveryRow) -> Bool {
        guard let id = row.batch, let batch = held[id] else { return false }
        return batch.status != .free
    }

    /// Whether a row's batch may have been sent. If so, it must not be sent with other events.
    func mayHaveBeenSent(_ row: DeliveryRow, in lane: Lane) -> Bool {
        held.mayHaveBeenSent(row, in: lane, lastChunkAtOpen: environment.lastChunkAtOpen)
    }

    /// Bytes that dead letters may take: their bound, or less while the file is full before its bounds.
    var deadLettersBound: Int { min(options.deadLettersMaxSize, relief.deadLetters ?? .max) }

    /// Bytes that the quarantine may take: its bound, or less while the file is full before its bounds.
    var quarantineBound: Int { min(options.quarantineMaxSize, relief.quarantine ?? .max) }
}

/// The parts of the state that a failed transaction does not roll back. Ids that were drawn stay drawn:
/// a rolled-back id must not be given to other events.
final class QueueEnvironment {
    let time: any TimeSource
    /// Reads an event's time from its line; nil if chunks expire as a whole.
    let eventTime: QueueStore.EventTimes?
    let unpacker = FrameUnpacker()
    /// Newest chunk when the file was opened. Whether older chunks were sent by an earlier process is
    /// unknown.
    let lastChunkAtOpen: Int64
    /// Whether the counts agreed with the rows when the file was opened; checked in debug builds only.
    var isCounted = true
    /// Random bits of the batch ids.
    private var random: any RandomNumberGenerator
    /// Generator of batch ids; kept, because it makes ids increase even if the clock is set back.
    private var ids = UUIDv7Generator()
    /// The caller's check of the clock, such as for synchronisation with a time server.
    private let trust: QueueStore.ClockCheck?
    /// Large steps of the clock, those of earlier processes included.
    private var steps: ClockSteps

    init(
        time: any TimeSource, trust: QueueStore.ClockCheck?, steps: ClockSteps,
        random: any RandomNumberGenerator,
        eventTime: QueueStore.EventTimes?, lastChunk: Int64
    ) {
        self.trust = trust
        self.steps = steps
        self.time = time
        self.random = random
        self.eventTime = eventTime
        lastChunkAtOpen = lastChunk
        // The first call records the clock's present state; later calls notice steps against it.
        _ = isClockTrusted()
    }

    /// Whether events may expire. Asked at each use: a check at intervals would notice a step of the
    /// clock after thousands of events have expired.
    func isClockTrusted() -> Bool { steps.isSteady(at: time) && trust?(time) ?? true }

    /// Whether an event time is too old. An event of exactly the maximum age is kept. While the clock is not
    /// trusted nothing is too old.
    func isExpired(_ time: Timestamp, maxAge: Duration) -> Bool {
        isClockTrusted() && self.time.wallTime - time > maxAge
    }

    /// What is known about steps of the clock, as text for the next process.
    func lookAtClock() -> String {
        _ = steps.isSteady(at: time)
        return steps.text
    }

    /// An id that no batch ever had; a failed transaction does not give it back.
    func drawID() -> BatchID { ids.next(at: time.wallTime, using: &random) }
}
