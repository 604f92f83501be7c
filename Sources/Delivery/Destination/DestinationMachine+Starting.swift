internal import EventLoops
internal import Model

// Starting attempts: `advance` after every change, `times` for the time of the next one.
extension DestinationMachine {
    /// When `advance` has to be called though nothing happens.
    struct Times: Sendable, Equatable {
        /// Time at which the destination may do something that it may not do now; nil for never.
        var change: BootInstant?
        /// Time for which a timer is set; nil for none. An earlier `change` that needs no timer waits for the
        /// next input.
        var timer: BootInstant?

        func isDue(at now: BootInstant) -> Bool {
            guard let next = change ?? timer else { return false }
            return min(next, timer ?? next) <= now
        }
    }

    /// The times as they are after `advance`.
    func times(_ gate: Gate, at now: Moment) -> Times {
        let chooser = chooser(gate, at: now)
        return Times(change: chooser.changesAt(), timer: chooser.wakeAt())
    }

    /// Starts everything that may start now. Called again at the same time, it does nothing more.
    mutating func advance(_ gate: Gate, at now: Moment) {
        let wasPushing = pushing.isActive
        startAll(gate, at: now)
        // During a push nothing is requested ahead. Its end is no input, so what it allows starts here.
        if wasPushing, !pushing.isActive {
            startAll(gate, at: now)
        }
    }

    /// The steps of `advance`.
    ///
    /// The order matters: waits that are over end first, then commands that can no longer send; batches
    /// leased ahead go back before places are given away; and only what is left after all starts shows
    /// whether a push is over.
    private mutating func startAll(_ gate: Gate, at now: Moment) {
        passTime(at: now)
        settleAgain(at: now)
        endPushAtObstacle(gate)
        markWhatIsDue(gate, at: now)
        returnReady(gate, at: now)
        while let start = nextStart(gate, at: now) { begin(start, gate, at: now) }
        askAhead(gate, at: now)
        endPushWhenOver(gate)
    }

    /// The next attempt, by precedence; nil if nothing may start. Probes do not wait for the rate of
    /// `requestsPerSecond`, but are charged to it.
    private mutating func nextStart(_ gate: Gate, at now: Moment) -> Start? {
        guard let start = chooser(gate, at: now).start() else { return nil }
        return standing.isForProbesOnly || turns.allowsRequest(at: now.boot) ? start : nil
    }

    /// Ends all waits that are over.
    private mutating func passTime(at now: Moment) {
        if standing.passTime(at: now.boot) {
            emit(.persist(SwitchName.retryAfter(name), nil))
        }
        blame.forgetSuspects(olderThan: options.probeInterval, at: now.boot)
        returnUnproven(at: now.boot)
        turns.passTime()
        for priority in Priority.inOrder {
            views[priority].passTime(at: now.boot)
        }
    }

    /// Tells the queue again how batches ended, if it failed to store that and the wait is over.
    private mutating func settleAgain(at now: Moment) {
        for number in attempts.numbers(where: { $0.settleAgainAt.map { $0 <= now.boot } ?? false }) {
            attempts.update(number) { $0.tell(again: nil) }
            guard let settlement = attempts.look(number, { $0.settlement }) else { continue }
            emit(.settle(attemptID(number), settlement))
        }
    }

    /// Releases all waiting events of a lane when its oldest event has waited long enough, and one batch of
    /// events whose deadline is near.
    private mutating func markWhatIsDue(_ gate: Gate, at now: Moment) {
        for priority in Priority.inOrder {
            guard let automatic = gate.automatic else {
                views[priority].letNoneGo()
                continue
            }
            if let risk = backlog.atRisk(priority), risk <= now.wall {
                // One batch only: the next summary shows whether more events are at risk.
                views[priority].letGo(1)
            }
            guard let oldest = views[priority].oldestAcceptedAt else { continue }
            if automatic.due(priority, since: oldest) <= now.boot, backlog.available(priority) > 0 {
                views[priority].letGo(views[priority].waiting)
            }
        }
    }

    /// Begins an attempt: charges the rate, creates the attempt, and asks the queue for the batch (or sends
    /// it, if it was leased ahead).
    private mutating func begin(_ start: Start, _ gate: Gate, at now: Moment) {
        turns.charge(1, at: now.boot)
        switch start {
        case .ready(let number):
            turns.begun(isPiece: false)
            guard var batch = attempts.look(number, { $0.batch }) else { return }
            send(&batch, number, at: now)
        case .again(let batchID, let isProbe):
            guard let batch = kept.take(batchID) else { return }
            turns.begun(isPiece: batch.rejectedAt != nil || isProbe)
            let id = begin(
                Attempt(
                    .known(Boxed(batch)), priority: batch.header.priority, isProbe: isProbe,
                    isPushed: pushing.isActive))
            pushing.begun(batchID)
            if isProbe {
                pushing.usedProbe()
                standing.updateDoubt { $0.noteAttempt(isRefused: batch.aside == .rejected) }
            }
            emit(.leaseAgain(id, batchID))
        case .next(let priority, let takesFree, let isProbe):
            turns.begun(isPiece: takesFree && backlog.suspectsFree)
            beginNext(priority, takesFree: takesFree, isProbe: isProbe, gate, at: now)
        }
    }

