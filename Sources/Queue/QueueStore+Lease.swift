internal import EventLoops
public import Model

extension QueueStore {
    /// Takes up the lane's oldest free batch that is not in `request.except`, or else forms the next batch from what
    /// waits; leases it.
    ///
    /// A full chunk is a batch as it is stored and costs no write.
    /// - Returns: nil when there is neither.
    /// - Throws: `QueueError` with code `misuse` for limits below one, `closed`, or why a write failed.
    public func leaseNext(_ request: LeaseRequest) async throws(QueueError) -> Batch? {
        guard request.maxEvents >= 1, request.maxBytes >= 1 else {
            throw QueueError(.misuse, "a batch must be allowed at least one event and one byte")
        }
        do {
            return try await findNext(request)
        } catch {
            guard error.code == .corrupt else { throw error }
            failed(error, [])
            return try await findNext(request)
        }
    }

    private func findNext(_ request: LeaseRequest) async throws(QueueError) -> Batch? {
        let file = try opened()
        guard let lane = figures.lane(request.destination, request.priority) else { return nil }
        guard figures.lanes[lane].ledger.queued > 0, !isLeasingStopped else { return nil }
        try file.database.begin()
        while let free = try oldestFree(in: lane, except: request.except, of: file) {
            // One that is gone when it is looked at (expired, damaged) is free no more.
            if let batch = try await find(free) { return batch }
        }
        switch try next(in: lane, request, of: file) {
        case .nothing:
            return nil
        case .whole(let row, let id):
            guard figures.lanes[lane].allows(row), let loaded = try load([row], id, lane, of: file),
                !isExpired(loaded.newest)
            else { break }
            hold(loaded, lane, isNew: true)
            publish()
            return loaded.batch
        case .join:
            break
        }
        return try await write { () throws(QueueError) in try self.form(request, lane) }
    }

    /// Leases a batch again whose lease was given back.
    ///
    /// - Returns: nil when it is gone: purged, disabled, evicted, expired, lost, or in flight already.
    public func lease(_ id: BatchID) async throws(QueueError) -> Batch? {
        do {
            return try await find(id)
        } catch {
            guard error.code == .corrupt else { throw error }
            failed(error, [])
            return try await find(id)
        }
    }

    private func find(_ id: BatchID) async throws(QueueError) -> Batch? {
        let file = try opened()
        guard !isLeasingStopped else { return nil }
        guard let known = held[id] else { return try await write { () throws(QueueError) in try self.takeUp(id) } }
        guard known.status == .free else { return nil }
        try file.database.begin()
        guard let loaded = try load(known.rows, id, known.lane, of: file), !isExpired(loaded.newest) else {
            try await write { () throws(QueueError) in try self.removeUnfit(id) }
            return nil
        }
        held[id]?.status = .leased
        figures.lanes[known.lane].freeBatches -= 1
        publish()
        return loaded.batch
    }

    /// Gives a lease back: the batch stays as it is, free for another attempt by its id. Leases live in memory only.
    public func release(_ id: BatchID) {
        guard let batch = held[id], batch.status == .leased else { return }
        held[id]?.status = .free
        figures.lanes[batch.lane].freeBatches += 1
        publish()
    }

    /// Whether a reader outside has made the WAL so long that nothing may add to it.
    private var isLeasingStopped: Bool {
        guard let file else { return true }
        return file.walBytes > bounds.leaseBelow
    }

    // MARK: Finding

    /// What comes next in a lane.
    enum Candidate {
        /// A full chunk, under the id that was drawn when it was stored.
        case whole(DeliveryRow, BatchID)
        /// Rows to be joined, in order.
        case join([DeliveryRow])
        /// Everything is held.
        case nothing
    }

    /// Looks for what comes next, from the lane's cursor on, and moves the cursor over what is held.
    private func next(in lane: Int, _ request: LeaseRequest, of file: QueueFile) throws(QueueError) -> Candidate {
        if let urgent = request.urgentBefore {
            let found = try scan(lane, request, urgentBefore: urgent, file)
            if case .nothing = found {} else { return found }
        }
        return try scan(lane, request, urgentBefore: nil, file)
    }

