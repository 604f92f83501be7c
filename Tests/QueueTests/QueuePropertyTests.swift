import EventLoops
import Glibc
import Logs
import Model
import TestKit
import Testing

@testable import Queue

@Suite("Queue against its model")
struct QueuePropertyTests {
    static let operations = getenv("QUEUE_OPERATIONS").flatMap { Int(String(cString: $0)) } ?? 10_000

    /// Every figure is compared after so many operations; when one seed is asked for, after each one.
    static let isSearching = getenv("SPOOLSHIP_SEED").map { String(cString: $0) != "random" } ?? false

    @Test("in thousands of random operations every event, figure and eviction is as in the model")
    func everythingAsInTheModel() async throws {
        let cases: [(Bool, Set<DestinationName>)] = [(true, []), (false, []), (false, ["other", "third"])]
        for (evicts, skipping) in cases {
            let seed = Seeds.one(13)
            var run = try PropertyRun(seed: seed, evicts: evicts, skipping: skipping)
            for step in 0..<QueuePropertyTests.operations {
                do {
                    try await run.step()
                    if step % 50 == 0 || QueuePropertyTests.isSearching { try await run.compare() }
                } catch {
                    Issue.record(
                        "\(Seeds.again(seed, "QUEUE_OPERATIONS=\(step + 1)")), evicts \(evicts), skipping \(skipping), step \(step), operation \(run.last): \(error)"
                    )
                    return
                }
            }
            try await run.end()
        }
    }
}

struct Difference: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

/// A queue and its model, kept in step.
struct PropertyRun {
    typealias LaneKey = QueueModel.LaneKey

    let fixture: QueueFixture
    var store: QueueStore
    var model: QueueModel
    var maker = ChunkMaker()
    var random: SplitMix64
    let destinations: [DestinationName] = ["main", "other", "third"]
    /// One lets events wait for less than the others do.
    static let maxAges: [DestinationName: Duration] = ["third": .seconds(250)]
    let cap = 24 << 10
    let evicts: Bool
    let skipping: Set<DestinationName>
    let lanes: [LaneKey]
    /// What the last operation was, for the message of a difference.
    var last = 0

    init(seed: UInt64, evicts: Bool, skipping: Set<DestinationName>) throws {
        random = SplitMix64(seed: seed)
        self.evicts = evicts
        self.skipping = skipping
        fixture = try QueueFixture(in: "/dev/shm")
        model = QueueModel(
            destinations: destinations, cap: cap, evicts: evicts, maxAge: .seconds(600),
            now: fixture.time.wallTime)
        model.maxAges = PropertyRun.maxAges
        model.skipping = skipping
        lanes = destinations.flatMap { name in
            Priority.allCases.map { LaneKey(destination: name, priority: $0) }
        }
        store = try PropertyRun.open(fixture, destinations, cap, evicts, skipping)
    }

    static func open(
        _ fixture: QueueFixture, _ destinations: [DestinationName], _ cap: Int, _ evicts: Bool,
        _ skipping: Set<DestinationName>
    ) throws -> QueueStore {
        try fixture.open {
            $0.destinations = destinations
            $0.maxSize = cap
            $0.whenFull = evicts ? .evict : .wait
            $0.skipping = skipping
            $0.maxAge = .seconds(600)
            $0.maxAges = PropertyRun.maxAges
            $0.durability = .crash
            $0.batchEvents = 20
            $0.deadLettersMaxSize = 64 << 20
        }
    }

    mutating func step() async throws {
        let choice = Int.random(in: 0..<100, using: &random)
        last = choice
        switch choice {
        case 0..<30: try await storeSome()
        case 30..<60: try await leaseNext()
        case 60..<85: try await settle()
        case 85..<90: await release()
        case 90..<95: try await leaseAgain()
        case 95..<97: try await passTime()
        case 97: try await reopen()
        case 98: if Int.random(in: 0..<20, using: &random) == 0 { try await discard() }
        case 99: try await sendDeadLettersAgain()
        default: break
        }
    }

    // MARK: Operations

