internal import Model

// Making batches of what waits.
extension Transaction {
    mutating func form(_ request: LeaseRequest, _ lane: Int) throws(QueueError) -> Batch? {
        // Each round that gives no batch has taken something out of the lane: lost or expired.
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

    /// Leases a full chunk for which a write is needed first; nil if it was lost or has expired.
    private mutating func takeWhole(
        _ row: DeliveryRow, _ id: BatchID, _ lane: Int, _ request: LeaseRequest?
    ) throws(QueueError) -> Batch? {
        guard let loaded = try state.load([row], id, lane, of: file) else {
            try lose(chunk: row.chunk)
            return nil
        }
        guard !state.isExpired(loaded.newest, in: lane) else {
            try takeOut([row], lane, \.expired)
            return nil
        }
        if !state.figures.lanes[lane].allows(row) { try allow(row, request, in: lane) }
        state.hold(loaded, isNew: true)
        return loaded.batch
    }

    /// Leases a batch that this process does not hold yet; nil if there is none of that id, or it went.
    mutating func takeUp(_ id: BatchID, for destination: DestinationName) throws(QueueError) -> Batch? {
        guard state.held[id] == nil, let found = try file.lookUp(id),
            let lane = state.figures.lane(found.lane), state.figures.lanes[lane].name == destination,
            let first = found.rows.first
        else { return nil }
        guard first.isFormed else {
            guard !state.isToBeSifted(first, in: lane) else {
                try sift(first, lane)
                return nil
            }
            return try takeWhole(first, id, lane, nil)
        }
        guard let loaded = try state.load(found.rows, id, lane, of: file), try state.isFit(loaded, file) else {
            try removeUnfit(found.rows, id, lane)
            return nil
        }
        state.hold(loaded, isNew: false)
        return loaded.batch
    }

    /// Takes out a free batch that has expired; of one of which only some has, or whose bytes are damaged, the rest waits again.
    mutating func removeUnfit(_ rows: [DeliveryRow], _ id: BatchID, _ lane: Int) throws(QueueError) {
        guard let loaded = try state.load(rows, id, lane, of: file) else {
            for row in rows where try file.readChunk(row.chunk)?.part(row) == nil { try lose(chunk: row.chunk) }
            return
        }
        if state.isExpired(loaded.newest, in: lane) { return try takeOut(rows, lane, \.expired) }
        try dissolve(rows, lane)
    }

    /// Joins small chunks into a batch, the last one in part where that fills it; nil if some were lost or expired.
    private mutating func join(
        _ rows: [DeliveryRow], _ request: LeaseRequest, _ lane: Int
    ) throws(QueueError) -> Batch? {
        let id = drawID()
        var taken: [DeliveryRow] = []
        var room = (events: request.maxEvents, bytes: request.maxBytes)
        for row in rows {
            guard let chunk = try file.readChunk(row.chunk), chunk.part(row) != nil else {
                try lose(chunk: row.chunk)
                break
            }
            if state.isExpired(chunk.lastTime, in: lane) {
                try takeOut([row], lane, \.expired)
                break
            }
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
        // Nobody had this id before.
        loaded.batch.mayHaveBeenSent = false
        state.hold(loaded, isNew: true)
        return loaded.batch
    }

    /// Gives the first events of a row to a batch; what is left waits on.
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
        guard count > 0 || isFirst else { return nil }
        count = max(count, 1)
        return (count, lines.size(row.first..<row.first + count))
    }

    /// Notes that full chunks of that size, or as large as is asked for, may have been sent as they are.
    private mutating func allow(_ row: DeliveryRow, _ request: LeaseRequest?, in lane: Int) throws(QueueError) {
        let destination = state.figures.lanes[lane].destination
        let events = max(state.figures.lanes[lane].leaseEvents, row.events, request?.maxEvents ?? 0)
        let bytes = max(state.figures.lanes[lane].leaseBytes, row.bytes, request?.maxBytes ?? 0)
        try tables.run(
            "UPDATE destination SET lease_events = ?, lease_bytes = ? WHERE id = ?", events, bytes, destination)
        for index in state.figures.lanes.indices where state.figures.lanes[index].destination == destination {
            state.figures.lanes[index].leaseEvents = events
            state.figures.lanes[index].leaseBytes = bytes
        }
    }
}
