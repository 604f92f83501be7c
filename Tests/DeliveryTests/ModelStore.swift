@testable import Delivery
import EventLoops
import Model
import TestKit

/// What a queue promises, as simply as it can be written; it keeps count of every event.
struct ModelStore {
    struct Event: Equatable {
        let number: Int
        let acceptedAt: Timestamp
    }

    struct Lane: Hashable {
        let destination: DestinationName
        let priority: Priority
    }

    struct Stored {
        let header: BatchHeader
        let events: [Event]
    }

    /// The batches, and what summaries say of them: counted as they come and go, since a summary follows each change.
    struct Batches: ExpressibleByDictionaryLiteral {
        private var all: [BatchID: Stored] = [:]
        private(set) var counts: [Lane: (batches: Int, events: Int)] = [:]

        init(dictionaryLiteral _: (BatchID, Stored)...) {}

        var values: Dictionary<BatchID, Stored>.Values { all.values }
        var count: Int { all.count }

        subscript(id: BatchID) -> Stored? {
            get { all[id] }
            set {
                count(all[id], -1)
                count(newValue, 1)
                all[id] = newValue
            }
        }

        mutating func removeValue(forKey id: BatchID) -> Stored? {
            defer { self[id] = nil }
            return all[id]
        }

        private mutating func count(_ stored: Stored?, _ change: Int) {
            guard let header = stored?.header else { return }
            let lane = Lane(destination: header.destination, priority: header.priority)
            counts[lane, default: (0, 0)].batches += change
            counts[lane, default: (0, 0)].events += change * header.events
        }
    }

    static let bytesPerEvent = 400

    var waiting: [Lane: ArraySlice<Event>] = [:] { didSet { revision += 1 } }
    var batches = Batches() { didSet { revision += 1 } }
    var leased: Set<BatchID> = [] { didSet { revision += 1 } }
    /// Number of changes; the same for all lanes, whose numbers may skip some.
    private var revision = 1
    var accepted = 0
    var acknowledged: [Int: Int] = [:]
    var deadLettered: [Int: Failure] = [:]
    /// Events whose destination said that it has them, settled or not.
    var received: [Int: Int] = [:]
    var faults: [String] = []
    /// When events are accepted; nil for now. It is their event time too.
    var acceptedAt: Timestamp?
    /// At most so many events a batch, whatever is asked for: full chunks are batches as they are stored.
    var mostInChunk = Int.max
    /// How many apps the events are of, in turn; nil: nobody knows.
    var apps: Int?
    /// The events up to this one are all of app 0.
    var lastOfOneApp = 0
    /// Events that are gone without having been sent: evicted, expired, or deleted when collection was disabled.
    var removed: Set<Int> = []
    /// How often it was asked whether all is durable.
    var flushes = 0
    /// Lanes that ever held an event: summaries show them for good.
    private var known: Set<Lane> = []
    /// Events that commands took out, by lane.
    private var withdrawn: [Lane: Int] = [:]
    private var ids = UUIDv7Generator()
    private var random: SplitMix64

    init(seed: UInt64) { random = SplitMix64(seed: seed ^ 0xABCD) }

    mutating func accept(
        _ count: Int, _ priority: Priority, to destination: DestinationName, at now: Timestamp
    ) {
        for _ in 0..<count {
            accepted += 1
            let lane = Lane(destination: destination, priority: priority)
            known.insert(lane)
            waiting[lane, default: []].append(Event(number: accepted, acceptedAt: acceptedAt ?? now))
        }
    }