    /// Asks the queue for the next batch of a lane, or for a free one.
    private mutating func beginNext(
        _ wanted: Priority, takesFree: Bool, isProbe: Bool, _ gate: Gate, at now: Moment
    ) {
        if isProbe, options.order != .promised, let began = hold?.doubt?.began {
            kept.makeRoom(inDoubtSince: began)
        }
        let wish = isProbe && !takesFree ? newProbe(from: wanted, at: now.boot) : Doubt.NewProbe(lane: wanted)
        let priority = wish.lane
        let id = begin(
            Attempt(
                takesFree ? .free : .next, priority: priority, isProbe: isProbe, isPushed: pushing.isActive))
        if takesFree {
            pushing.begunFree(priority)
        }
        if isProbe {
            pushing.usedProbe()
            standing.updateDoubt { $0.noteAttempt(isRefused: false) }
        }
        let chooser = chooser(gate, at: now)
        let isNewProbe = isProbe && !takesFree
        let request = isNewProbe ? chooser.request(wish) : chooser.request(priority, takesFree: takesFree)
        emit(.leaseNext(id, request))
        if !takesFree, turns.looks(at: now.boot) {
            turns.endLook()
        }
    }

    /// Which new events a probe takes; in a doubt, those that are the most likely to pass.
    private mutating func newProbe(from wanted: Priority, at now: BootInstant) -> Doubt.NewProbe {
        guard hold?.doubt != nil else { return Doubt.NewProbe(lane: wanted) }
        let order = options.order
        let lanes = backlog.lanesWithNew
        let refused = kept.rejectedApps
        var wish = Doubt.NewProbe(lane: wanted)
        standing.updateDoubt {
            wish = $0.newProbe(from: wanted, order, lanes: lanes, refused: refused, at: now)
        }
        return wish
    }

    /// The lane had no event of another app. The probe's turn is given back, since nothing was tried.
    private mutating func foundNoOther(at now: Moment) {
        let lanes = backlog.lanesWithNew
        standing.updateDoubt { $0.foundNoOther(lanes) }
        turns.giveTurnBack()
        standing.setHoldProbe(to: now.boot)
    }
}

// Small batches are requested ahead, several at a time, and wait here for a place (see `Ahead`).
extension DestinationMachine {
    /// Creates an attempt and returns its name.
    mutating func begin(_ attempt: Attempt) -> AttemptID { attemptID(attempts.begin(attempt)) }

    /// Gives back batches leased ahead that may not be sent any more.
    mutating func returnReady(_ gate: Gate, at now: Moment) {
        guard attempts.counts.ready != PerPriority(both: 0) else { return }
        let permission = Permission(gate, standing, isPushing: pushing.isActive)
        let chooser = chooser(gate, at: now)
        let isFull = PerPriority(
            critical: chooser.isFullOfRetries(.critical), normal: chooser.isFullOfRetries(.normal))
        let gone = attempts.numbers { $0.isReady && (!permission.allows($0) || isFull[$0.priority]) }
        for number in gone { returnReady(number) }
    }

    /// Gives back all batches that were leased ahead.
    mutating func returnAllReady() {
        for number in attempts.numbers(where: { $0.isReady }) { returnReady(number) }
    }

    /// Gives back one batch that was leased ahead.
    mutating func returnReady(_ number: UInt64) {
        guard let batch = attempts.look(number, { $0.batch }) else { return }
        emit(.cut(attemptID(number)))
        giveBack(batch, number)
    }

    /// Requests full batches ahead of a free place; see `Ahead`.
    private mutating func askAhead(_ gate: Gate, at now: Moment) {
        // Once all critical events are requested, it may be the turn of the normal ones.
        while let lane = Ahead.lane(chooser(gate, at: now)), Ahead.wantsMore(backlog, lane, gate, pushing) {
            repeat {
                let id = begin(Attempt(.nextAhead, priority: lane, isProbe: false, isPushed: false))
                emit(.leaseNext(id, chooser(gate, at: now).request(lane)))
            } while Ahead.wantsMore(backlog, lane, gate, pushing)
        }
    }
}

