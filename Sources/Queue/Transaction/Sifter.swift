internal import EventLoops
internal import Model

/// What becomes of a row whose events are examined one by one.
struct SiftedRow {
    /// Why an event leaves.
    enum Cause: Hashable {
        case expired
        /// The event must not be sent. The reason is the ledger's.
        case withheld(reason: String)
    }

    /// The events that stay, as runs of neighbours.
    var left: [DeliveryRow] = []
    /// Events and bytes that leave.
    var gone: [Cause: (events: Int, bytes: Int)] = [:]
    /// Which events of the row leave because they are too old, counted from its first one.
    var expired: [Int] = []

    /// Whether events leave because they must not be sent.
    var withholds: Bool { gone.keys.contains { $0 != .expired } }
}

/// Judges a lane's waiting events one by one, before they are sent: by their age, and by what commands have
/// withheld.
struct Sifter {
    private let file: QueueFile
    private let environment: QueueEnvironment
    /// What must leave because of its app; nil for nothing.
    private let rules: AppRules?
    private let destination: DestinationName
    /// The lane's own age after which events expire.
    private let maxAge: Duration

    init(_ state: QueueState, _ lane: Int, _ file: QueueFile) {
        self.file = file
        environment = state.environment
        rules = state.appRules
        destination = state.figures.lanes[lane].name
        maxAge = state.maxAge(of: destination)
    }

    /// Whether an event time is too old for the lane.
    private func isExpired(_ time: Timestamp) -> Bool { environment.isExpired(time, maxAge: maxAge) }

    /// Whether some of a row's events may have expired or must not be sent, so that each has to be examined.
    ///
    /// An examination after which this is still true must have changed the row: a lease repeats it.
    func isToBeSifted(_ row: DeliveryRow) throws(QueueError) -> Bool {
        if environment.eventTime != nil, isExpired(row.firstTime) { return true }
        guard let rules else { return false }
        let age = mayExpire ? environment.time.wallTime - row.firstTime : nil
        guard rules.concern(destination, age: age) else { return false }
        let holders = try HolderTable(file).holding(of: row.chunk)?.holders ?? ChunkHolders()
        let apps = holders.apps(of: row.first..<row.first + row.events)
        if apps.contains(where: { rules.reason(of: $0, destination) != nil }) { return true }
        let mayLeave = apps.contains { app in
            app.isEmpty || age.map { rules.isExpired(app, age: $0) } ?? false
        }
        guard mayLeave else { return false }
        // The oldest event may be another app's, and an event without a known app of any.
        guard let chunk = try file.readChunk(row.chunk), let sifted = try sifted(row, chunk) else {
            return true
        }
        return !sifted.gone.isEmpty
    }

    /// Whether all of a batch's events may be sent.
    func isFit(_ batch: LoadedBatch) throws(QueueError) -> Bool {
        if isExpired(batch.newest) { return false }
        for row in batch.held.rows where try isToBeSifted(row) {
            // A row that was split has its chunk's least time, so its own events must be examined.
            guard let chunk = try file.readChunk(row.chunk), let sifted = try sifted(row, chunk),
                sifted.gone.isEmpty
            else { return false }
        }
        return true
    }

    /// Judges the events of a row one by one; nil if the frame is damaged.
    func sifted(_ row: DeliveryRow, _ chunk: StoredChunk) throws(QueueError) -> SiftedRow? {
        let now = environment.time.wallTime
        // The chunk of an old file never expires. The present time keeps it from being examined again for
        // as long as an event may wait.
        let isOld = chunk.lastTime.nanoseconds == .max
        if isOld, rules?.withholds(from: destination) != true {
            var same = row
            same.firstTime = now
            return SiftedRow(left: [same])
        }
        guard let lines = environment.unpacker.lines(of: chunk) else { return nil }
        let apps = rules == nil ? [] : try HolderTable(file).apps(of: row, lines)
        var sifted = SiftedRow()
        for event in row.first..<row.first + row.events {
            let line = lines.slice(event..<event + 1)
            let app = apps.isEmpty ? "" : apps[event - row.first]
            // An event whose line does not say when it happened counts as new as the chunk's newest
            // event.
            let time = isOld ? now : environment.eventTime?(Array(line), row.acceptedAt) ?? chunk.lastTime
            let cause: SiftedRow.Cause?
            if let reason = rules?.reason(of: app, destination) {
                cause = .withheld(reason: reason)
            } else {
                let isOver =
                    isExpired(time)
                    || mayExpire && rules?.isExpired(app, age: now - time) == true
                cause = isOver ? .expired : nil
            }
            if cause == .expired {
                // bounded: lines of one chunk.
                sifted.expired.append(event - row.first)
            }
            if let cause {
                sifted.gone[cause, default: (0, 0)].events += 1
                sifted.gone[cause, default: (0, 0)].bytes += line.count
            } else if let last = sifted.left.last, last.first + last.events == event {
                sifted.left[sifted.left.count - 1].events += 1
                sifted.left[sifted.left.count - 1].bytes += line.count
                sifted.left[sifted.left.count - 1].firstTime = min(last.firstTime, time)
            } else {
                var run = row
                run.first = event
                run.events = 1
                run.bytes = line.count
                run.firstTime = time
                sifted.left.append(run)
            }
        }
        return sifted
    }

    /// Whether events may expire by their own time.
    private var mayExpire: Bool { environment.eventTime != nil && environment.isClockTrusted() }
}