    private func scan(
        _ lane: Int, _ request: LeaseRequest, urgentBefore: Timestamp?, _ file: QueueFile
    ) throws(QueueError) -> Candidate {
        // How far it looks: for urgent events among others, and for small neighbours to join.
        var budget = urgentBefore == nil ? 256 : 4_096
        var rows: [DeliveryRow] = []
        var events = 0
        var bytes = 0
        var result = Candidate.nothing
        var cursor: Int64?
        let start = figures.lanes[lane]
        try file.walk(destination: start.destination, priority: start.priority, from: start.cursor) { row in
            if let id = row.batch, held[id] != nil { return true }
            if cursor == nil { cursor = row.chunk }
            budget -= 1
            guard budget > 0 else { return false }
            if let urgentBefore, row.firstTime >= urgentBefore { return true }
            if row.isFormed { return true }
            if let id = row.batch {
                guard rows.isEmpty else { return true }
                let fits = row.events <= request.maxEvents && (row.bytes <= request.maxBytes || row.events == 1)
                let mayHaveBeenSent = row.chunk <= lastChunkAtOpen && start.allows(row)
                if fits || mayHaveBeenSent { result = .whole(row, id) } else { rows = [row] }
                return false
            }
            rows.append(row)
            events += row.events
            bytes += row.bytes
            return events < request.maxEvents && bytes < request.maxBytes
        }
        if let cursor { figures.lanes[lane].cursor = cursor }
        return rows.isEmpty ? result : .join(rows)
    }

    /// The lane's oldest batch that is free: given back, made by a settlement, or formed before this start.
    private func oldestFree(
        in lane: Int, except: Set<BatchID>, of file: QueueFile
    ) throws(QueueError) -> BatchID? {
        guard figures.lanes[lane].freeBatches > 0 else { return nil }
        var heldFree = 0
        var oldest: (chunk: Int64, first: Int, id: BatchID)?
        for (id, batch) in held where batch.lane == lane && batch.status == .free {
            heldFree += 1
            guard !except.contains(id), let row = batch.rows.first else { continue }
            if oldest.map({ (row.chunk, row.first) < ($0.chunk, $0.first) }) ?? true {
                oldest = (row.chunk, row.first, id)
            }
        }
        guard figures.lanes[lane].freeBatches > heldFree else { return oldest?.id }
        let formed = try file.statement(
            "SELECT chunk, first, batch FROM delivery INDEXED BY delivery_formed "
                + "WHERE state = 1 AND destination = ? AND priority = ? ORDER BY chunk, first")
        formed.bind(1, figures.lanes[lane].destination)
        formed.bind(2, Int64(figures.lanes[lane].priority.rawValue))
        defer { formed.reset() }
        while try formed.step() {
            guard let id = BatchID(raw: formed.raw(2)), held[id] == nil, !except.contains(id) else { continue }
            let place = (chunk: Int64(formed.integer(0)), first: formed.integer(1))
            return oldest.map { ($0.chunk, $0.first) < place } ?? false ? oldest?.id : id
        }
        return oldest?.id
    }

    /// When the oldest waiting event of a lane was accepted, and the earliest event time among the oldest ones.
    func oldestWaiting(
        in lane: Int, of file: QueueFile
    ) throws(QueueError) -> (acceptedAt: Timestamp, earliest: Timestamp)? {
        let start = figures.lanes[lane]
        var oldest: (acceptedAt: Timestamp, earliest: Timestamp)?
        var cursor: Int64?
        var budget = options.eventTimeLookahead
        try file.walk(destination: start.destination, priority: start.priority, from: start.cursor) { row in
            if let id = row.batch, held[id] != nil { return true }
            if cursor == nil { cursor = row.chunk }
            if row.isFormed { return true }
            let known = oldest ?? (row.acceptedAt, row.firstTime)
            oldest = (known.acceptedAt, min(known.earliest, row.firstTime))
            budget -= 1
            return budget > 0
        }
        if let cursor { figures.lanes[lane].cursor = cursor }
        return oldest
    }

    // MARK: Forming, in the running transaction

