internal import Model

// Makes batches of waiting events.
extension Transaction {
    /// Leases the lane's next batch; nil if nothing waits.
    mutating func form(_ request: LeaseRequest, _ lane: Int) throws(QueueError) -> Batch? {
        // Each round without a batch has removed something from the lane, lost or expired, so the loop
        // ends.
        while true {
            switch try state.next(in: lane, request, of: file) {
            case .nothing:
                return nil
            case .whole(let row, let id):
                if let batch = try takeWhole(row, id, lane, request) { return batch }
            case .join(let rows):
                if let batch = try join(rows, request, lane) { return batch }
            case .sift(let row):
                try sift(row, lane)
            }
        }
    }

    /// Leases a full chunk for which something must be written first; nil if its events were lost or
    /// expired.
    private mutating func takeWhole(
        _ row: DeliveryRow, _ id: BatchID, _ lane: Int, _ request: LeaseRequest?
    ) throws(QueueError) -> Batch? {
        guard let loaded = try state.load([row], id, lane, of: file) else {
            try lose(chunk: row.chunk)
            return nil
        }
        guard !state.isExpired(loaded.newest, in: lane) else {
            try takeOut([row], lane, .expired)
            return nil
        }
        if !state.figures.lanes[lane].allows(row) { try allow(row, request, in: lane) }
        state.hold(loaded, isNew: true)
        return loaded.batch
    }

    /// Leases a batch that this process does not know yet; nil if there is no batch with that id any
    /// more.
    mutating func takeUp(_ id: BatchID, for destination: DestinationName) throws(QueueError) -> Batch? {
        guard state.held[id] == nil, let found = try file.lookUp(id),
            let lane = state.figures.lane(found.lane), state.figures.lanes[lane].name == destination,
            let first = found.rows.first
        else { return nil }
        guard first.isFormed else {
            guard try !Sifter(state, lane, file).isToBeSifted(first) else {
                try sift(first, lane)
                return nil
            }
            return try takeWhole(first, id, lane, nil)
        }
        guard let loaded = try state.load(found.rows, id, lane, of: file),
            try Sifter(state, lane, file).isFit(loaded)
        else {
            try removeUnfit(found.rows, id, lane)
            return nil
        }
        state.hold(loaded, isNew: false)
        return loaded.batch
    }

    /// Removes a free batch that has expired. If only some of its events have expired, or its bytes are
    /// damaged, the remaining events wait again.
    mutating func removeUnfit(_ rows: [DeliveryRow], _ id: BatchID, _ lane: Int) throws(QueueError) {
        guard let loaded = try state.load(rows, id, lane, of: file) else {
            for row in rows where try file.readChunk(row.chunk)?.part(row) == nil {
                try lose(chunk: row.chunk)
            }
            return
        }
        if state.isExpired(loaded.newest, in: lane) { return try takeOut(rows, lane, .expired) }
        try dissolve(rows, lane)
    }

    /// Joins small chunks into a batch; the last one may be split to fill it. Nil if some chunks turned
    /// out to be lost or expired: the caller then searches again.
    private mutating func join(
        _ rows: [DeliveryRow], _ request: LeaseRequest, _ lane: Int
    ) throws(QueueError) -> Batch? {
        // All rows of the batch get this id, in the transaction that also makes the lease: the batch is
        // durable before it is sent.
        let id = drawID()
        var taken: [DeliveryRow] = []
        var room = (events: request.maxEvents, bytes: request.maxBytes)
        for row in rows {
            guard let chunk = try file.readChunk(row.chunk), chunk.part(row) != nil else {
                try lose(chunk: row.chunk)
                break
            }
            if state.isExpired(chunk.lastTime, in: lane) {
                try takeOut([row], lane, .expired)
                break
            }
            let row = taken.isEmpty ? try cutUnwanted(row, chunk, request, lane) : row
            guard let run = fit(row, chunk, room, isFirst: taken.isEmpty) else { break }
            guard run.events > 0 else {
                try lose(chunk: row.chunk)
                break
            }
            taken.append(try split(row, run, id, state.figures.lanes[lane].key))
            room.events -= run.events
            room.bytes -= run.bytes
            if run.events < row.events { break }
        }
        guard var loaded = try state.load(taken, id, lane, of: file) else { return nil }
        // The id is new, so no receiver can have seen it. `load` cannot know that and assumes the
        // opposite.
        loaded.batch.mayHaveBeenSent = false
        state.hold(loaded, isNew: true)
        return loaded.batch
    }

