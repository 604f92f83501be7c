internal import EventLoops
internal import Model

/// Finds what to lease next from a lane, without changing any table.
struct LaneSearch {
    /// What a lane offers for the next lease.
    enum Candidate {
        /// A full chunk, with the id that was drawn when it was stored.
        case whole(DeliveryRow, BatchID)
        /// Rows of small chunks that together make a batch.
        case join([DeliveryRow])
        /// A row with events that may have expired or must not be sent, to be examined one by one first.
        case sift(DeliveryRow)
        /// No event waits, or those that wait were not found within the search's budget.
        case nothing
    }

    /// Most chunks joined into one batch; joining as many takes about 50 ms.
    private static let mostJoined = 2_000

    /// Index of the lane in `Figures.lanes`.
    private let place: Int
    private let lane: Lane
    private let held: HeldBatches
    private let lastChunkAtOpen: Int64
    private let sifter: Sifter
    private let file: QueueFile
    /// Where the next search may start: no row before this chunk waits.
    private(set) var cursor: Int64

    init(_ state: QueueState, _ lane: Int, _ file: QueueFile) {
        place = lane
        self.lane = state.figures.lanes[lane]
        held = state.held
        lastChunkAtOpen = state.environment.lastChunkAtOpen
        sifter = Sifter(state, lane, file)
        self.file = file
        cursor = self.lane.cursor
    }

    /// Finds what to lease next, from the lane's cursor on, and moves the cursor past rows in known
    /// batches.
    ///
    /// Events that a deadline makes urgent come first, if the request asks for them.
    mutating func next(_ request: LeaseRequest) throws(QueueError) -> Candidate {
        if let urgent = request.urgentBefore {
            let found = try scan(request, urgentBefore: urgent)
            if case .nothing = found {} else { return found }
        }
        if request.isNewest { return try newest() }
        return try scan(request, urgentBefore: nil)
    }

    /// Whether all of a row's events are of apps that the request does not want, or of unknown ones.
    private func isUnwanted(_ row: DeliveryRow, _ request: LeaseRequest) throws(QueueError) -> Bool {
        request.notOf.union([""]).isSuperset(of: try HolderTable(file).holders(of: row))
    }

    private func mayHaveBeenSent(_ row: DeliveryRow) -> Bool {
        held.mayHaveBeenSent(row, in: lane, lastChunkAtOpen: lastChunkAtOpen)
    }

    /// The lane's newest row that is in no batch yet. Gives up after 256 rows: if that many newer ones
    /// are in batches, a longer search would delay other calls.
    private func newest() throws(QueueError) -> Candidate {
        var budget = 256
        var result = Candidate.nothing
        try file.walkBack(lane.key) { row throws(QueueError) in
            budget -= 1
            guard budget > 0 else { return false }
            if row.isFormed { return true }
            if let id = row.batch, held[id] != nil { return true }
            if try sifter.isToBeSifted(row) {
                result = .sift(row)
            } else if let id = row.batch, mayHaveBeenSent(row) {
                result = .whole(row, id)
            } else {
                result = .join([row])
            }
            return false
        }
        return result
    }

    /// Walks over a lane's rows from the cursor on and collects rows until they fill a batch.
    ///
    /// If the first row is a full chunk, or has events that may have expired, the walk ends with it.
    /// Otherwise small chunks are collected. Full chunks between them are skipped, unless the request
    /// wants strict order. Rows beyond the budget wait for a later lease.
    private mutating func scan(
        _ request: LeaseRequest, urgentBefore: Timestamp?
    ) throws(QueueError) -> Candidate {
        // Number of rows to skip before giving up. A search for urgent events or for other apps must
        // look past many rows that it does not want.
        var budget = urgentBefore == nil && request.notOf.isEmpty ? 256 : 4_096
        var rows: [DeliveryRow] = []
        var events = 0
        var bytes = 0
        var result = Candidate.nothing
        var first: Int64?
        try file.walk(lane.key, from: cursor) { row throws(QueueError) in
            if let id = row.batch, held[id] != nil { return true }
            if first == nil {
                first = row.chunk
            }
            budget -= 1
            guard budget > 0 else { return false }
            if let urgentBefore, row.firstTime >= urgentBefore || !row.concerns(request.urgentFor) {
                return true
            }
            if row.isFormed { return true }
            if !request.notOf.isEmpty, try isUnwanted(row, request) { return true }
            if let id = row.batch {
                guard rows.isEmpty else { return !request.inOrder }
                let fits =
                    row.events <= request.maxEvents && (row.bytes <= request.maxBytes || row.events == 1)
                if try sifter.isToBeSifted(row) {
                    result = .sift(row)
                } else if fits || mayHaveBeenSent(row) {
                    result = .whole(row, id)
                } else {
                    rows = [row]
                }
                return false
            }
            if try sifter.isToBeSifted(row) {
                if rows.isEmpty {
                    result = .sift(row)
                }
                return false
            }
            rows.append(row)
            budget += 1
            events += row.events
            bytes += row.bytes
            return events < request.maxEvents && bytes < request.maxBytes
                && rows.count < LaneSearch.mostJoined
        }
        if let first {
            cursor = first
        }
        // The ledger counts waiting events and no row was found: rows are missing. Without a salvage,
        // which recreates them, the lane would wait forever.
        if urgentBefore == nil, first == nil, lane.waitingEvents > 0 {
            throw file.database.damage("rows of a lane are missing")
        }
        return rows.isEmpty ? result : .join(rows)
    }

    /// The lane's oldest or newest free batch: one that was given back, made by a settlement, or formed
    /// before this start.
    func nextFree(_ request: LeaseRequest) throws(QueueError) -> BatchID? {
        guard lane.batches.free > 0 else { return nil }
        let isNewest = request.free == .newest
        var heldFree = 0
        var next: (chunk: Int64, first: Int, id: BatchID)?
        /// Whether a batch that begins at this event comes before the best one so far.
        func isNext(_ chunk: Int64, _ first: Int) -> Bool {
            guard let next else { return true }
            return (chunk, first) < (next.chunk, next.first) ? !isNewest : isNewest
        }
        for (id, batch) in held where batch.lane == place && batch.status == .free {
            heldFree += 1
            guard !request.except.contains(id), let row = batch.rows.first else { continue }
            if isNext(row.chunk, row.first) {
                next = (row.chunk, row.first, id)
            }
        }
        // All free batches are known: no formed batch from before this start is left in the table.
        guard lane.batches.free > heldFree else { return next?.id }
        let order = isNewest ? "chunk DESC, first DESC" : "chunk, first"
        let formed = try file.statement(
            "SELECT chunk, first, batch FROM delivery INDEXED BY delivery_formed "
                + "WHERE state = 1 AND destination = ? AND priority = ? ORDER BY \(order)")
        formed.with(lane.destination, lane.priority)
        defer { formed.reset() }
        while try formed.step() {
            guard let id = BatchID(raw: formed.raw(2)), held[id] == nil, !request.except.contains(id) else {
                continue
            }
            return isNext(Int64(formed.integer(0)), formed.integer(1)) ? id : next?.id
        }
        return next?.id
    }
}
