internal import EventLoops
internal import Logs
internal import Model

// What the queue is asked and told.
extension DeliveryDriver {
    /// How long the queue may not know of an acknowledgement.
    private static let tellDelay = Duration.milliseconds(10)
    /// Of how many it may not know.
    private static let mostUntold = 8

    func currentLanes() -> [DestinationName: Lanes] {
        lastLanes = summaries()
        return lastLanes
    }

    /// Notes that a batch is to be asked for at the end of this turn, with others that the same request is for.
    func wish(_ id: AttemptID, _ request: LeaseRequest) {
        if wishes.last?.request != request { askForBatches() }
        wishes.append((id, request))
    }

    /// Asks the queue for the batches that were wished for: all by the same request, in one call.
    func askForBatches() {
        guard let request = wishes.first?.request else { return }
        let ids = wishes.map(\.id)
        wishes.removeAll(keepingCapacity: true)
        Task(executorPreference: loop) { await self.leaseNext(ids, request) }
    }

    private func leaseNext(_ ids: [AttemptID], _ request: LeaseRequest) async {
        let leased = await store.leaseNext(request, count: ids.count)
        for (place, id) in ids.enumerated() {
            await take(place < leased.batches.count ? leased.batches[place] : nil, for: id, leased.failure)
        }
    }

    func leaseAgain(_ id: AttemptID, _ known: BatchID) async {
        do {
            await take(try await store.lease(known, for: id.destination), for: id)
        } catch {
            await take(nil, for: id, error)
        }
    }

    /// The queue has answered a wish: with a batch, with none, or why it could not.
    private func take(_ batch: Batch?, for id: AttemptID, _ failure: (any Error)? = nil) async {
        if let batch {
            batches[id] = batch
            // Whose its events are, if delivery has to know before it is sent.
            let asksWhose = machine.asksWhose(nil, of: id.destination)
            let apps = asksWhose ? await store.apps(of: batch.header.id) : []
            handleSoon(.leased(id, .batch(batch.header, mayBeTaken: batch.mayHaveBeenSent), apps: apps))
        } else {
            if let failure {
                log.error("leasing a batch failed", ["destination": id.destination, "error": "\(failure)"])
            }
            handleSoon(.leased(id, failure == nil ? .none : .failed))
        }
    }

    func settle(_ id: AttemptID, _ settlement: Settlement) async {
        var headers: [BatchHeader]?
        do {
            headers = try await store.settle(settlement)
        } catch {
            log.error("settling a batch failed", ["destination": id.destination, "error": "\(error)"])
        }
        handleSoon(.settled(id, headers))
    }

    /// Tells the queue which batches were acknowledged: with what else it is asked, since that wakes its thread, or when
    /// there are many, or a moment later. Their places are free meanwhile.
    func tellAcknowledged(isUrgent: Bool) {
        guard !acknowledged.isEmpty else { return }
        guard isUrgent || acknowledged.count >= DeliveryDriver.mostUntold || isStopped else {
            guard tellTimer == nil else { return }
            tellTimer = loop.after(DeliveryDriver.tellDelay) {
                self.assumeIsolated {
                    $0.tellTimer = nil
                    $0.tellAcknowledged(isUrgent: true)
                }
            }
            return
        }
        let told = acknowledged
        acknowledged = []
        Task(executorPreference: loop) { await self.acknowledge(told) }
    }

    private func acknowledge(_ told: [(id: AttemptID, batch: BatchID)]) async {
        var headers: [BatchHeader]? = []
        do {
            try await store.acknowledge(told.map(\.batch))
        } catch {
            headers = nil
            log.error("settling batches failed", ["batches": told.count, "error": "\(error)"])
        }
        for (id, _) in told { handleSoon(.settled(id, headers)) }
    }

    /// Ends a command with success once the acknowledgements are durable.
    func finishDurably(_ id: CommandID) async {
        do {
            try await store.flush()
            finish(id, .done)
        } catch {
            log.error("acknowledgements could not be written: they will be tried again", ["error": "\(error)"])
            finish(id, .stuck([:]))
        }
    }

    func persistAll() async {
        while !toPersist.isEmpty {
            let (name, value) = toPersist.removeFirst()
            do {
                try await persist(name, value)
            } catch {
                log.error("a switch could not be stored: the next restart loses it", ["error": "\(error)"])
            }
        }
        isPersisting = false
    }
}
