import EventLoops
import Model

/// What the queue must do, in plain memory and event by event: slow, obvious, without SQL.
struct QueueModel {
    struct LaneKey: Hashable {
        let destination: DestinationName
        let priority: Priority
    }

    struct Chunk {
        let id: Int
        let priority: Priority
        let cost: Int
        let isFull: Bool
        let time: Timestamp
        let numbers: Range<Int>
    }

    struct Batch {
        let lane: LaneKey
        let numbers: [Int]
        /// Whether it is one full chunk under the id drawn when that was stored.
        let isWholeChunk: Bool
        var isLeased: Bool
    }

    var cap: Int
    var evicts: Bool
    let maxAge: Duration
    var now: Timestamp

    var chunks: [Int: Chunk] = [:]
    var lastChunk = 0
    /// The events of each lane that are still there, with the batch that each is in.
    var lanes: [LaneKey: [Int: BatchID?]] = [:]
    var chunkOf: [Int: Int] = [:]
    var batches: [BatchID: Batch] = [:]
    var ledgers: [LaneKey: Ledger] = [:]
    /// The id under which a destination has seen a full chunk.
    var drawn: [DestinationName: [Int: BatchID]] = [:]
    /// What a commit that has to wait needs; the queue may let it in before the model does.
    var refusedBytes: Int?

    init(destinations: [DestinationName], cap: Int, evicts: Bool, maxAge: Duration, now: Timestamp) {
        self.cap = cap
        self.evicts = evicts
        self.maxAge = maxAge
        self.now = now
        for destination in destinations {
            for priority in Priority.allCases {
                let key = LaneKey(destination: destination, priority: priority)
                lanes[key] = [:]
                ledgers[key] = Ledger()
            }
        }
    }

    /// The cost of all chunks.
    var stored = 0

    func isExpired(_ chunk: Chunk) -> Bool { now - chunk.time > maxAge }

    func waiting(_ lane: LaneKey) -> [Int] { (lanes[lane] ?? [:]).filter { $0.value == nil }.keys.sorted() }

    func waitingCount(_ lane: LaneKey) -> Int { (lanes[lane] ?? [:]).values.count { $0 == nil } }

    // MARK: Storing

    /// Stores a chunk; false if it was refused.
    mutating func admit(_ new: NewChunk, cost: Int, numbers: Range<Int>) -> Bool {
        if stored + cost > cap {
            sweep()
            while stored + cost > cap {
                guard evictOne(new.priority) else { return false }
            }
        }
        lastChunk += 1
        stored += cost
        chunks[lastChunk] = Chunk(
            id: lastChunk, priority: new.priority, cost: cost, isFull: new.isFull,
            time: new.eventTimes.upperBound, numbers: numbers)
        for number in numbers { chunkOf[number] = lastChunk }
        for destination in new.destinations {
            let key = LaneKey(destination: destination, priority: new.priority)
            for number in numbers { lanes[key]?[number] = .some(nil) }
            ledgers[key]?.accepted += numbers.count
            ledgers[key]?.queued += numbers.count
        }
        return true
    }

    private mutating func evictOne(_ limit: Priority) -> Bool {
        for priority in Priority.allCases where priority <= limit {
            let candidates = chunks.values.filter { $0.priority == priority && !isInFlight($0) }
            if let chunk = candidates.min(by: { $0.id < $1.id }) {
                for lane in lanes.keys where lane.priority == priority {
                    for number in chunk.numbers {
                        guard let place = lanes[lane]?[number] else { continue }
                        if let id = place, let batch = batches[id] {
                            remove(batch.numbers, lane, \.evicted)
                            batches[id] = nil
                        } else {
                            remove([number], lane, \.evicted)
                        }
                    }
                }
                return true
            }
        }
        return false
    }

    private func isInFlight(_ chunk: Chunk) -> Bool {
        for (lane, events) in lanes where lane.priority == chunk.priority {
            for number in chunk.numbers {
                if let place = events[number], let id = place, batches[id]?.isLeased == true { return true }
            }
        }
        return false
    }

    // MARK: Leaving

    mutating func remove(_ numbers: [Int], _ lane: LaneKey, _ fate: WritableKeyPath<Ledger, Int>) {
        var touched: Set<Int> = []
        for number in numbers {
            lanes[lane]?[number] = nil
            if let chunk = chunkOf[number] { touched.insert(chunk) }
        }
        ledgers[lane]?.queued -= numbers.count
        ledgers[lane]?[keyPath: fate] += numbers.count
        for id in touched {
            guard let chunk = chunks[id] else { continue }
            let isNeeded = lanes.contains { lane, events in
                lane.priority == chunk.priority && chunk.numbers.contains { events[$0] != nil }
            }
            if !isNeeded {
                chunks[id] = nil
                stored -= chunk.cost
            }
        }
    }

    /// Takes out what is too old and not in flight.
    @discardableResult
    mutating func sweep() -> Int {
        var expired = 0
        for (id, batch) in batches where !batch.isLeased && isExpired(batch) {
            remove(batch.numbers, batch.lane, \.expired)
            batches[id] = nil
            expired += batch.numbers.count
        }
        for chunk in chunks.values where isExpired(chunk) {
            for lane in lanes.keys {
                let left = chunk.numbers.filter { lanes[lane]?[$0] == .some(.none) }
                remove(Array(left), lane, \.expired)
                expired += left.count
            }
        }
        return expired
    }

    func isExpired(_ batch: Batch) -> Bool {
        batch.numbers.allSatisfy { number in
            chunkOf[number].flatMap { chunks[$0] }.map { isExpired($0) } ?? false
        }
    }

    /// All free batches of a lane, the oldest first.
    func free(_ lane: LaneKey) -> [BatchID] {
        batches.filter { $0.value.lane == lane && !$0.value.isLeased }
            .sorted { ($0.value.numbers.first ?? 0) < ($1.value.numbers.first ?? 0) }.map(\.key)
    }

    /// The process ends: leases are gone, and a full chunk that was leased as it is waits again.
    mutating func reopen() {
        for (id, batch) in batches {
            if batch.isWholeChunk {
                for number in batch.numbers { lanes[batch.lane]?[number] = .some(nil) }
                batches[id] = nil
            } else {
                batches[id]?.isLeased = false
            }
        }
        refusedBytes = nil
    }
}
