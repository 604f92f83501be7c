internal import EventLoops
internal import Model

/// What becomes of a row whose events are examined one by one.
struct SiftedRow {
    /// Why an event leaves.
    enum Departure: Hashable {
        case expired
        /// It must not be sent; the reason is that of the ledger.
        case withheld(reason: String)
    }

    /// The events that stay, as runs of neighbours.
    var left: [DeliveryRow] = []
    /// Events and bytes that leave.
    var gone: [Departure: (events: Int, bytes: Int)] = [:]

    /// Whether events leave because they must not be sent.
    var withholds: Bool { gone.keys.contains { $0 != .expired } }
}

// Judges waiting events one by one, before they are sent: by their age, and by what commands have withheld.
extension QueueState {
    /// Whether some of a row's events may have expired or must not be sent, so that each has to be examined.
    ///
    /// An examination after which this is still true must have changed the row: a lease repeats it.
    func isToBeSifted(_ row: DeliveryRow, in lane: Int, _ file: QueueFile) throws(QueueError) -> Bool {
        if environment.eventTime != nil, isExpired(row.firstTime, in: lane) { return true }
        guard let appRules else { return false }
        let name = figures.lanes[lane].name
        let age = mayExpire ? environment.time.wallTime - row.firstTime : nil
        guard appRules.concern(name, age: age) else { return false }
        let holders = try file.holding(of: row.chunk)?.holders ?? ChunkHolders()
        let apps = holders.apps(of: row.first..<row.first + row.events)
        if apps.contains(where: { appRules.reason(of: $0, name) != nil }) { return true }
        let mayLeave = apps.contains { app in
            app.isEmpty || age.map { appRules.isExpired(app, age: $0) } ?? false
        }
        guard mayLeave else { return false }
        // The oldest event may be another app's, and an event without a known app of any.
        guard let chunk = try file.readChunk(row.chunk),
            let sifted = try sifted(row, chunk, lane, file)
        else { return true }
        return !sifted.gone.isEmpty
    }

    /// Whether all of a batch's events may be sent.
    func isFit(_ batch: LoadedBatch, _ file: QueueFile) throws(QueueError) -> Bool {
        let lane = batch.held.lane
        if isExpired(batch.newest, in: lane) { return false }
        for row in batch.held.rows where try isToBeSifted(row, in: lane, file) {
            // A row that was split has its chunk's least time, so its own events must be examined.
            guard let chunk = try file.readChunk(row.chunk),
                let sifted = try sifted(row, chunk, lane, file), sifted.gone.isEmpty
            else { return false }
        }
        return true
    }

    /// Judges the events of a row one by one; nil if the frame is damaged.
    func sifted(
        _ row: DeliveryRow, _ chunk: StoredChunk, _ lane: Int, _ file: QueueFile
    ) throws(QueueError) -> SiftedRow? {
        let name = figures.lanes[lane].name
        let now = environment.time.wallTime
        // The chunk of an old file never expires. The present time keeps it from being examined again for
        // as long as an event may wait.
        let isOld = chunk.lastTime.nanoseconds == .max
        if isOld, appRules?.withholds(from: name) != true {
            var same = row
            same.firstTime = now
            return SiftedRow(left: [same])
        }
        guard let lines = environment.unpacker.lines(of: chunk) else { return nil }
        let apps = appRules == nil ? [] : try file.apps(of: row, lines)
        var sifted = SiftedRow()
        for event in row.first..<row.first + row.events {
            let line = lines.slice(event..<event + 1)
            let app = apps.isEmpty ? "" : apps[event - row.first]
            // An event whose line does not say when it happened counts as new as the chunk's newest
            // event.
            let time = isOld ? now : environment.eventTime?(Array(line), row.acceptedAt) ?? chunk.lastTime
            let departure: SiftedRow.Departure?
            if let reason = appRules?.reason(of: app, name) {
                departure = .withheld(reason: reason)
            } else {
                let isOver =
                    isExpired(time, in: lane)
                    || mayExpire && appRules?.isExpired(app, age: now - time) == true
                departure = isOver ? .expired : nil
            }
            if let departure {
                // bounded: lines of one chunk.
                sifted.gone[departure, default: (0, 0)].events += 1
                sifted.gone[departure, default: (0, 0)].bytes += line.count
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
