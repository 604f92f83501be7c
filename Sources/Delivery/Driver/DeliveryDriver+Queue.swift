internal import EventLoops
internal import Logs
internal import Model

// The driver's calls of the queue: leases, settlements and acknowledgements. Calls are gathered, because each
// one wakes the queue's thread, which costs 5 to 20 µs on a virtual machine.
extension DeliveryDriver {
    /// Longest time for which the queue does not know of an acknowledgement. A crash meanwhile sends the
    /// batch again under its id.
    private static let tellDelay = Duration.milliseconds(10)
    /// Most acknowledgements that the queue does not know of.
    private static let mostUntold = 8

    /// Reads the summaries, and remembers them so that `summariesChanged` can skip unchanged ones.
    func currentLanes() -> [DestinationName: Lanes] {
        inbox.lanes = summaries()
        return inbox.lanes
    }

    /// Notes a batch to request at the end of this turn, together with others of the same request.
    func wish(_ id: AttemptID, _ request: LeaseRequest) {
        if calls.wishes.last?.request != request {
            askForBatches()
        }
        calls.wishes.append((id, request))
    }

    /// Requests the noted batches in one call.
    func askForBatches() {
        guard let request = calls.wishes.first?.request else { return }
        let ids = calls.wishes.map(\.id)
        calls.wishes.removeAll(keepingCapacity: true)
        Task(executorPreference: loop) { await self.leaseNext(ids, request) }
    }

    /// Requests several batches and hands the answers to their attempts. Attempts beyond the leased batches
    /// get an empty answer or the failure.
    private func leaseNext(_ ids: [AttemptID], _ request: LeaseRequest) async {
        let leased = await store.leaseNext(request, count: ids.count)
        for (index, id) in ids.enumerated() {
            await take(index < leased.batches.count ? leased.batches[index] : nil, of: leased, for: id)
        }
    }

    /// Requests one batch by its id.
    func leaseAgain(_ id: AttemptID, _ known: BatchID) async {
        let leased = await store.leaseAgain(known, for: id.destination)
        await take(leased.batches.first, of: leased, for: id)
    }

    /// The queue's answer to an attempt: a batch, nothing, or a failure.
    private func take(_ batch: Batch?, of answer: LeasedBatches, for id: AttemptID) async {
        if let batch {
            requests.batches[id] = batch
            // The apps of the events, if the machine has to know them before it sends.
            let asksWhose = machine.asksWhose(nil, of: id.destination)
            let apps = asksWhose ? await store.apps(of: batch.header.id) : []
            let result = LeaseResult.batch(batch.header, mayBeTaken: batch.mayHaveBeenSent)
            handleSoon(.leased(id, result, apps: apps, lane: answer.lane))
        } else {
            if let failure = answer.failure {
                log.error("leasing a batch failed", ["destination": id.destination, "reason": "\(failure)"])
            }
            handleSoon(.leased(id, answer.failure == nil ? .none : .failed, lane: answer.lane))
        }
    }

    /// Begins calls of the queue that store something; `stop` waits for their end.
    func storeSoon(_ work: @escaping @Sendable (isolated DeliveryDriver) async -> Void) {
        calls.storing.begin()
        Task(executorPreference: loop) { await self.finishStoring(work) }
    }

    private func finishStoring(_ work: @Sendable (isolated DeliveryDriver) async -> Void) async {
        await work(self)
        // Behind what the work has posted: the machine may answer it with something more to store.
        loop.post { self.assumeIsolated { $0.calls.storing.end() } }
    }

    /// Tells the queue how a batch ended; the machine retries if that fails.
    func settle(_ id: AttemptID, _ settlement: Settlement) async {
        var headers: [BatchHeader]?
        do {
            headers = try await store.settle(settlement)
        } catch {
            log.error("settling a batch failed", ["destination": id.destination, "reason": "\(error)"])
        }
        handleSoon(.settled(id, headers))
    }

    /// Tells the queue which batches were acknowledged: along with another call, when eight have gathered, or
    /// after 10 ms.
    func tellAcknowledged(isUrgent: Bool) {
        guard !calls.acknowledged.isEmpty else { return }
        guard isUrgent || calls.acknowledged.count >= DeliveryDriver.mostUntold || ends.isStopped else {
            guard calls.tellTimer == nil else { return }
            calls.tellTimer = loop.after(DeliveryDriver.tellDelay) {
                self.assumeIsolated {
                    $0.calls.tellTimer = nil
                    $0.tellAcknowledged(isUrgent: true)
                }
            }
            return
        }
        let told = calls.acknowledged
        calls.acknowledged = []
        storeSoon { await $0.acknowledge(told) }
    }

    /// Stores acknowledgements in one call and reports the result for each attempt.
    private func acknowledge(_ told: [(id: AttemptID, batch: BatchID)]) async {
        var headers: [BatchHeader]? = []
        do {
            try await store.acknowledge(told.map(\.batch))
        } catch {
            headers = nil
            log.error("settling batches failed", ["batches": told.count, "reason": "\(error)"])
        }
        for (id, _) in told { handleSoon(.settled(id, headers)) }
    }

    /// Ends a command with success once the acknowledgements are durable. Otherwise a crash could bring back
    /// what was reported as done.
    func finishDurably(_ id: CommandID) async {
        do {
            try await store.flush()
            finish(id, .done)
        } catch {
            log.error(
                "acknowledgements could not be stored: they will be tried again", ["reason": "\(error)"])
            finish(id, .stuck([:]))
        }
    }

    /// Stores switches one at a time, in the order of their changes, so that the last value wins.
    func persistAll() async {
        while !switches.waiting.isEmpty {
            let (name, value) = switches.waiting.removeFirst()
            do {
                try await persist(name, value)
            } catch {
                log.error(
                    "a switch could not be stored: the next restart loses it",
                    ["switch": name, "reason": "\(error)"])
            }
        }
        switches.isBusy = false
    }
}
