internal import EventLoops
internal import Model

/// The queue's answer to a request for a batch.
enum LeaseResult: Sendable, Equatable {
    /// A leased batch.
    ///
    /// - Parameter mayBeTaken: whether an earlier attempt may have reached the destination, as far as the
    ///   queue knows.
    case batch(BatchHeader, mayBeTaken: Bool)
    /// The queue has no batch to give.
    case none
    /// The call failed.
    case failed
}

// From the queue and back to it: leases, releases, settlements.
extension DestinationMachine {
    /// The queue has answered a request.
    mutating func leased(
        _ number: UInt64, _ result: LeaseResult, _ apps: [String], _ gate: Gate, at now: Moment
    ) {
        // Count every lease, even if its attempt is gone: the queue's own count, with which this one is
        // compared, includes it.
        if case .batch(let header, _) = result {
            views[header.priority].noteLease(events: header.events)
        }
        guard let attempt = attempts[number], case .leasing(let wish) = attempt.phase else {
            if case .batch(let header, _) = result {
                effects.append(.release(header.id))
            }
            return
        }
        switch result {
        case .failed:
            attempts.end(number)
            let again = noteStoreFailure(at: now)
            if var batch = attempt.wishedBatch, !attempt.isForgotten {
                batch.notBefore = max(batch.notBefore, again)
                kept.keep(batch)
            }
        case .none:
            attempts.end(number)
            standing.noteStoreAnswer()
            let wasNarrow = attempt.isProbe && attempt.awaitsNewBatch && hold?.doubt?.looksElsewhere == true
            if wasNarrow {
                foundNoOther(at: now)
            } else {
                if attempt.isProbe, hold?.doubt != nil {
                    standing.setHoldProbe(to: now.boot + Doubt.step)
                }
                if attempt.wishedBatch == nil {
                    noteEmpty(attempt.priority, at: now)
                }
            }
        case .batch(let header, let mayBeTaken):
            var batch = TrackedBatch(header: header, notBefore: now.boot)
            batch.mayBeTaken = mayBeTaken
            take(batch, apps, for: number, attempt, wish, gate, at: now)
        }
    }

    /// The queue had nothing to give. That ends a lane's part in a push the second time; once, the summary
    /// may just have been old.
    private mutating func noteEmpty(_ priority: Priority, at now: Moment) {
        guard views[priority].noteEmpty(at: now.boot) else { return }
        pushing.foundNothing(priority)
    }

    /// Gives a leased batch to its attempt: sends it, keeps it ready, or gives it back if the state has
    /// changed since the request.
    private mutating func take(
        _ new: TrackedBatch, _ apps: [String], for number: UInt64, _ attempt: Attempt, _ wish: Attempt.Wish,
        _ gate: Gate, at now: Moment
    ) {
        let header = new.header
        guard !attempt.isForgotten else {
            attempts.end(number)
            effects.append(.release(header.id))
            return
        }
        standing.noteStoreAnswer()
        guard let mine = recognise(new, for: number, wish, at: now) else { return }
        views[attempt.priority].noteBatch(events: header.events, isNew: attempt.awaitsNewBatch, at: now.boot)
        if attempt.awaitsNewBatch {
            pushing.got(header.events, attempt.priority)
        }
        var batch = mine
        // The state that allowed the attempt to begin may have changed while the queue was asked.
        guard permission(gate).allows(attempt) else { return giveBack(batch, number) }
        if case .nextAhead = wish {
            attempts.update(number) { $0.wait(with: batch) }
        } else if batch.attemptedAt != nil
            || !part(batch, Answer(number: number, isProbe: attempt.isProbe, apps: apps, now: now), nil)
        {
            send(&batch, number, at: now)
        }
    }

    /// Sends a batch, and charges the rate for each further request that it needs.
    mutating func send(_ batch: inout TrackedBatch, _ number: UInt64, at now: Moment) {
        batch.acknowledgedBefore = batch.acknowledgedBefore ?? blame.acknowledged.batches
        batch.attemptedAt = now.boot
        batch.waitsForDestination = false
        attempts.update(number) { [batch] in $0.send(batch) }
        if let most = options.eventsPerRequest {
            turns.charge((batch.header.events - 1) / most, at: now.boot)
        }
        counters.sentEvents += batch.header.events
        effects.append(.send(attemptID(number)))
    }