    private func form(_ request: LeaseRequest, _ lane: Int) throws(QueueError) -> Batch? {
        let file = try opened()
        // Each round that gives no batch has taken something out of the lane: lost or expired.
        while true {
            switch try next(in: lane, request, of: file) {
            case .nothing:
                return nil
            case .whole(let row, let id):
                if let batch = try takeWhole(row, id, lane, file) { return batch }
            case .join(let rows):
                if let batch = try join(rows, request, lane, file) { return batch }
            }
        }
    }

    /// Leases a full chunk for which a write is needed first; nil if it was lost or has expired.
    private func takeWhole(
        _ row: DeliveryRow, _ id: BatchID, _ lane: Int, _ file: QueueFile
    ) throws(QueueError) -> Batch? {
        guard let loaded = try load([row], id, lane, of: file) else {
            try lose(chunk: row.chunk, of: file)
            return nil
        }
        guard !isExpired(loaded.newest) else {
            try takeOut([row], lane, \.expired, of: file)
            return nil
        }
        if !figures.lanes[lane].allows(row) { try allow(row, in: lane, of: file) }
        hold(loaded, lane, isNew: true)
        return loaded.batch
    }

    /// Leases a batch that this process does not hold yet; nil if there is none of that id, or it went.
    private func takeUp(_ id: BatchID) throws(QueueError) -> Batch? {
        let file = try opened()
        guard held[id] == nil, let found = try file.lookUp(id),
            let lane = figures.lane(found.destination, found.priority), let first = found.rows.first
        else { return nil }
        guard first.isFormed else { return try takeWhole(first, id, lane, file) }
        guard let loaded = try load(found.rows, id, lane, of: file) else {
            try loseDamaged(found.rows, of: file)
            return nil
        }
        guard !isExpired(loaded.newest) else {
            try takeOut(found.rows, lane, \.expired, of: file)
            return nil
        }
        hold(loaded, lane, isNew: false)
        return loaded.batch
    }

    /// Takes out a held batch that has expired; of one whose bytes are damaged, what is sound waits again.
    private func removeUnfit(_ id: BatchID) throws(QueueError) {
        let file = try opened()
        guard let known = held[id], known.status == .free else { return }
        if try load(known.rows, id, known.lane, of: file) == nil {
            try loseDamaged(known.rows, of: file)
        } else {
            try takeOut(known.rows, known.lane, \.expired, of: file)
        }
    }

    /// Joins small chunks into a batch, the last one in part where that fills it; nil if some were lost or expired.
    private func join(
        _ rows: [DeliveryRow], _ request: LeaseRequest, _ lane: Int, _ file: QueueFile
    ) throws(QueueError) -> Batch? {
        let destination = figures.lanes[lane].destination
        let id = drawID()
        var taken: [DeliveryRow] = []
        var room = (events: request.maxEvents, bytes: request.maxBytes)
        for row in rows {
            guard let chunk = try file.readChunk(row.chunk), chunk.part(row) != nil else {
                try lose(chunk: row.chunk, of: file)
                if taken.isEmpty { return nil } else { break }
            }
            if isExpired(chunk.lastTime) {
                try takeOut([row], lane, \.expired, of: file)
                if taken.isEmpty { return nil } else { break }
            }
            guard let run = fit(row, chunk, room, isFirst: taken.isEmpty) else { break }
            guard run.events > 0 else {
                try lose(chunk: row.chunk, of: file)
                if taken.isEmpty { return nil } else { break }
            }
            let mine = try split(row, run, id, destination, request.priority, file)
            taken.append(mine)
            room.events -= run.events
            room.bytes -= run.bytes
            if run.events < row.events { break }
        }
        guard let loaded = try load(taken, id, lane, of: file) else { return nil }
        hold(loaded, lane, isNew: true)
        return loaded.batch
    }

    /// Gives the first events of a row to a batch; what is left waits on.
    private func split(
        _ row: DeliveryRow, _ run: (events: Int, bytes: Int), _ id: BatchID, _ destination: Int64,
        _ priority: Priority, _ file: QueueFile
    ) throws(QueueError) -> DeliveryRow {
        var mine = row
        mine.events = run.events
        mine.bytes = run.bytes
        mine.batch = id
        mine.isFormed = true
        try file.deleteDelivery(destination: destination, priority: priority, chunk: row.chunk, first: row.first)
        try file.insert(mine, destination: destination, priority: priority)
        if run.events < row.events {
            var rest = row
            rest.first += run.events
            rest.events -= run.events
            rest.bytes -= run.bytes
            rest.batch = nil
            try file.insert(rest, destination: destination, priority: priority)
        }
        return mine
    }

