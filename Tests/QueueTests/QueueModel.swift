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
        var cost: Int
        var isFull: Bool
        /// Those for whom a full one is no batch by itself.
        var otherBatches: [DestinationName] = []
        /// The least and the greatest event time.
        let times: ClosedRange<Timestamp>
        /// Its events in their order.
        var numbers: [Int]
        /// For how many it was accepted.
        var destinations = 1

        /// Whether it is a batch as it is stored.
        func isBatch(for lane: LaneKey) -> Bool { isFull && !otherBatches.contains(lane.destination) }

        /// The place of an event in it.
        func place(of number: Int) -> Int {
            // Most hold neighbours; those of dead letters do not.
            let guess = number - (numbers.first ?? 0)
            return numbers.indices.contains(guess) && numbers[guess] == number
                ? guess : numbers.firstIndex(of: number) ?? 0
        }
    }

    /// A rejected event that is kept.
    struct DeadLetter {
        let number: Int
        let lane: LaneKey
        let times: ClosedRange<Timestamp>
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
    /// Those that give up their oldest events where storing would wait.
    var skipping: Set<DestinationName> = []
    let maxAge: Duration
    /// Of destinations with one of their own.
    var maxAges: [DestinationName: Duration] = [:]
    var now: Timestamp

    var chunks: [Int: Chunk] = [:]
    var lastChunk = 0
    /// The events of each lane that are still there, with the batch that each is in.
    var lanes: [LaneKey: [Int: BatchID?]] = [:]
    /// The chunk of each event, in each lane: one that was sent again is in another.
    var chunkOf: [LaneKey: [Int: Int]] = [:]
    /// The bytes of each event's line.
    var sizes: [Int: Int] = [:]
    /// Whose events are; of others nobody knows.
    var holders: [Int: String] = [:]
    /// For whom each was stored: those of a retry that are another's, too, go in chunks of their own.
    var wantedBy: [Int: Set<DestinationName>] = [:]
    /// The oldest first.
    var dead: [DeadLetter] = []
    var batches: [BatchID: Batch] = [:]
    var ledgers: [LaneKey: Ledger] = [:]
    /// The id under which a destination has seen a full chunk.
    var drawn: [DestinationName: [Int: BatchID]] = [:]
    /// The chunks up to this one were there when the process began.
    private var lastOfEarlier = 0
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

    func isExpired(_ time: Timestamp, _ lane: LaneKey) -> Bool {
        now - time > maxAges[lane.destination] ?? maxAge
    }

    func isExpired(_ chunk: Chunk, _ lane: LaneKey) -> Bool { isExpired(chunk.times.upperBound, lane) }

    func chunk(_ number: Int, _ lane: LaneKey) -> Chunk? { chunkOf[lane]?[number].flatMap { chunks[$0] } }

    /// Events in the order of acceptance: by chunk, and by their place in it.
    func ordered(_ numbers: some Sequence<Int>, _ lane: LaneKey) -> [Int] {
        numbers.map { number in
            let chunk = chunk(number, lane)
            return (chunk?.id ?? 0, chunk?.place(of: number) ?? 0, number)
        }
        .sorted { ($0.0, $0.1) < ($1.0, $1.1) }.map(\.2)
    }

    func waiting(_ lane: LaneKey) -> [Int] {
        ordered((lanes[lane] ?? [:]).filter { $0.value == nil }.keys, lane)
    }

    func waitingCount(_ lane: LaneKey) -> Int { (lanes[lane] ?? [:]).values.count { $0 == nil } }

    // MARK: Storing

    /// Stores a chunk; false if it was refused.
    mutating func admit(_ new: NewChunk, cost: Int, numbers: Range<Int>) -> Bool {
        if stored + cost > cap {
            sweep()
            // Refusing it costs nobody anything.
            let before = self
            while stored + cost > cap {
                guard evictOne(new.priority) else {
                    self = before
                    return false
                }
            }
        }
        lastChunk += 1
        stored += cost
        chunks[lastChunk] = Chunk(
            id: lastChunk, priority: new.priority, cost: cost, isFull: new.isFull,
            otherBatches: new.otherBatches,
            times: new.eventTimes, numbers: Array(numbers), destinations: new.destinations.count)
        for number in numbers { sizes[number] = new.bytes / new.events }
        for number in numbers { wantedBy[number] = Set(new.destinations) }
        for destination in new.destinations {
            let key = LaneKey(destination: destination, priority: new.priority)
            for number in numbers {
                lanes[key]?[number] = .some(nil)
                chunkOf[key, default: [:]][number] = lastChunk
            }
            ledgers[key]?.accepted += numbers.count
            ledgers[key]?.queued += numbers.count
        }
        return true
    }

    private mutating func evictOne(_ limit: Priority) -> Bool {
        for priority in Priority.allCases where priority <= limit {
            let candidates = chunks.values.filter { $0.priority == priority }.sorted { $0.id < $1.id }
            let givers = givers(candidates)
            for chunk in candidates {
                let shares = shares(chunk)
                let part = shares.reduce(0) { $0 + (givers.contains($1.holder) ? $1.cost : 0) }
                guard part >= chunk.cost / 16 else { continue }
                if shares.allSatisfy({ givers.contains($0.holder) }) {
                    guard !isInFlight(chunk) else { continue }
                    evict(chunk)
                } else {
                    // What was there before may have been sent as it is.
                    guard chunk.id > lastOfEarlier, isUntouched(chunk) else { continue }
                    cut(chunk, givers)
                }
                return true
            }
            if let chunk = candidates.first(where: { !isInFlight($0) }) {
                evict(chunk)
                return true
            }
        }
        return false
    }

    /// What each run of events of one holder is of a chunk's cost.
    func shares(_ chunk: Chunk) -> [(holder: String, cost: Int)] {
        var runs: [(holder: String, bytes: Int)] = []
        for number in chunk.numbers {
            let (holder, size) = (holders[number] ?? "", sizes[number] ?? 0)
            if runs.last?.holder == holder {
                runs[runs.count - 1].bytes += size
            } else {
                runs.append((holder, size))
            }
        }
        let all = runs.reduce(0) { $0 + $1.bytes }
        // Where nobody knows whose a chunk is, it counts as a whole.
        if runs.allSatisfy({ $0.holder.isEmpty }) { return [("", chunk.cost)] }
        return runs.map { ($0.holder, Int(Double(chunk.cost) * (Double($0.bytes) / Double(all)))) }
    }

    /// What each holder has of some chunks.
    func held(_ chunks: some Sequence<Chunk>) -> [String: Int] {
        chunks.flatMap { shares($0) }.reduce(into: [:]) { $0[$1.holder, default: 0] += $1.cost }
    }

    /// Who holds most, or nearly as much, and no less than an equal part.
    private func givers(_ chunks: [Chunk]) -> Set<String> {
        let held = held(chunks)
        let most = held.values.max() ?? 0
        let all = held.values.reduce(0, +)
        return Set(held.filter { $0.value >= most - most / 8 && $0.value * held.count >= all }.keys)
    }

    /// Whether no batch has any of a chunk.
    private func isUntouched(_ chunk: Chunk) -> Bool {
        !lanes.contains { lane, events in
            lane.priority == chunk.priority
                && chunk.numbers.contains {
                    chunkOf[lane]?[$0] == chunk.id && events[$0].map { $0 != nil } ?? false
                }
        }
    }

    /// Takes out of a chunk what some holders have of it.
    private mutating func cut(_ chunk: Chunk, _ givers: Set<String>) {
        for lane in lanes.keys where lane.priority == chunk.priority {
            let gone = chunk.numbers.filter {
                chunkOf[lane]?[$0] == chunk.id && givers.contains(holders[$0] ?? "")
            }
            remove(gone, lane, \.evicted)
        }
        guard var rest = chunks[chunk.id] else { return }
        rest.numbers.removeAll { givers.contains(holders[$0] ?? "") }
        rest.isFull = false
        rest.cost = rest.numbers.reduce(0) { $0 + (sizes[$1] ?? 0) } + 64 * (1 + rest.destinations)
        stored -= chunk.cost - rest.cost
        chunks[chunk.id] = rest
    }

    private mutating func evict(_ chunk: Chunk) {
        for lane in lanes.keys where lane.priority == chunk.priority {
            for number in chunk.numbers where chunkOf[lane]?[number] == chunk.id {
                guard let place = lanes[lane]?[number] else { continue }
                if let id = place, let batch = batches[id] {
                    remove(batch.numbers, lane, \.evicted)
                    batches[id] = nil
                } else {
                    remove([number], lane, \.evicted)
                }
            }
        }
    }

    /// What an event counts for where destinations are compared.
    private func bytes(_ name: DestinationName) -> Int {
        lanes.filter { $0.key.destination == name }.values.flatMap(\.keys).reduce(0) { $0 + (sizes[$1] ?? 0) }
    }

    /// Those who hold more than an equal part, and are to skip.
    private var behind: Set<DestinationName> {
        let names = Set(lanes.keys.map(\.destination))
        let all = names.reduce(0) { $0 + bytes($1) }
        return skipping.filter { bytes($0) * names.count > all }
    }

    /// Where storing would wait, those who are behind give up what nobody else waits for.
    mutating func giveWay(to needs: Int) {
        for priority in Priority.allCases {
            for chunk in chunks.values.filter({ $0.priority == priority }).sorted(by: { $0.id < $1.id }) {
                guard stored + needs > cap else { return }
                let wanting = lanes.keys.filter { lane in
                    lane.priority == priority && chunk.numbers.contains { chunkOf[lane]?[$0] == chunk.id }
                }
                guard chunks[chunk.id] != nil, Set(wanting.map(\.destination)).isSubset(of: behind),
                    !isInFlight(chunk)
                else { continue }
                evict(chunk)
            }
        }
    }

    private func isInFlight(_ chunk: Chunk) -> Bool {
        for (lane, events) in lanes where lane.priority == chunk.priority {
            for number in chunk.numbers where chunkOf[lane]?[number] == chunk.id {
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
            if let chunk = chunkOf[lane]?.removeValue(forKey: number) { touched.insert(chunk) }
        }
        ledgers[lane]?.queued -= numbers.count
        ledgers[lane]?[keyPath: fate] += numbers.count
        for id in touched {
            guard let chunk = chunks[id] else { continue }
            let isNeeded = lanes.keys.contains { lane in
                lane.priority == chunk.priority && chunk.numbers.contains { chunkOf[lane]?[$0] == id }
            }
            if !isNeeded {
                chunks[id] = nil
                stored -= chunk.cost
            }
        }
    }

    /// Takes out what is too old and not in flight, at the head of each lane as far as all of it may be.
    @discardableResult
    mutating func sweep() -> Int {
        var expired = 0
        for lane in lanes.keys {
            var head: [Int] = []
            for number in ordered((lanes[lane] ?? [:]).keys, lane) {
                if let place = lanes[lane]?[number], let id = place, batches[id]?.isLeased == true {
                    continue
                }
                guard let chunk = chunk(number, lane), isExpired(chunk.times.lowerBound, lane) else { break }
                head.append(number)
            }
            for number in head {
                // Gone with the batch of one before it.
                guard let place = lanes[lane]?[number] else { continue }
                guard let chunk = chunk(number, lane), isExpired(chunk, lane) else { break }
                guard let id = place, let batch = batches[id] else {
                    remove([number], lane, \.expired)
                    expired += 1
                    continue
                }
                guard isExpired(batch) else { continue }
                remove(batch.numbers, lane, \.expired)
                batches[id] = nil
                expired += batch.numbers.count
            }
        }
        return expired
    }

    func isExpired(_ batch: Batch) -> Bool {
        batch.numbers.allSatisfy { number in
            chunk(number, batch.lane).map { isExpired($0, batch.lane) } ?? false
        }
    }

    // MARK: Dead letters

    /// Sends dead letters of a destination again, in pages of 500 of which each is done as a whole.
    ///
    /// - Returns: how many; nil if there was no room for a page.
    mutating func retry(_ destination: DestinationName?, atMost events: Int) -> Int? {
        let chosen = dead.filter { destination ?? $0.lane.destination == $0.lane.destination }
        for start in stride(from: 0, to: chosen.count, by: 500) {
            let saved = self
            var page = chosen[start..<min(start + 500, chosen.count)]
            while let first = page.first {
                let run = page.prefix {
                    $0.lane == first.lane && wantedBy[$0.number] == wantedBy[first.number]
                }
                .prefix(events)
                page.removeFirst(run.count)
                let cost = run.reduce(0) { $0 + (sizes[$1.number] ?? 0) } + 64 * 2
                guard stored + cost <= cap else {
                    self = saved
                    return nil
                }
                let times = run.reduce(first.times) {
                    min($0.lowerBound, $1.times.lowerBound)...max($0.upperBound, $1.times.upperBound)
                }
                lastChunk += 1
                stored += cost
                chunks[lastChunk] = Chunk(
                    id: lastChunk, priority: first.lane.priority, cost: cost, isFull: false, times: times,
                    numbers: run.map(\.number))
                for letter in run {
                    lanes[letter.lane]?[letter.number] = .some(nil)
                    chunkOf[letter.lane, default: [:]][letter.number] = lastChunk
                }
                ledgers[first.lane]?.retried += run.count
                ledgers[first.lane]?.queued += run.count
            }
            let gone = Set(
                chosen[start..<min(start + 500, chosen.count)].map { [$0.lane.hashValue, $0.number] })
            dead.removeAll { gone.contains([$0.lane.hashValue, $0.number]) }
        }
        return chosen.count
    }

    /// All free batches of a lane, the oldest first.
    func free(_ lane: LaneKey) -> [BatchID] {
        batches.filter { $0.value.lane == lane && !$0.value.isLeased }
            .map { id, batch in
                let first = batch.numbers.first ?? 0
                let chunk = chunk(first, lane)
                return (chunk?.id ?? 0, chunk?.place(of: first) ?? 0, id)
            }
            .sorted { ($0.0, $0.1) < ($1.0, $1.1) }.map(\.2)
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
        lastOfEarlier = lastChunk
        refusedBytes = nil
    }
}
