@testable import Delivery
import EventLoops
import Model
import TestKit

/// A queue and destinations in virtual time, around a real machine: what takes hours passes in milliseconds.
///
/// Inputs and answers wait in one list, ordered by time. Every effect is checked as it is carried out: no batch twice
/// in flight, never more than the limit, and whatever `mayReceive` forbids.
struct World {
    struct Sent: Equatable {
        let at: BootInstant
        let destination: DestinationName
        let batch: BatchID
        let priority: Priority
        let events: [Int]
        /// How many times the time-out of a request it may take.
        var timeFactor = 1
    }

    enum Next {
        case input(DeliveryInput)
        case summaries
        case lease(AttemptID, LeaseRequest)
        case leaseAgain(AttemptID, BatchID)
        case release(BatchID)
        case settle(AttemptID, Settlement)
        case answer(AttemptID, BatchID, Outcome)
        case accept(DestinationName, Priority, Int)
    }

    var machine: DeliveryMachine
    /// The same machine, which advances all destinations with each input; nil in most tests.
    private(set) var twin: DeliveryMachine?
    var store: ModelStore
    var random: SplitMix64
    var boot = BootInstant(nanoseconds: 1_000_000_000_000)
    var wall = Timestamp(milliseconds: 1_795_168_800_000)
    /// The destination's answer to a batch, and how long it takes.
    var answer: (inout World, Sent) -> (Duration, Outcome) = { _, _ in (.milliseconds(50), .acknowledged) }
    /// Whether the queue fails right now.
    var storeFails: (inout World) -> Bool = { _ in false }
    /// Whether summaries that show a lease overtake the lease itself.
    var summariesOvertake = false
    var summaryLag: (inout World) -> Duration = { _ in .zero }
    var storeLatency: (inout World) -> Duration = { _ in .milliseconds(1) }

    var queue: [(at: BootInstant, next: Next)] = []
    var sent: [Sent] = []
    var reports: [DispatchReport] = []
    var results: [CommandID: CommandResult] = [:]
    var notes: [DeliveryNote] = []
    var switches: [String: String] = [:]
    var isStopped = false
    /// How often the queue was asked for a batch.
    var wishes = 0
    var storeBusyUntil = BootInstant(nanoseconds: 0)
    /// What was found wrong, with the time; empty when all is well.
    var faults: [String] = []
    var inFlight: [AttemptID: Sent] = [:]
    /// The batch that the queue gave each attempt.
    private var given: [AttemptID: BatchID] = [:]
    var mostInFlight: [DestinationName: Int] = [:]
    /// Called when a batch is sent, asked for, or answered.
    var check: (inout World, Sent) -> Void = { _, _ in }
    var asking: (inout World, LeaseRequest) -> Void = { _, _ in }
    var answered: (inout World, Sent, Outcome) -> Void = { _, _, _ in }

    init(_ options: DeliveryOptions, seed: UInt64 = 1) {
        random = SplitMix64(seed: seed)
        store = ModelStore(seed: seed)
        let now = Moment(boot: boot, wall: wall)
        machine = DeliveryMachine(options, switches: [:], isEnabled: true, at: now, using: &random)
        input(.lanes([:]))
    }

    var now: Moment { Moment(boot: boot, wall: wall) }
    func elapsed(since start: BootInstant) -> Duration { boot - start }

    // MARK: From outside

    /// Events are accepted now.
    mutating func accept(
        _ count: Int, _ priority: Priority = .normal, to destination: DestinationName = "main"
    ) {
        store.accept(count, priority, to: destination, at: wall)
        publish()
    }