    /// Where a row is cut anyway and only other apps' events are wanted, the unwanted events before the
    /// first of those wait on in a row of their own. Otherwise each of them would be sent alone first, to a
    /// destination that has refused others of its app.
    private mutating func cutUnwanted(
        _ row: DeliveryRow, _ chunk: StoredChunk, _ request: LeaseRequest, _ lane: Int
    ) throws(QueueError) -> DeliveryRow {
        let fits = row.events <= request.maxEvents && row.bytes <= request.maxBytes
        guard !request.notOf.isEmpty, !fits else { return row }
        let unwanted = request.notOf.union([""])
        let holders = try HolderTable(file).holders(of: row)
        guard let wanted = holders.firstIndex(where: { !unwanted.contains($0) }), wanted > 0,
            let lines = unpacker.lines(of: chunk)
        else { return row }
        var before = row
        before.events = wanted
        before.bytes = lines.size(row.first..<row.first + wanted)
        before.batch = nil
        var rest = row
        rest.batch = nil
        rest.first += wanted
        rest.events -= wanted
        rest.bytes -= before.bytes
        let key = state.figures.lanes[lane].key
        try tables.delete(row, from: key)
        try tables.insert(before, in: key)
        try tables.insert(rest, in: key)
        return rest
    }

    /// Gives the first events of a row to a batch; the remaining events wait in a row of their own.
    private mutating func split(
        _ row: DeliveryRow, _ run: (events: Int, bytes: Int), _ id: BatchID, _ lane: LaneKey
    ) throws(QueueError) -> DeliveryRow {
        var mine = row
        mine.events = run.events
        mine.bytes = run.bytes
        mine.batch = id
        mine.isFormed = true
        try tables.delete(row, from: lane)
        try tables.insert(mine, in: lane)
        if run.events < row.events {
            var rest = row
            rest.first += run.events
            rest.events -= run.events
            rest.bytes -= run.bytes
            rest.batch = nil
            try tables.insert(rest, in: lane)
        }
        return mine
    }

    /// How much of a row still fits in a batch: nil for nothing, 0 events if the frame cannot be read.
    /// The first row always gives at least one event, however large, or the lane would never move on.
    private func fit(
        _ row: DeliveryRow, _ chunk: StoredChunk, _ room: (events: Int, bytes: Int), isFirst: Bool
    ) -> (events: Int, bytes: Int)? {
        if row.events <= room.events && (row.bytes <= room.bytes || isFirst && row.events == 1) {
            return (row.events, row.bytes)
        }
        guard room.events > 0 && room.bytes > 0 else { return nil }
        // Splitting a compressed frame costs decompressing it here and again when it is sent. Only the
        // first row is worth it, because nothing could be sent otherwise.
        guard isFirst || chunk.compression == .none else { return nil }
        guard let lines = unpacker.lines(of: chunk) else { return (0, 0) }
        var count = min(row.events, room.events)
        while count > 0 && lines.size(row.first..<row.first + count) > room.bytes { count -= 1 }
        guard count > 0 || isFirst else { return nil }
        count = max(count, 1)
        return (count, lines.size(row.first..<row.first + count))
    }

    /// Records that full chunks of this size, or as large as the request allows, may have been sent
    /// unchanged. It must be durable before the lease: after a restart it decides whether such a chunk
    /// may be cut.
    private mutating func allow(_ row: DeliveryRow, _ request: LeaseRequest?, in lane: Int) throws(QueueError)
    {
        let destination = state.figures.lanes[lane].destination
        let events = max(state.figures.lanes[lane].leaseLimits.events, row.events, request?.maxEvents ?? 0)
        let bytes = max(state.figures.lanes[lane].leaseLimits.bytes, row.bytes, request?.maxBytes ?? 0)
        try tables.run(
            "UPDATE destination SET lease_events = ?, lease_bytes = ? WHERE id = ?", events, bytes,
            destination)
        for index in state.figures.lanes.indices where state.figures.lanes[index].destination == destination {
            state.figures.lanes[index].leaseLimits.events = events
            state.figures.lanes[index].leaseLimits.bytes = bytes
        }
    }
}