    private mutating func storeSome() async throws {
        var commit = Commit()
        var ranges: [Range<Int>] = []
        maker.time = fixture.time.wallTime
        for _ in 0..<Int.random(in: 1...3, using: &random) {
            let isFull = Bool.random(using: &random)
            let events = isFull ? 20 : Int.random(in: 1...12, using: &random)
            let count = Int.random(in: 1...3, using: &random)
            let chosen = Array(destinations.shuffled(using: &random).prefix(count))
            let first = maker.next
            var chunk = maker.chunk(
                events, priority: Int.random(in: 0..<4, using: &random) == 0 ? .critical : .normal,
                to: chosen,
                size: Int.random(in: 10...60, using: &random), full: isFull)
            // Which destinations have batches of another size changes with the configuration.
            chunk.otherBatches = destinations.filter { _ in Int.random(in: 0..<4, using: &random) == 0 }
            if evicts { share(&chunk, first) }
            commit.chunks.append(chunk)
            ranges.append(first..<maker.next)
            commit.read += events
        }
        let costs = commit.chunks.map { $0.frame.count + 64 * (1 + $0.destinations.count) }
        let needs = costs.reduce(0, +)
        if !evicts {
            let wasRefusing = store.snapshot.accepting != .all
            let result = try await store.store(commit)
            // A transaction of its own, for acknowledgements, may have found room in between.
            let looked = !wasRefusing || result != .wait(.full)
            // Also when its word to wait is a new one.
            let evicted = store.snapshot.lanes.reduce(0) { $0 + $1.ledger.evicted }
            let gaveWay = evicted > model.ledgers.values.reduce(0) { $0 + $1.evicted }
            if (looked || gaveWay) && model.stored + needs > cap {
                model.sweep()
                model.giveWay(to: needs)
            }
            if result == .wait(.full) {
                guard wasRefusing || model.stored + needs > cap else { throw Difference("waits with room") }
                if !wasRefusing { model.refusedBytes = needs }
                return
            }
            guard result == .stored(refused: 0), model.stored + needs <= cap else {
                throw Difference("\(result) for \(needs) bytes, \(model.stored) are stored")
            }
        }
        let result = evicts ? try await store.store(commit) : .stored(refused: 0)
        var refused = 0
        for (index, chunk) in commit.chunks.enumerated()
        where !model.admit(chunk, cost: costs[index], numbers: ranges[index]) {
            refused += chunk.events
        }
        guard result == .stored(refused: refused) else {
            throw Difference("\(result), expected \(refused) refused")
        }
    }

    /// Makes runs of a chunk's events some apps' each, one app's more than the others'. Of some chunks nobody knows whose they are.
    private mutating func share(_ chunk: inout NewChunk, _ first: Int) {
        guard Int.random(in: 0..<10, using: &random) > 0 else { return }
        let size = chunk.bytes / chunk.events
        var next = 0
        while next < chunk.events {
            let count = Int.random(in: 1...chunk.events - next, using: &random)
            let app = ["greedy", "greedy", "a", "b", "c"].randomElement(using: &random) ?? ""
            chunk.origins.append(
                EventOrigin(
                    app: app, path: "", offsets: Array(repeating: 0, count: count), bytes: count * size))
            for number in first + next..<first + next + count { model.holders[number] = app }
            next += count
        }
    }

    private mutating func leaseNext() async throws {
        guard let lane = lanes.randomElement(using: &random) else { return }
        let limit = [20, 7, 60, 1].randomElement(using: &random) ?? 20
        // Free batches that have expired go when they are looked at.
        var free = model.free(lane)
        while let first = free.first, let batch = model.batches[first], model.isExpired(batch) {
            model.remove(batch.numbers, lane, \.expired)
            model.batches[first] = nil
            free.removeFirst()
        }
        let got = try await store.leaseNext(request(lane.destination, lane.priority, events: limit))
        if let first = free.first {
            guard let got, got.header.id == first, numbers(got) == model.batches[first]?.numbers else {
                throw Difference("the oldest free batch was not taken up")
            }
            model.batches[first]?.isLeased = true
            return
        }
        expireHead(lane)
        let waiting = model.waiting(lane)
        guard let got else {
            guard waiting.isEmpty else { throw Difference("nothing leased of \(waiting.count) that wait") }
            return
        }
        let taken = numbers(got)
        guard taken.first == waiting.first, taken == model.ordered(taken, lane),
            taken.allSatisfy({ waiting.contains($0) })
        else {
            throw Difference("leased \(taken) of \(waiting.prefix(40))")
        }
        let chunk = taken.first.flatMap { model.chunk($0, lane) }
        let isWhole = chunk.map { $0.isBatch(for: lane) && $0.numbers == taken } ?? false
        guard taken.count <= limit || isWhole else {
            throw Difference("\(taken.count) events instead of \(limit)")
        }
        if isWhole, let chunk, taken.count <= 20, got.parts.count == 1 {
            let known = model.drawn[lane.destination]?[chunk.id]
            guard known == nil || known == got.header.id else {
                throw Difference("a full chunk changed its id")
            }
            model.drawn[lane.destination, default: [:]][chunk.id] = got.header.id
        }
        for number in taken { model.lanes[lane]?[number] = .some(got.header.id) }
        model.batches[got.header.id] = .init(
            lane: lane, numbers: taken, isWholeChunk: isWhole, isLeased: true)
        try expireAmong(lane)
    }