    mutating func input(_ input: DeliveryInput) {
        let now = now
        var same = random
        let effects = machine.handle([input], at: now, using: &random)
        twin?.destinations.touchAll()
        if let expected = twin?.handle([input], at: now, using: &same) {
            if effects != expected {
                faults.append("\(boot): \(input) has the effects \(effects) instead of \(expected)")
            }
            // A deadline is looked at again an hour after the last look, which is longer ago.
            let hasDeadlines = machine.options.destinations.contains { !$0.deadlines.isEmpty }
            let (wake, due) = (machine.wakeAt(now), twin?.wakeAt(now))
            let isWrong = hasDeadlines ? due.map { wake ?? $0 + .seconds(1) > $0 } ?? false : wake != due
            if isWrong {
                faults.append("\(boot): after \(input) it wakes at \(wake as Any) instead of \(due as Any)")
            }
        }
        perform(effects)
    }

    /// From now on each input must have the effects that it has in a machine that advances all destinations.
    mutating func compareWithTwin() { twin = machine }

    /// `queue move`: both lanes.
    mutating func move(_ source: DestinationName, to target: DestinationName) {
        for priority in Priority.allCases {
            store.move(ModelStore.Lane(destination: source, priority: priority), to: target)
        }
        publish()
    }

    /// `queue purge`: both lanes.
    mutating func purge(_ destination: DestinationName) {
        for priority in Priority.allCases {
            store.purge(ModelStore.Lane(destination: destination, priority: priority))
        }
        publish()
    }

    /// The queue publishes its summaries, at once or a moment later.
    mutating func publish() {
        let lag = summaryLag(&self)
        if lag == .zero {
            input(.lanes(store.lanes))
        } else {
            later(lag, .summaries)
        }
    }

    /// The queue does one thing after the other.
    private mutating func ask(_ next: Next) {
        storeBusyUntil = max(storeBusyUntil, boot + storeLatency(&self))
        later(storeBusyUntil - boot, next)
    }

    mutating func later(_ wait: Duration, _ next: Next) {
        let at = boot + wait
        // Kept with the next one last; equal times keep their order.
        let index = queue.lastIndex { $0.at > at }.map { $0 + 1 } ?? 0
        queue.insert((at, next), at: index)
    }

    /// The process dies and another one starts: leases are gone, switches and batches stay.
    mutating func restart(_ options: DeliveryOptions? = nil, down: Duration = .zero) {
        queue.removeAll { if case .accept = $0.next { false } else { true } }
        (inFlight, given) = ([:], [:])
        store.leased = []
        pass(down)
        machine = DeliveryMachine(
            options ?? machine.options, switches: switches, isEnabled: machine.isEnabled, at: now,
            using: &random)
        if twin != nil {
            compareWithTwin()
        }
        isStopped = false
        publish()
    }

    /// The clock is set; the one for waits goes on.
    mutating func stepWall(by duration: Duration) {
        wall = wall + duration
        input(.clockSet)
    }

    // MARK: Time

    /// Lets time pass until then, doing all that comes up.
    mutating func run(_ duration: Duration) {
        let end = boot + duration
        while let at = nextPoint, at <= end { step(to: at) }
        pass(end - boot)
    }

    /// Runs until nothing is left to happen by itself, or for so long.
    mutating func runUntilQuiet(atMost duration: Duration = .seconds(86_400 * 3)) {
        let end = boot + duration
        while let at = nextPoint, at <= end { step(to: at) }
    }

    var nextPoint: BootInstant? {
        [queue.last?.at, machine.wakeAt(now)].compactMap { $0 }.min()
    }

    private mutating func step(to at: BootInstant) {
        if at > boot { pass(at - boot) }
        if let last = queue.last, last.at <= boot {
            queue.removeLast()
            happen(last.next)
        } else {
            input(.timer)
        }
    }

    private mutating func pass(_ duration: Duration) {
        boot = boot + duration
        wall = wall + duration
    }