    /// What is remembered of a leased batch; a new batch if nothing is.
    ///
    /// A request for the next batch may cross with a batch that is being formed or given back; the queue then
    /// hands out a batch that is remembered here.
    /// - Returns: nil if the batch must not be sent now; the attempt has ended then.
    private mutating func recognise(
        _ new: TrackedBatch, for number: UInt64, _ wish: Attempt.Wish, at now: Moment
    ) -> TrackedBatch? {
        let header = new.header
        if case .known(let batch) = wish { return batch.content }
        if let known = kept[header.id] {
            guard known.notBefore <= now.boot, !known.isSetAside else {
                attempts.end(number)
                effects.append(.release(header.id))
                return nil
            }
            kept.remove(header.id)
            pushing.begun(header.id)
            return known
        }
        // This attempt holds no batch yet, so `other` is a different attempt.
        let other = attempts.of(header.id)
        guard let other else { return new }
        // The other attempt requested this batch by id and will get an empty answer; this one goes on with
        // it.
        if let batch = attempts.look(other, { $0.wishedBatch }) { return batch }
        attempts.end(number)
        return nil
    }

    /// What the state allows, determined once for many attempts.
    struct Permission {
        /// Whether anything may be sent.
        let isOpen: Bool
        /// Whether only probes may be sent: held, or breaker open.
        let isForProbesOnly: Bool
        /// Whether only attempts of commands may be sent.
        let isForCommandsOnly: Bool

        func allows(_ attempt: Attempt) -> Bool {
            isOpen && (attempt.isProbe || !isForProbesOnly) && (attempt.isPushed || !isForCommandsOnly)
        }
    }

    /// Which attempts the state allows to send.
    func permission(_ gate: Gate) -> Permission {
        Permission(
            isOpen: gate.block == nil && standing.retryAfterUntil == nil && standing.offline == nil
                && (gate.automatic != nil || pushing.isActive),
            isForProbesOnly: standing.isForProbesOnly, isForCommandsOnly: gate.automatic == nil)
    }

    /// Ends an attempt and remembers its batch for another one; the queue gets the lease back.
    mutating func giveBack(_ batch: TrackedBatch, _ number: UInt64) {
        attempts.end(number)
        kept.keep(batch)
        effects.append(.release(batch.header.id))
    }

    /// Tells the queue how a batch ended. Its place is free at once; if the settlement makes other batches,
    /// only after the queue has stored it.
    ///
    /// - Parameter children: what is remembered of the batches that the settlement makes, in the order of
    ///   their groups.
    mutating func settle(_ number: UInt64, _ settlement: Settlement, children: [TrackedBatch] = []) {
        attempts.update(number) { $0.settle(settlement, children) }
        effects.append(.settle(attemptID(number), settlement))
    }

    /// The queue has stored how a batch ended, or failed to (nil); then the settlement is sent again later.
    mutating func settled(_ number: UInt64, _ headers: [BatchHeader]?, at now: Moment) {
        guard let attempt = attempts[number], case .settling(let settling) = attempt.phase else { return }
        guard let headers else {
            let again = noteStoreFailure(at: now)
            attempts.update(number) { $0.tell(again: again) }
            return
        }
        attempts.end(number)
        standing.noteStoreAnswer()
        guard !attempt.isForgotten else { return }
        for (header, child) in zip(headers, settling.content.children)
        where attempts.of(header.id) == nil {
            var batch = child
            batch.header = header
            kept.keep(batch)
            if attempt.isPushed {
                pushing.add(header.id)
            }
        }
        askOthers(at: now)
        if attempt.isPushed {
            pushing.note(nil)
        }
    }

    /// Cuts all attempts; their batches stay in the queue as they are. Attempts whose end the queue is
    /// storing go on.
    mutating func cutAll() {
        // Settlements that the queue failed to store are dropped too: the next run sends those batches again,
        // under the same id.
        for number in attempts.numbers(where: { !$0.isBeingTold }) {
            guard let attempt = attempts.end(number) else { continue }
            if attempt.isLeased {
                effects.append(.cut(attemptID(number)))
            }
            if var batch = attempt.batch {
                if attempt.isSending {
                    batch.mayBeTaken = true
                }
                kept.keep(batch)
                if attempt.isLeased {
                    effects.append(.release(batch.header.id))
                }
            }
        }
    }
}
