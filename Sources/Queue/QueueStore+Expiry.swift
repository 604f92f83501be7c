internal import Logs
internal import Model

extension QueueStore {
    /// Takes out what is too old to be sent, from the oldest on, as far as all is too old.
    ///
    /// What is sent is looked at by itself before it is sent; this is for what waits for a destination that is down.
    /// A chunk goes when its newest event is too old.
    /// - Returns: how many deliveries expired.
    @discardableResult
    public func expire() async throws(QueueError) -> Int {
        var total = 0
        while true {
            let expired = try await write { () throws(QueueError) in
                try self.expireOldest(try self.opened(), atMost: 1_000)
            }
            total += expired
            if expired == 0 { return total }
        }
    }

    /// Takes out the oldest rows of each lane while they are too old, inside the running transaction.
    @discardableResult
    func expireOldest(_ file: QueueFile, atMost limit: Int) throws(QueueError) -> Int {
        guard mayExpire else { return 0 }
        var expired = 0
        for lane in figures.lanes.indices where figures.lanes[lane].ledger.queued > 0 {
            for row in try oldestExpired(lane, file, atMost: limit) {
                var rows = [row]
                if row.isFormed, let id = row.batch {
                    // A batch goes whole, once; its other rows may stand in the list as well.
                    guard let batch = try file.lookUp(id), try isExpired(batch.rows, file) else { continue }
                    rows = batch.rows
                }
                try takeOut(rows, lane, \.expired, of: file)
                expired += rows.reduce(0) { $0 + $1.events }
            }
        }
        if expired > 0 { log.warning("events expired", ["deliveries": expired]) }
        return expired
    }

    /// The rows at the head of a lane whose chunks are too old and that nobody has in flight.
    private func oldestExpired(_ lane: Int, _ file: QueueFile, atMost limit: Int) throws(QueueError) -> [DeliveryRow] {
        var head: [DeliveryRow] = []
        let start = figures.lanes[lane]
        try file.walk(destination: start.destination, priority: start.priority, from: 0) { row in
            if isInFlight(row) { return true }
            // The least event time says that the chunk need not be looked at.
            guard isExpired(row.firstTime) else { return false }
            head.append(row)
            return head.count < limit
        }
        var expired: [DeliveryRow] = []
        for row in head {
            guard let facts = try file.chunkFacts(row.chunk), isExpired(facts.lastTime) else { break }
            expired.append(row)
        }
        return expired
    }

    private func isExpired(_ rows: [DeliveryRow], _ file: QueueFile) throws(QueueError) -> Bool {
        for row in rows {
            guard let facts = try file.chunkFacts(row.chunk), isExpired(facts.lastTime) else { return false }
        }
        return true
    }
}