    private mutating func happen(_ next: Next) {
        switch next {
        case .input(let value): input(value)
        case .summaries: input(.lanes(store.lanes))
        case .lease(let id, let request):
            var result = LeaseResult.failed
            if !storeFails(&self) {
                let before = store.batches.count
                result =
                    store.leaseNext(request, at: wall).map {
                        .batch($0, mayBeTaken: store.batches.count == before)
                    } ?? .none
            }
            if summariesOvertake { input(.lanes(store.lanes)) }
            let lane = result == .failed ? nil : store.summary(request.destination, request.priority)
            if case .batch(let header, _) = result { given[id] = header.id }
            input(.leased(id, result, apps: apps(of: result), lane: lane))
            publish()
        case .leaseAgain(let id, let batch):
            var result = LeaseResult.failed
            if !storeFails(&self) {
                result = store.lease(batch, for: id.destination).map { .batch($0, mayBeTaken: true) } ?? .none
            }
            var lane: LaneSummary?
            if case .batch(let header, _) = result {
                given[id] = header.id
                lane = store.summary(id.destination, header.priority)
            }
            input(.leased(id, result, apps: apps(of: result), lane: lane))
            publish()
        case .release(let batch):
            store.leased.remove(batch)
            publish()
        case .settle(let id, let settlement):
            let headers = storeFails(&self) ? nil : store.settle(settlement, at: wall)
            input(.settled(id, headers))
            publish()
        case .answer(let id, let batch, let outcome):
            guard let sent = inFlight.removeValue(forKey: id) else { return }
            store.noteAnswer(batch, outcome)
            answered(&self, sent, outcome)
            let asksWhose = machine.asksWhose(outcome, of: id.destination)
            input(.sent(id, outcome, apps: asksWhose ? store.apps(of: batch) : []))
        case .accept(let destination, let priority, let count): accept(count, priority, to: destination)
        }
    }

    private func apps(of result: LeaseResult) -> [String] {
        guard case .batch(let header, _) = result, machine.asksWhose(nil, of: header.destination) else {
            return []
        }
        return store.apps(of: header.id)
    }

    // MARK: Effects

    private mutating func perform(_ effects: [DeliveryEffect]) {
        for effect in effects {
            switch effect {
            case .leaseNext(let id, let request):
                asking(&self, request)
                wishes += 1
                ask(.lease(id, request))
            case .leaseAgain(let id, let batch):
                wishes += 1
                ask(.leaseAgain(id, batch))
            case .release(let batch): ask(.release(batch))
            case .settle(let id, let settlement): ask(.settle(id, settlement))
            case .send(let id): send(id)
            case .cut(let id): inFlight[id] = nil
            case .countLate(let id, let deadline, let before, let most):
                let events = given[id].flatMap { store.batches[$0] }
                let late = events?.events.count { $0.acceptedAt < before } ?? 0
                machine.noteLate(id.destination, deadline.name, min(most, late))
                twin?.noteLate(id.destination, deadline.name, min(most, late))
            case .persist(let name, let value): switches[name] = value
            case .report(_, let report): reports.append(report)
            case .finish(let id, let result): results[id] = result
            case .stopped: isStopped = true
            case .note(_, let note): notes.append(note)
            }
        }
    }

    private mutating func send(_ id: AttemptID) {
        guard let batch = given[id], let stored = store.batches[batch] else {
            faults.append("\(boot): sends a batch that the queue does not have")
            return
        }
        let sent = Sent(
            at: boot, destination: id.destination, batch: batch, priority: stored.header.priority,
            events: stored.events.map(\.number), timeFactor: machine.timeFactor(of: id))
        if inFlight.values.contains(where: { $0.batch == sent.batch }) {
            faults.append("\(boot): batch \(sent.batch) is in flight twice")
        }
        check(&self, sent)
        inFlight[id] = sent
        self.sent.append(sent)
        let count = inFlight.values.count { $0.destination == id.destination }
        mostInFlight[id.destination] = max(count, mostInFlight[id.destination] ?? 0)
        let (wait, outcome) = answer(&self, sent)
        later(wait, .answer(id, sent.batch, outcome))
    }
}