    var lanes: [DestinationName: Lanes] {
        var lanes: [DestinationName: Lanes] = [:]
        for (lane, events) in waiting {
            var summary = lanes[lane.destination, default: Lanes()][lane.priority]
            summary.waitingEvents = events.count
            summary.waitingBytes = events.count * ModelStore.bytesPerEvent
            summary.oldestAcceptedAt = events.first?.acceptedAt
            summary.earliestEventTime = events.first?.acceptedAt
            lanes[lane.destination, default: Lanes()][lane.priority] = summary
        }
        for lane in known { lanes[lane.destination, default: Lanes()][lane.priority].revision = revision }
        for (lane, events) in withdrawn {
            lanes[lane.destination, default: Lanes()][lane.priority].withdrawn = events
        }
        for (lane, counts) in batches.counts {
            lanes[lane.destination, default: Lanes()][lane.priority].batchedEvents = counts.events
            lanes[lane.destination, default: Lanes()][lane.priority].freeBatches = counts.batches
        }
        for case let header? in leased.map({ batches[$0]?.header }) {
            lanes[header.destination, default: Lanes()][header.priority].freeBatches -= 1
        }
        return lanes
    }

    /// The summary of one lane, as the answer to a lease brings it.
    func summary(_ destination: DestinationName, _ priority: Priority) -> LaneSummary? {
        lanes[destination]?[priority]
    }

    mutating func leaseNext(_ request: LeaseRequest, at now: Timestamp) -> BatchHeader? {
        if request.free != .none, let next = nextFree(request) {
            leased.insert(next.header.id)
            return next.header
        }
        let lane = Lane(destination: request.destination, priority: request.priority)
        if request.isNewest, let last = waiting[lane]?.popLast() {
            let header = form([last], lane, at: now)
            leased.insert(header.id)
            return header
        }
        guard let events = waiting[lane],
            let next = events.firstIndex(where: { !request.notOf.contains(app($0)) })
        else { return nil }
        // A chunk that fits is given as it is, with what is not wanted beside what is.
        let chunk = mostInChunk == .max ? 7 : mostInChunk
        let fits = chunk <= request.maxEvents && chunk * ModelStore.bytesPerEvent <= request.maxBytes
        let first = request.notOf.isEmpty || !fits ? next : max(events.startIndex, next - next % chunk)
        let count = max(
            1,
            min(
                events.endIndex - first, mostInChunk, request.maxEvents,
                request.maxBytes / ModelStore.bytesPerEvent)
        )
        let header = form(Array(events[first..<first + count]), lane, at: now)
        waiting[lane] = ArraySlice(events[..<first] + events[(first + count)...])
        leased.insert(header.id)
        return header
    }

    private func nextFree(_ request: LeaseRequest) -> Stored? {
        func isOlder(_ left: Stored, _ right: Stored) -> Bool {
            (left.events.first?.number ?? 0) < (right.events.first?.number ?? 0)
        }
        let free = batches.values.lazy.filter {
            $0.header.destination == request.destination && $0.header.priority == request.priority
                && !leased.contains($0.header.id) && !request.except.contains($0.header.id)
        }
        return request.free == .oldest ? free.min(by: isOlder) : free.max(by: isOlder)
    }

    /// The oldest waiting events of a lane are evicted, or expire.
    mutating func evict(_ count: Int, _ lane: Lane) {
        guard let events = waiting[lane] else { return }
        removed.formUnion(events.prefix(count).map(\.number))
        waiting[lane] = events.dropFirst(count)
    }

    /// Deletes what is queued in a lane and not in flight.
    mutating func purge(_ lane: Lane) {
        removed.formUnion(waiting.removeValue(forKey: lane)?.map(\.number) ?? [])
        for id in free(in: lane) {
            withdrawn[lane, default: 0] += batches[id]?.events.count ?? 0
            removed.formUnion(batches.removeValue(forKey: id)?.events.map(\.number) ?? [])
        }
    }

