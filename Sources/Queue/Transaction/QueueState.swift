internal import EventLoops
internal import Model

/// What the store knows of the queue beside its rows. A transaction changes a copy, which takes its place with the COMMIT.
struct QueueState {
    let environment: QueueEnvironment

    var options: QueueOptions
    var bounds: FileBounds
    /// The cap in bytes, or what the database file could hold when it reached the size that its bounds allow.
    var effectiveCap: Int
    var figures: Figures
    var held: [BatchID: HeldBatch] = [:]
    /// Acknowledged batches whose rows go with the next transaction, in order.
    var acknowledged: [BatchID] = []
    /// Why nothing is stored; nil while events are.
    var refusal: Refusal?
    /// The process that keeps the WAL from being written back, while storing waits for that.
    var walReader: String?
    /// What the cap has forced since it was reached; nil while there is room.
    var fullEpisode: FullEpisode?
    /// Destinations that hold storing up and are given up meanwhile.
    var givenUp: GivenUp?
    /// What is given up while the file is full before its bounds.
    var relief = Relief()
    /// What this process has written of the clock's steps.
    var keptSteps = ""

    init(_ options: QueueOptions, _ figures: Figures, _ environment: QueueEnvironment) {
        self.options = options
        self.figures = figures
        self.environment = environment
        bounds = FileBounds(options)
        effectiveCap = options.maxSize
    }

    /// Why nothing is stored, how many bytes the caller that was turned away needs, and how many deliveries were queued then.
    struct Refusal {
        let reason: WaitReason
        var needs = 0
        var queued = 0
    }

    /// Who is given up while too much is unread, and for how many bytes of events more.
    struct GivenUp {
        let destinations: Set<DestinationName>
        var bytes: Int
    }

    /// Whether events as new as that are too old to be sent to a lane's destination. Exactly the maximum age is kept (ac12).
    func isExpired(_ newest: Timestamp, in lane: Int) -> Bool {
        guard environment.isClockTrusted() else { return false }
        let own = options.maxAges.isEmpty ? nil : options.maxAges[figures.lanes[lane].name]
        return environment.time.wallTime - newest > own ?? options.maxAge
    }

    /// Whether some of a row's events may have expired, so that each has to be looked at (ac12).
    func isToBeSifted(_ row: DeliveryRow, in lane: Int) -> Bool {
        environment.eventTime != nil && isExpired(row.firstTime, in: lane)
    }

    /// Whether anybody may be asked to give up events where storing would wait.
    var anyYields: Bool { !options.skipping.isEmpty || givenUp != nil }

    /// Whether a full queue evicts for all: it is to, or all destinations are given up.
    var evicts: Bool {
        options.whenFull == .evict || givenUp?.destinations.isSuperset(of: options.destinations) ?? false
    }

    /// Whether a destination gives up events where storing would wait: it is to skip what it is too late for, or is given up, and holds
    /// more than an equal part of what is queued. So never do all of them, nor one that is alone.
    func givesWay(_ name: DestinationName) -> Bool {
        guard yields(name) else { return false }
        let queued = figures.lanes.filter { options.destinations.contains($0.name) || yields($0.name) }
        let own = queued.reduce(0) { $0 + ($1.name == name ? $1.queuedBytes : 0) }
        return own * queued.count > queued.reduce(0) { $0 + $1.queuedBytes } * Priority.allCases.count
    }

    private func yields(_ name: DestinationName) -> Bool {
        options.skipping.contains(name) || givenUp?.destinations.contains(name) ?? false
    }

    /// Takes what was stored off what may be stored at the cost of those who are given up.
    mutating func stored(_ bytes: Int) {
        givenUp?.bytes -= bytes
        if let left = givenUp?.bytes, left <= 0 { givenUp = nil }
    }

    /// Whether a row's batch is with its destination, or acknowledged and about to go.
    func isInFlight(_ row: DeliveryRow) -> Bool {
        guard let id = row.batch, let batch = held[id] else { return false }
        return batch.status != .free
    }

    /// Whether a row's batch may have been sent: it was formed or leased, or is a full chunk of an earlier process.
    func mayHaveBeenSent(_ row: DeliveryRow, in lane: Lane) -> Bool {
        guard let id = row.batch else { return false }
        return row.isFormed || held[id] != nil || row.chunk <= environment.lastChunkAtOpen && lane.allows(row)
    }

    /// What dead letters may hold: their bound, or less while the file is full before it.
    var deadLettersBound: Int { min(options.deadLettersMaxSize, relief.deadLetters ?? .max) }

    /// What the quarantine may hold: its bound, or less while the file is full before it.
    var quarantineBound: Int { min(options.quarantineMaxSize, relief.quarantine ?? .max) }
}

/// What the queue's state is judged by: it stays as it is, or goes on whatever becomes of a transaction.
final class QueueEnvironment {
    let time: any TimeSource
    let eventTime: QueueStore.EventTimes?
    let unpacker: FrameUnpacker
    /// The chunks up to this one were stored before this process began.
    let lastChunkAtOpen: Int64
    /// Whether the figures agreed with the rows when the file was opened; looked at in debug builds only.
    var isCounted = true
    private var random: any RandomNumberGenerator
    private var ids = UUIDv7Generator()
    private let trust: QueueStore.ClockCheck?
    private var steps: ClockSteps

    init(
        time: any TimeSource, trust: QueueStore.ClockCheck?, steps: ClockSteps, random: any RandomNumberGenerator,
        eventTime: QueueStore.EventTimes?, lastChunk: Int64
    ) throws(QueueError) {
        (self.trust, self.steps, self.time) = (trust, steps, time)
        (self.random, self.eventTime) = (random, eventTime)
        lastChunkAtOpen = lastChunk
        unpacker = try FrameUnpacker()
        // From now on it notices steps.
        _ = isClockTrusted()
    }

    /// Whether old events may expire. Asked at each use, from the first one after a start on: whoever watches the clock elsewhere
    /// hears of a step, or of a clock that was wrong from the beginning, when thousands of events have expired.
    func isClockTrusted() -> Bool { steps.isSteady(at: time) && trust?(time) ?? true }

    /// What is known of steps of the clock by now, as a text for the next process.
    func lookAtClock() -> String {
        _ = steps.isSteady(at: time)
        return steps.text
    }

    /// An id that no batch has had; a transaction that fails does not give it back.
    func drawID() -> BatchID { ids.next(at: time.wallTime, using: &random) }
}
