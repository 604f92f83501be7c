internal import EventLoops
internal import Model

/// What the queue answered when it was asked for a batch.
enum LeaseResult: Sendable, Equatable {
    /// - Parameter mayBeTaken: an earlier attempt may have reached the destination, as far as the queue knows.
    case batch(BatchHeader, mayBeTaken: Bool)
    case none
    /// The queue could not tell.
    case failed
}

extension DestinationMachine {
    /// How long after the last lease the queue's count of leases is believed against this one.
    static let countsSettle = Duration.seconds(10)
    /// How long after a lease the summaries may not show a free batch as taken.
    private static let summaryLag = Duration.milliseconds(100)

    mutating func leased(_ number: UInt64, _ result: LeaseResult, _ apps: [String], _ gate: Gate, at now: Moment) {
        // Every lease counts, also one that nobody waits for any more: the queue counts it too.
        if case .batch(let header, _) = result {
            laneStates[header.priority].taken = (laneStates[header.priority].taken ?? 0) + header.events
        }
        guard let attempt = attempts[number], case .leasing(let wish) = attempt.phase else {
            if case .batch(let header, _) = result { effects.append(.release(header.id)) }
            return
        }
        switch result {
        case .failed:
            attempts[number] = nil
            let again = noteStoreFailure(at: now)
            if var batch = attempt.wishedBatch, !attempt.isForgotten {
                batch.notBefore = max(batch.notBefore, again)
                tracked[batch.header.id] = batch
            }
        case .none:
            attempts[number] = nil
            storeFailures = 0
            let wasNarrow = attempt.isProbe && attempt.awaitsNewBatch && hold?.doubt?.looksElsewhere == true
            if wasNarrow {
                foundNoOther(at: now)
            } else {
                if attempt.isProbe, hold?.doubt != nil { hold?.nextProbe = now.boot + DestinationMachine.step }
                if attempt.wishedBatch == nil { noteEmpty(attempt.priority, at: now) }
            }
        case .batch(let header, let mayBeTaken):
            var batch = TrackedBatch(header: header, notBefore: now.boot)
            batch.mayBeTaken = mayBeTaken
            take(batch, apps, for: number, attempt, wish, gate, at: now)
        }
    }

    /// The summary said that there was something. It is about to change, or the queue cannot give it now.
    private mutating func noteEmpty(_ priority: Priority, at now: Moment) {
        let answers = laneStates[priority].emptyAnswers
        laneStates[priority].emptyAnswers += 1
        laneStates[priority].emptyUntil = now.boot + .seconds(min(30, 1 << min(5, answers)))
        laneStates[priority].flush = 0
        // Once it may be a misunderstanding: what waits is asked for again.
        guard answers > 0 else { return }
        push?.events[priority] = 0
        push?.free[priority] = 0
    }

    private mutating func take(
        _ new: TrackedBatch, _ apps: [String], for number: UInt64, _ attempt: Attempt, _ wish: Attempt.Wish,
        _ gate: Gate, at now: Moment
    ) {
        let header = new.header
        guard !attempt.isForgotten else {
            attempts[number] = nil
            effects.append(.release(header.id))
            return
        }
        storeFailures = 0
        guard let mine = recognise(new, for: number, wish, at: now) else { return }
        laneStates[attempt.priority].takenUntil = now.boot + DestinationMachine.summaryLag
        if !attempt.awaitsNewBatch {
            laneStates[attempt.priority].takenFree += 1
        } else {
            laneStates[attempt.priority].flush = max(0, laneStates[attempt.priority].flush - header.events)
            if let push { self.push?.events[attempt.priority] = max(0, push.events[attempt.priority] - header.events) }
        }
        var batch = mine
        // The state that allowed the attempt to begin may have changed.
        guard permission(gate).allows(attempt) else { return giveBack(batch, number) }
        if case .nextAhead = wish {
            attempts.update(number) { $0.wait(with: batch) }
        } else if batch.attemptedAt != nil
            || !part(batch, Answer(number: number, isProbe: attempt.isProbe, apps: apps, now: now), nil)
        {
            send(&batch, number, at: now)
        }
    }