    /// What was found too old while a batch was formed, behind what went into it: dead letters sent again are older than
    /// their neighbours.
    private mutating func expireAmong(_ lane: LaneKey) throws {
        let expired = store.snapshot.lane(lane.destination, lane.priority)?.ledger.expired ?? 0
        guard let known = model.ledgers[lane]?.expired, expired > known else { return }
        let row = model.waiting(lane).first { number in
            model.chunk(number, lane).map { model.isExpired($0, lane) } ?? false
        }
        guard let row, let chunk = model.chunk(row, lane) else {
            throw Difference("something expired too soon")
        }
        // By where they are now: an event that became a dead letter again, and was sent again, is in another chunk.
        model.remove(model.waiting(lane).filter { model.chunk($0, lane)?.id == chunk.id }, lane, \.expired)
    }

    /// What is too old at the head of a lane goes when something is asked of it.
    private mutating func expireHead(_ lane: LaneKey) {
        for number in model.waiting(lane) {
            guard let chunk = model.chunk(number, lane), model.isExpired(chunk, lane) else { return }
            model.remove([number], lane, \.expired)
        }
    }

    private mutating func settle() async throws {
        let leased = model.batches.filter(\.value.isLeased).keys.sorted()
        guard let id = leased.randomElement(using: &random), let batch = model.batches[id] else { return }
        let failure = Failure(kind: .status, status: 400, message: "", excerpt: "")
        var parts: [Settlement.Part] = []
        let isPlain = Int.random(in: 0..<3, using: &random) > 0
        var next = 0
        while next < batch.numbers.count {
            let end =
                isPlain ? batch.numbers.count : Int.random(in: next + 1...batch.numbers.count, using: &random)
            let fate: Settlement.Disposition =
                switch isPlain ? 0 : Int.random(in: 0..<4, using: &random) {
                case 0: .acknowledged
                case 1: .deadLetter(failure)
                case 2: .again(group: 1)
                default: .again(group: 2)
                }
            parts.append(.init(next..<end, fate))
            next = end
        }
        let children = try await store.settle(Settlement(batch: id, parts: parts))
        model.batches[id] = nil
        var groups: [Int: [Int]] = [:]
        for part in parts {
            let events = Array(batch.numbers[part.events])
            switch part.disposition {
            case .acknowledged: model.remove(events, batch.lane, \.acknowledged)
            case .deadLetter:
                for number in events {
                    guard let chunk = model.chunk(number, batch.lane) else { continue }
                    model.dead.append(.init(number: number, lane: batch.lane, times: chunk.times))
                }
                model.remove(events, batch.lane, \.deadLettered)
            case .again(let group): groups[group, default: []] += events
            }
        }
        let expected = groups.sorted { $0.key < $1.key }.map(\.value)
        guard children.map(\.events) == expected.map(\.count) else {
            throw Difference("other children than groups")
        }
        for (header, events) in zip(children, expected) {
            for number in events { model.lanes[batch.lane]?[number] = .some(header.id) }
            model.batches[header.id] = .init(
                lane: batch.lane, numbers: events, isWholeChunk: false, isLeased: false)
        }
    }

    private mutating func release() async {
        let leased = model.batches.filter(\.value.isLeased).keys.sorted()
        guard let id = leased.randomElement(using: &random) else { return }
        await store.release(id)
        model.batches[id]?.isLeased = false
    }

    private mutating func leaseAgain() async throws {
        let free = model.batches.filter { !$0.value.isLeased }.keys.sorted()
        guard let id = free.randomElement(using: &random), let batch = model.batches[id] else { return }
        let got = try await store.lease(id, for: batch.lane.destination)
        if model.isExpired(batch) {
            guard got == nil else { throw Difference("leased an expired batch") }
            model.remove(batch.numbers, batch.lane, \.expired)
            model.batches[id] = nil
        } else {
            guard let got, numbers(got) == batch.numbers else { throw Difference("a batch has changed") }
            model.batches[id]?.isLeased = true
        }
    }