    /// How much of a row a batch still takes: nil for nothing, 0 events if the frame cannot be read.
    private func fit(
        _ row: DeliveryRow, _ chunk: StoredChunk, _ room: (events: Int, bytes: Int), isFirst: Bool
    ) -> (events: Int, bytes: Int)? {
        if row.events <= room.events && (row.bytes <= room.bytes || isFirst && row.events == 1) {
            return (row.events, row.bytes)
        }
        guard room.events > 0 && room.bytes > 0 else { return nil }
        // Cutting a packed frame costs unpacking it here and again when it is sent: only where it must be.
        guard isFirst || chunk.compression == .none else { return nil }
        guard let lines = unpacker.lines(of: chunk) else { return (0, 0) }
        var count = min(row.events, room.events)
        while count > 0 && lines.size(row.first..<row.first + count) > room.bytes { count -= 1 }
        if count == 0 {
            guard isFirst else { return nil }
            count = 1
        }
        return (count, lines.size(row.first..<row.first + count))
    }

    /// Notes that full chunks of that size may have been sent as they are.
    private func allow(_ row: DeliveryRow, in lane: Int, of file: QueueFile) throws(QueueError) {
        let destination = figures.lanes[lane].destination
        let events = max(figures.lanes[lane].leaseEvents, row.events, options.batchEvents)
        let bytes = max(figures.lanes[lane].leaseBytes, row.bytes, options.batchBytes)
        let update = try file.statement("UPDATE destination SET lease_events = ?, lease_bytes = ? WHERE id = ?")
        update.bind(1, events)
        update.bind(2, bytes)
        update.bind(3, destination)
        try update.run()
        for index in figures.lanes.indices where figures.lanes[index].destination == destination {
            figures.lanes[index].leaseEvents = events
            figures.lanes[index].leaseBytes = bytes
        }
    }

    // MARK: Holding

    /// Reads a batch's frames; nil if one of them is damaged.
    private func load(
        _ rows: [DeliveryRow], _ id: BatchID, _ lane: Int, of file: QueueFile
    ) throws(QueueError) -> LoadedBatch? {
        guard let first = rows.first else { return nil }
        var parts: [Batch.Part] = []
        var newest = Timestamp(nanoseconds: .min)
        var sole: Int?
        for row in rows {
            guard let chunk = try file.readChunk(row.chunk), let part = chunk.part(row) else { return nil }
            parts.append(part)
            newest = max(newest, chunk.lastTime)
            if rows.count == 1, part.isWhole, chunk.destinations == 1 { sole = chunk.cost }
        }
        let header = BatchHeader(
            id: id, destination: figures.lanes[lane].name, priority: figures.lanes[lane].priority,
            events: rows.reduce(0) { $0 + $1.events }, bytes: rows.reduce(0) { $0 + $1.bytes },
            acceptedAt: rows.reduce(first.acceptedAt) { min($0, $1.acceptedAt) },
            firstEventTime: rows.reduce(first.firstTime) { min($0, $1.firstTime) })
        return LoadedBatch(
            batch: Batch(header: header, parts: parts), rows: rows, soleCost: sole, newest: newest)
    }

    /// Leases a batch: it is known from now on. A new one's events wait no more; one that was formed before this start
    /// was counted then.
    private func hold(_ loaded: LoadedBatch, _ lane: Int, isNew: Bool) {
        let header = loaded.batch.header
        held[header.id] = HeldBatch(
            header: header, lane: lane, rows: loaded.rows, soleCost: loaded.soleCost, status: .leased)
        figures.lanes[lane].oldestIsStale = true
        if isNew {
            figures.lanes[lane].batchedEvents += header.events
            figures.lanes[lane].batchedBytes += header.bytes
        } else {
            figures.lanes[lane].freeBatches -= 1
        }
    }
}