    /// Lets what is queued in a lane and not in flight wait for another destination, batches under their ids.
    mutating func move(_ lane: Lane, to destination: DestinationName) {
        let target = Lane(destination: destination, priority: lane.priority)
        known.insert(target)
        let events = (waiting.removeValue(forKey: lane) ?? []) + (waiting[target] ?? [])
        waiting[target] = ArraySlice(events.sorted { $0.number < $1.number })
        for id in free(in: lane) {
            guard let stored = batches[id] else { continue }
            withdrawn[lane, default: 0] += batches[id]?.events.count ?? 0
            let header = BatchHeader(
                id: id, destination: destination, priority: lane.priority, events: stored.header.events,
                bytes: stored.header.bytes, acceptedAt: stored.header.acceptedAt,
                firstEventTime: stored.header.firstEventTime)
            batches[id] = Stored(header: header, events: stored.events)
        }
    }

    private func free(in lane: Lane) -> [BatchID] {
        batches.values.map(\.header).filter {
            $0.destination == lane.destination && $0.priority == lane.priority && !leased.contains($0.id)
        }.map(\.id)
    }

    /// Collection was disabled: all is deleted, whatever is being sent.
    mutating func empty() {
        removed.formUnion(waiting.values.joined().map(\.number))
        removed.formUnion(batches.values.flatMap(\.events).map(\.number))
        (waiting, batches, leased) = ([:], [:], [])
    }

    mutating func lease(_ id: BatchID, for destination: DestinationName) -> BatchHeader? {
        guard let stored = batches[id], stored.header.destination == destination, leased.insert(id).inserted
        else { return nil }
        return stored.header
    }

    mutating func noteAnswer(_ id: BatchID, _ outcome: Outcome) {
        guard let stored = batches[id] else { return }
        switch outcome {
        case .acknowledged, .acknowledgedWithLoss:
            for event in stored.events { received[event.number, default: 0] += 1 }
        case .partial(let rejected, let retry):
            let others = Set(rejected.map(\.index)).union(retry)
            for (index, event) in stored.events.enumerated() where !others.contains(index) {
                received[event.number, default: 0] += 1
            }
        default: break
        }
    }

    mutating func settle(_ settlement: Settlement, at now: Timestamp) -> [BatchHeader] {
        guard let stored = batches.removeValue(forKey: settlement.batch) else { return [] }
        if leased.remove(settlement.batch) == nil {
            faults.append("batch \(settlement.batch) settled unleased")
        }
        var groups: [Int: [Event]] = [:]
        var covered = 0
        for part in settlement.parts {
            if part.events.lowerBound != covered { faults.append("a settlement leaves a gap") }
            covered = part.events.upperBound
            for event in stored.events[part.events] {
                switch part.disposition {
                case .acknowledged: acknowledged[event.number, default: 0] += 1
                case .deadLetter(let failure): deadLettered[event.number] = failure
                case .again(let group): groups[group, default: []].append(event)
                }
            }
        }
        if covered != stored.events.count { faults.append("a settlement leaves events out") }
        let lane = Lane(destination: stored.header.destination, priority: stored.header.priority)
        return groups.keys.sorted().map { form(groups[$0] ?? [], lane, at: now) }
    }

    private mutating func form(_ events: [Event], _ lane: Lane, at now: Timestamp) -> BatchHeader {
        let header = BatchHeader(
            id: ids.next(at: now, using: &random), destination: lane.destination, priority: lane.priority,
            events: events.count, bytes: events.count * ModelStore.bytesPerEvent,
            acceptedAt: events.map(\.acceptedAt).min() ?? now,
            firstEventTime: events.map(\.acceptedAt).min() ?? now)
        batches[header.id] = Stored(header: header, events: events)
        return header
    }

    func apps(of id: BatchID) -> [String] {
        batches[id]?.events.map(app) ?? []
    }

    private func app(_ event: Event) -> String {
        apps.map { event.number <= lastOfOneApp ? "app0" : "app\(event.number % $0)" } ?? ""
    }

    /// How many events are still here.
    var queued: Int {
        waiting.values.map(\.count).reduce(0, +) + batches.values.map(\.events.count).reduce(0, +)
    }
}