    private mutating func passTime() async throws {
        let time = Duration.seconds(Int.random(in: 1...200, using: &random))
        fixture.time.advance(by: time)
        model.now = fixture.time.wallTime
        let expired = try await store.expire()
        let expected = model.sweep()
        guard expired == expected else { throw Difference("\(expired) expired instead of \(expected)") }
    }

    private mutating func reopen() async throws {
        await store.close()
        store = try PropertyRun.open(fixture, destinations, cap, evicts, skipping)
        model.reopen()
    }

    private mutating func discard() async throws {
        if Bool.random(using: &random) {
            // In one transaction, or in many.
            let atOnce = Bool.random(using: &random) ? 64 << 20 : 0
            _ = try await store.discardAll(reason: "disabled", atOnce: atOnce)
            model.batches = [:]
            for lane in lanes { model.remove(Array((model.lanes[lane] ?? [:]).keys), lane, \.discarded) }
        } else if let destination = destinations.randomElement(using: &random) {
            _ = try await store.discard(destination, reason: "purged")
            for lane in lanes where lane.destination == destination {
                let kept = Set(
                    model.batches.values.filter { $0.isLeased && $0.lane == lane }.flatMap(\.numbers))
                let gone = (model.lanes[lane] ?? [:]).keys.filter { !kept.contains($0) }
                model.remove(Array(gone), lane, \.discarded)
                for (id, batch) in model.batches where batch.lane == lane && !batch.isLeased {
                    model.batches[id] = nil
                }
            }
        }
    }

    private mutating func sendDeadLettersAgain() async throws {
        var selection = RecordSelection()
        selection.destination = Bool.random(using: &random) ? nil : destinations.randomElement(using: &random)
        let expected = model.retry(selection.destination, atMost: 20)
        do {
            let retried = try await store.retryDeadLetters(selection)
            guard retried == expected else { throw Difference("\(retried) retried, not \(expected ?? -1)") }
        } catch let error as QueueError {
            guard error.code == .full, expected == nil else { throw error }
            // They would stay for ever.
            guard model.dead.count > 100 else { return }
            guard try await store.purge(.deadLetters) == model.dead.count else {
                throw Difference("purged others")
            }
            model.dead = []
        }
    }

    // MARK: Comparing

    mutating func compare() async throws {
        // A transaction of its own, so that the acknowledgements are in.
        try await store.setSwitch("flush", "\(random.next())")
        let snapshot = store.snapshot
        if let needs = model.refusedBytes, model.stored < cap / 10 * 9, model.stored + needs <= cap {
            guard snapshot.accepting == .all else { throw Difference("there is room, and nobody is told") }
        }
        if snapshot.accepting == .all { model.refusedBytes = nil }
        guard snapshot.storedBytes == model.stored else {
            throw Difference("\(snapshot.storedBytes) bytes stored instead of \(model.stored)")
        }
        guard snapshot.deadLetters.count == model.dead.count,
            snapshot.lanes.reduce(0, { $0 + $1.deadLetters }) == model.dead.count
        else { throw Difference("other dead letters") }
        guard snapshot.storedBytes <= cap else { throw Difference("the cap is passed") }
        for lane in lanes {
            let state = snapshot.lane(lane.destination, lane.priority)
            guard let state, state.ledger == model.ledgers[lane], state.ledger.balances else {
                throw Difference(
                    "ledger \(String(describing: state?.ledger)), not \(String(describing: model.ledgers[lane]))"
                )
            }
            let waiting = model.waitingCount(lane)
            let free = model.free(lane).count
            guard state.summary.waitingEvents == waiting, state.summary.freeBatches == free,
                state.summary.batchedEvents == (model.lanes[lane] ?? [:]).count - waiting
            else { throw Difference("summary \(state.summary), waiting \(waiting), free \(free)") }
        }
    }

    /// Everything that is left comes out, once, and nothing is left behind.
    mutating func end() async throws {
        try await reopen()
        for lane in lanes {
            var left = Set((model.lanes[lane] ?? [:]).keys)
            while let batch = try await store.leaseNext(request(lane.destination, lane.priority)) {
                for number in numbers(batch) {
                    #expect(left.remove(number) != nil, "event \(number) comes out twice")
                }
                _ = try await store.settle(.acknowledged(batch.header))
            }
            let late = left.filter { number in
                model.chunk(number, lane).map { model.isExpired($0, lane) } ?? false
            }
            #expect(left.count == late.count, "events are left behind in \(lane)")
        }
        #expect(await eventually { store.snapshot.storedBytes == 0 })
        await store.close()
    }
}