    mutating func send(_ batch: inout TrackedBatch, _ number: UInt64, at now: Moment) {
        batch.acknowledgedBefore = batch.acknowledgedBefore ?? acknowledgements
        batch.attemptedAt = now.boot
        batch.waitsForDestination = false
        attempts.update(number) { [batch] in $0.send(batch) }
        if let most = options.eventsPerRequest { bucket?.charge((batch.header.events - 1) / most, at: now.boot) }
        counters.sentEvents += batch.header.events
        effects.append(.send(attemptID(number)))
    }

    /// What is known of a batch that the queue handed out.
    ///
    /// A wish for the next batch may cross with the making of one, or with one given back: then the queue hands out what
    /// is tracked already.
    /// - Returns: nil when the batch is not to be sent now; the attempt is over.
    private mutating func recognise(
        _ new: TrackedBatch, for number: UInt64, _ wish: Attempt.Wish, at now: Moment
    ) -> TrackedBatch? {
        let header = new.header
        if case .known(let batch) = wish { return batch.content }
        if let known = tracked[header.id] {
            guard known.notBefore <= now.boot, !known.isSetAside else {
                attempts[number] = nil
                effects.append(.release(header.id))
                return nil
            }
            tracked[header.id] = nil
            push?.batches.remove(header.id)
            return known
        }
        // This attempt has none yet, so it is not the one that is found.
        let other = attempts.firstKey { $0.batch?.header.id == header.id }
        guard let other else { return new }
        // Where it is asked for by its id, the one that asked will be told that there is none.
        if let batch = attempts.look(other, { $0.wishedBatch }) { return batch }
        attempts[number] = nil
        return nil
    }

    /// What of the state allows sending: looked up once for many attempts.
    struct Permission {
        let isOpen: Bool
        let isForProbesOnly: Bool
        let isForCommandsOnly: Bool

        func allows(_ attempt: Attempt) -> Bool {
            isOpen && (attempt.isProbe || !isForProbesOnly) && (attempt.isPushed || !isForCommandsOnly)
        }
    }

    /// Which attempts the state allows to send.
    func permission(_ gate: Gate) -> Permission {
        Permission(
            isOpen: gate.block == nil && retryAfterUntil == nil && offline == nil
                && (gate.automatic != nil || push != nil),
            isForProbesOnly: hold != nil || breaker != nil, isForCommandsOnly: gate.automatic == nil)
    }

    /// Ends an attempt and keeps the batch for another one.
    mutating func giveBack(_ batch: TrackedBatch, _ number: UInt64) {
        attempts[number] = nil
        tracked[batch.header.id] = batch
        effects.append(.release(batch.header.id))
    }

    /// Tells the queue how the attempt's batch ended; its place is free once the queue knows.
    mutating func settle(_ number: UInt64, _ settlement: Settlement, children: [TrackedBatch] = []) {
        attempts.update(number) { $0.settle(settlement, children) }
        effects.append(.settle(attemptID(number), settlement))
    }

    /// The queue knows how a batch ended, or could not be told (nil).
    mutating func settled(_ number: UInt64, _ headers: [BatchHeader]?, at now: Moment) {
        guard let attempt = attempts[number], case .settling(let settling) = attempt.phase else { return }
        guard let headers else {
            let again = noteStoreFailure(at: now)
            attempts.update(number) { $0.tell(again: again) }
            return
        }
        attempts[number] = nil
        storeFailures = 0
        guard !attempt.isForgotten else { return }
        for (header, child) in zip(headers, settling.content.children)
        where !attempts.contains(where: { $0.batch?.header.id == header.id }) {
            tracked[header.id] = child
            tracked[header.id]?.header = header
            if attempt.isPushed { push?.batches.insert(header.id) }
        }
        askOthers(at: now)
        if attempt.isPushed { ends.append(nil) }
    }

    /// Gives up all attempts, except where the queue is being told how a batch ended: batches stay in it as they are.
    mutating func cutAll() {
        // Those that the queue could not take are told again by the next attempt, under the same id.
        for number in attempts.keys(where: { !$0.isBeingTold }) {
            guard let attempt = attempts.removeValue(forKey: number) else { continue }
            if attempt.isLeased { effects.append(.cut(attemptID(number))) }
            if var batch = attempt.batch {
                if attempt.isSending { batch.mayBeTaken = true }
                tracked[batch.header.id] = batch
                if attempt.isLeased { effects.append(.release(batch.header.id)) }
            }
        }
    }
}