// From the queue and back to it: leases, releases, settlements.
extension DestinationMachine {
    /// The queue has answered a request.
    ///
    /// - Parameter revision: that of the lane when the queue had looked; nil if it did not say.
    mutating func leased(
        _ number: UInt64, _ result: LeaseResult, _ apps: [String], _ revision: Int?, _ gate: Gate,
        at now: Moment
    ) {
        guard let attempt = attempts[number], case .leasing(let wish) = attempt.phase else {
            if case .batch(let header, _) = result {
                emit(.release(header.id))
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
                    noteEmpty(attempt.priority, revision, at: now)
                }
            }
        case .batch(let header, let mayBeTaken):
            var batch = TrackedBatch(header: header, notBefore: now.boot)
            batch.mayBeTaken = mayBeTaken
            batch.history.isOfEarlierRun = mayBeTaken
            take(batch, apps, for: number, attempt, wish, revision, gate, at: now)
        }
    }

    /// The queue had nothing to give, which ends a lane's part in a push, unless there is more by now.
    private mutating func noteEmpty(_ priority: Priority, _ revision: Int?, at now: Moment) {
        guard views[priority].noteEmpty(revision: revision, at: now.boot) else { return }
        pushing.foundNothing(priority)
    }

    /// Gives a leased batch to its attempt: sends it, keeps it ready, or gives it back if the state has
    /// changed since the request.
    private mutating func take(
        _ new: TrackedBatch, _ apps: [String], for number: UInt64, _ attempt: Attempt, _ wish: Attempt.Wish,
        _ revision: Int?, _ gate: Gate, at now: Moment
    ) {
        let header = new.header
        guard !attempt.isForgotten else {
            attempts.end(number)
            emit(.release(header.id))
            return
        }
        standing.noteStoreAnswer()
        guard let mine = recognise(new, for: number, wish, at: now) else { return }
        if attempt.awaitsNewBatch {
            views[attempt.priority].noteBatch(events: header.events, revision: revision)
            pushing.got(header.events, attempt.priority, revision: revision)
        }
        var batch = mine
        // The state that allowed the attempt to begin may have changed while the queue was asked.
        guard Permission(gate, standing, isPushing: pushing.isActive).allows(attempt) else {
            return giveBack(batch, number)
        }
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
        batch.history.waitsForDestination = false
        attempts.update(number) { [batch] in $0.send(batch) }
        if let most = options.eventsPerRequest {
            turns.charge((batch.header.events - 1) / most, at: now.boot)
        }
        counters.noteSent(batch.header.events)
        emit(.send(attemptID(number)))
    }

    /// The remembered state of a leased batch; otherwise a new state (see `Recognition`).
    ///
    /// - Returns: nil if the batch must not be sent now; the attempt has ended then.
    private mutating func recognise(
        _ new: TrackedBatch, for number: UInt64, _ wish: Attempt.Wish, at now: Moment
    ) -> TrackedBatch? {
        switch Recognition(of: new.header.id, wish, kept, attempts, at: now.boot) {
        case .new: return new
        case .known(let batch): return batch
        case .kept(let batch):
            kept.remove(batch.header.id)
            pushing.begun(batch.header.id)
            return batch
        case .notYet:
            attempts.end(number)
            emit(.release(new.header.id))
            return nil
        case .isOnItsWay:
            attempts.end(number)
            return nil
        }
    }

    /// Ends an attempt and remembers its batch for another one; the queue gets the lease back.
    mutating func giveBack(_ batch: TrackedBatch, _ number: UInt64) {
        attempts.end(number)
        kept.keep(batch)
        emit(.release(batch.header.id))
    }

    /// Tells the queue how a batch ended. Its place is free at once; if the settlement makes other batches,
    /// only after the queue has stored it.
    ///
    /// - Parameter children: what is remembered of the batches that the settlement makes, in the order of
    ///   their groups.
    mutating func settle(_ number: UInt64, _ settlement: Settlement, children: [TrackedBatch] = []) {
        attempts.update(number) { $0.settle(settlement, children) }
        emit(.settle(attemptID(number), settlement))
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
    /// storing continue.
    mutating func cutAll() {
        // Settlements that the queue failed to store are dropped too: the next run sends those batches again,
        // under the same id.
        for number in attempts.numbers(where: { !$0.isBeingTold }) {
            guard let attempt = attempts.end(number) else { continue }
            if attempt.isLeased {
                emit(.cut(attemptID(number)))
            }
            if var batch = attempt.batch {
                if attempt.isSending {
                    batch.mayBeTaken = true
                }
                kept.keep(batch)
                if attempt.isLeased {
                    emit(.release(batch.header.id))
                }
            }
        }
    }
}
