internal import EventLoops
internal import Model

// What comes next in a lane, without changing anything.
extension QueueState {
    /// What comes next in a lane.
    enum Candidate {
        /// A full chunk, under the id that was drawn when it was stored.
        case whole(DeliveryRow, BatchID)
        case join([DeliveryRow])
        /// A row of which some events may be too old to be sent.
        case sift(DeliveryRow)
        case nothing
    }

    /// So many chunks make a batch at most: the largest batch of 50 events each, and 50 ms of work.
    private static let mostJoined = 2_000

    /// Looks for what comes next, from the lane's cursor on, and moves the cursor over what is held.
    mutating func next(in lane: Int, _ request: LeaseRequest, of file: QueueFile) throws(QueueError) -> Candidate {
        if let urgent = request.urgentBefore {
            let found = try scan(lane, request, urgentBefore: urgent, file)
            if case .nothing = found {} else { return found }
        }
        return try scan(lane, request, urgentBefore: nil, file)
    }

    private mutating func scan(
        _ lane: Int, _ request: LeaseRequest, urgentBefore: Timestamp?, _ file: QueueFile
    ) throws(QueueError) -> Candidate {
        // How far it looks over what it does not take: for urgent events among others, and past batches formed before.
        var budget = urgentBefore == nil && request.notOf.isEmpty ? 256 : 4_096
        var rows: [DeliveryRow] = []
        var events = 0
        var bytes = 0
        var result = Candidate.nothing
        var cursor: Int64?
        let start = figures.lanes[lane]
        try file.walk(start.key, from: start.cursor) { row throws(QueueError) in
            if let id = row.batch, held[id] != nil { return true }
            if cursor == nil { cursor = row.chunk }
            budget -= 1
            guard budget > 0 else { return false }
            if let urgentBefore, row.firstTime >= urgentBefore || !row.concerns(request.urgentFor) { return true }
            if row.isFormed { return true }
            if !request.notOf.isEmpty, request.notOf.union([""]).isSuperset(of: try file.holders(of: row)) {
                return true
            }
            if let id = row.batch {
                guard rows.isEmpty else { return !request.inOrder }
                let fits = row.events <= request.maxEvents && (row.bytes <= request.maxBytes || row.events == 1)
                if isToBeSifted(row, in: lane) {
                    result = .sift(row)
                } else if fits || mayHaveBeenSent(row, in: start) {
                    result = .whole(row, id)
                } else {
                    rows = [row]
                }
                return false
            }
            if isToBeSifted(row, in: lane) {
                if rows.isEmpty { result = .sift(row) }
                return false
            }
            rows.append(row)
            budget += 1
            events += row.events
            bytes += row.bytes
            return events < request.maxEvents && bytes < request.maxBytes && rows.count < QueueState.mostJoined
        }
        if let cursor { figures.lanes[lane].cursor = cursor }
        // Events are counted and their rows are not there: without a salvage, which makes them anew, the lane would wait without end.
        if urgentBefore == nil, cursor == nil, start.waitingEvents > 0 {
            throw file.database.damage("rows of a lane that are missing")
        }
        return rows.isEmpty ? result : .join(rows)
    }

    /// The lane's oldest or newest batch that is free: given back, made by a settlement, or formed before this start.
    func nextFree(in lane: Int, _ request: LeaseRequest, of file: QueueFile) throws(QueueError) -> BatchID? {
        guard figures.lanes[lane].freeBatches > 0 else { return nil }
        let isNewest = request.free == .newest
        var heldFree = 0
        var next: (chunk: Int64, first: Int, id: BatchID)?
        func isNext(_ chunk: Int64, _ first: Int) -> Bool {
            guard let next else { return true }
            return (chunk, first) < (next.chunk, next.first) ? !isNewest : isNewest
        }
        for (id, batch) in held where batch.lane == lane && batch.status == .free {
            heldFree += 1
            guard !request.except.contains(id), let row = batch.rows.first else { continue }
            if isNext(row.chunk, row.first) { next = (row.chunk, row.first, id) }
        }
        guard figures.lanes[lane].freeBatches > heldFree else { return next?.id }
        let order = isNewest ? "chunk DESC, first DESC" : "chunk, first"
        let formed = try file.statement(
            "SELECT chunk, first, batch FROM delivery INDEXED BY delivery_formed "
                + "WHERE state = 1 AND destination = ? AND priority = ? ORDER BY \(order)")
        formed.take(figures.lanes[lane].destination, figures.lanes[lane].priority)
        defer { formed.reset() }
        while try formed.step() {
            guard let id = BatchID(raw: formed.raw(2)), held[id] == nil, !request.except.contains(id) else { continue }
            return isNext(Int64(formed.integer(0)), formed.integer(1)) ? id : next?.id
        }
        return next?.id
    }
}
