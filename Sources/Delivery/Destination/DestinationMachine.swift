internal import EventLoops
internal import Model

/// When and what one destination gets: inputs in, effects out.
///
/// After every change `advance` starts whatever may start, and `times` says when time alone would change
/// that. So there is no timer for a single batch that could be lost: only a wrong condition could stall a
/// lane. The machine reads no clock and draws random numbers from a seed that it is given.
///
/// The state is in parts that do not know of each other: `views` (what waits in the queue), `attempts` (what
/// is on its way), `kept` (batches between attempts), `standing` (may anything be sent), `blame` (whose fault
/// a failure is), `turns` (what is next, and the rate), `pushing` (commands). `Chooser` says which attempt is
/// next. The extensions connect them: +Starting begins attempts and speaks with the queue, +Answers treats
/// what the destination answers.
///
/// The rules follow the upload channel of App Center's SDK (batches, retries, pauses) and the dispatch of
/// Google Analytics' SDKs (intervals, commands).
struct DestinationMachine: Sendable {
    var options: DestinationOptions
    var views = PerPriority(both: LaneView())
    var attempts = Attempts()
    var kept = Kept()

    /// Whether anything may be sent, and if not, why and until when.
    var standing: Standing
    /// Whose fault failures and refusals are.
    var blame: Blame
    /// What is next among the batches that may be sent, and how soon the rate allows a request.
    var turns: Turns
    /// The events that commands and the stop still have to send.
    var pushing = Pushing()
    var counters = DeliveryCounters()
    /// Source of all jitter, seeded once, so that a test can repeat a run.
    var random: RepeatableRandom

    /// Effects in order that `moveEffects` has not handed over yet.
    private var effects: [DeliveryEffect] = []

    /// A machine that has sent nothing yet.
    ///
    /// - Parameters:
    ///   - startNotBefore: when the first request may begin, to spread the connections of a fleet.
    ///   - retryAfterUntil: end of a wait that the destination asked an earlier run for.
    ///   - acknowledgedFingerprint: settings with which an earlier run got something acknowledged.
    ///   - keptCeiling: `SizeCeiling` of an earlier run.
    init(
        _ options: DestinationOptions, startNotBefore: BootInstant?, retryAfterUntil: BootInstant?,
        acknowledgedFingerprint: String?, keptCeiling: String? = nil, random: RepeatableRandom, at now: Moment
    ) {
        self.options = options
        self.random = random
        standing = Standing(firstStart: startNotBefore, retryAfterUntil: retryAfterUntil)
        blame = Blame(
            isWithSettings: acknowledgedFingerprint == options.fingerprint,
            ceiling: keptCeiling.flatMap { SizeCeiling(stored: $0, fingerprint: options.fingerprint) })
        turns = Turns(requestsPerSecond: options.requestsPerSecond, at: now.boot)
    }

    /// What waits, and how large the next batches may be.
    var backlog: Backlog {
        Backlog(
            options: options, views: views, attempts: attempts.counts, kept: kept.counts,
            mostEvents: min(options.mostEvents, Cut.largestBatch(share: blame.share(of: nil))),
            maxBytes: min(options.batchBytes, blame.ceiling?.bytes ?? .max),
            suspectsFree: options.order == .free && (hold?.doubt != nil || blame.hasRefusals))
    }

    /// What is next. It copies the parts, so it must not be kept while they change.
    func chooser(_ gate: Gate, at now: Moment) -> Chooser {
        Chooser(
            backlog: backlog, attempts: attempts, kept: kept, standing: standing, blame: blame, turns: turns,
            pushing: pushing, gate: gate, now: now)
    }

    var name: DestinationName { options.name }

    /// The queue's last summaries of both lanes.
    var lanes: Lanes { Lanes(critical: views.critical.summary, normal: views.normal.summary) }

    /// The name of an attempt outside this machine.
    func attemptID(_ number: UInt64) -> AttemptID { AttemptID(destination: name, number: number) }

    // MARK: What changes from outside

    /// The queue has published new summaries.
    ///
    /// - Returns: whether they change anything.
    mutating func update(_ new: Lanes, at now: Moment) -> Bool {
        var isNews = false
        for priority in Priority.inOrder where show(new[priority], priority, at: now) { isNews = true }
        return isNews
    }

    /// An answer to a lease has brought a summary of the attempt's lane.
    mutating func show(_ new: LaneSummary?, to number: UInt64, at now: Moment) {
        guard let new, let priority = attempts.look(number, { $0.priority }) else { return }
        _ = show(new, priority, at: now)
    }

    /// A lane's summary, from the queue's snapshot or from an answer; an old one changes nothing.
    ///
    /// - Returns: whether it changes anything.
    private mutating func show(_ new: LaneSummary, _ priority: Priority, at now: Moment) -> Bool {
        let old = views[priority].summary
        guard views[priority].show(new, at: now) else { return false }
        if new.withdrawn != old.withdrawn {
            // A command took events out of the queue. Which of the batches given back are left, only the
            // queue knows: forget them, and it hands them out again as after a restart.
            kept.removeAll { $0.priority == priority }
        }
        if new.waitingEvents > old.waitingEvents {
            offerNew(at: now)
        }
        return true
    }

    /// Brings the next attempt forward because new events arrived. A destination in doubt gets them at once,
    /// or within 10 s if it counts as held.
    private mutating func offerNew(at now: Moment) {
        if blame.asksMore {
            turns.look(at: turns.lookAt ?? now.boot + Doubt.step)
        }
        standing.noteNewEvents(options.order, hasRoom: kept.hasRoomForRejected, at: now.boot)
    }

    /// Applies changed settings, and forgets what was learned with the old ones.
    ///
    /// A reload by a person also ends a hold: it means that the cause is fixed. A change of settings by a
    /// container does not.
    mutating func update(_ new: DestinationOptions, isByPerson: Bool, at now: Moment) {
        let old = options
        options = new
        if isByPerson || old.fingerprint != new.fingerprint {
            learn { $0.forgetCeiling() }
            liftHold(at: now.boot)
        }
        if old.fingerprint != new.fingerprint {
            blame.forgetSettings()
        }
        if old.fingerprint != new.fingerprint || old.retry != new.retry
            || old.whenExhausted != new.whenExhausted
            || old.probeInterval != new.probeInterval
        {
            // Waits that have begun follow the new schedule too.
            resetRetries(at: now)
        }
        if old.requestsPerSecond != new.requestsPerSecond {
            turns.limit(to: new.requestsPerSecond, at: now.boot)
        }
    }

    /// The network has changed: waits after failures end and the breaker closes. Retry-After and holds stay,
    /// because a different network does not change what the receiver said.
    mutating func resetRetries(at now: Moment) {
        standing.forgetNoRoute()
        standing.endTrouble()
        closeBreaker(at: now)
        kept.updateAll { $0.reset(at: now.boot) }
        attempts.updateAll { $0.isBegunAgain = true }
    }

    /// Whether a route leads to the destination. A new route also ends the waits after failures.
    mutating func setRoute(_ isPresent: Bool, at now: Moment) {
        guard standing.setRoute(isPresent) else { return }
        emit(.note(name, isPresent ? .online : .offline))
        if isPresent {
            resetRetries(at: now)
        }
    }

    /// A token, key or certificate has changed: earlier acknowledgements prove nothing about it.
    mutating func renewCredentials(at now: Moment) {
        blame.forgetCredentials()
        resume(at: now)
    }

    /// A person says that the destination has recovered, or its credentials have changed: waits, holds and
    /// the breaker end, and retries are counted from zero.
    mutating func resume(at now: Moment) {
        liftHold(at: now.boot)
        endRetryAfter()
        resetRetries(at: now)
        blame.forgiveAll()
        kept.updateAll { $0.notBefore = now.boot }
    }

    /// Retries set-aside batches of an app or of all (nil), because a person says that the cause is gone.
    mutating func retryAside(of app: String?, at now: BootInstant) {
        blame.forgive(app)
        kept.retryAside(of: app, after: .zero, at: now)
    }

    /// Whether anything could be sent, now or later.
    var hasSomething: Bool { backlog.hasSomething }

    /// Events that have not reached the destination, as far as is known; the figure that drain reports.
    var eventsLeft: Int { backlog.eventsLeft(underWay: attempts.eventsLeft) }

    /// Apps whose requests fail while those of others succeed, with the last failure of each; for `status`.
    var failingApps: [String: Failure] {
        guard kept.counts.failing > 0 else { return [:] }
        let aside = Set(kept.all.filter { $0.aside == .fails }.compactMap(\.app))
        let failing = aside.compactMap { app in
            blame.suspect(app).flatMap { $0.isAlone ? (app, $0.failure) : nil }
        }
        return Dictionary(uniqueKeysWithValues: failing)
    }

    /// Collection was disabled and the queue is emptied: batches are forgotten, and answers to those in
    /// flight will be ignored.
    mutating func forgetAll() {
        for number in attempts.numbers(where: { $0.isReady }) { returnReady(number) }
        kept = Kept()
        attempts.updateAll { attempt in
            attempt.isForgotten = true
            attempt.isPushed = false
        }
        for priority in Priority.inOrder { views[priority].forget() }
        standing.forget()
        pushing.forget()
    }

    // MARK: Small steps

    /// Adds an effect.
    mutating func emit(_ effect: DeliveryEffect) { effects.append(effect) }

    /// Adds the effects since the last call to a list, in order.
    mutating func moveEffects(to all: inout [DeliveryEffect]) {
        all += effects
        effects.removeAll(keepingCapacity: true)
    }

    /// Wait before the next probe, with jitter.
    mutating func probeWait() -> Duration { options.probeWait(using: &random) }

    var hold: Hold? { standing.hold }

    var breaker: Standing.Breaker? { standing.breaker }

    var retryAfterUntil: BootInstant? { standing.retryAfterUntil }

    /// Ends a hold, and logs the end if its beginning was logged.
    mutating func liftHold(at now: BootInstant) {
        guard let lifted = standing.liftHold() else { return }
        // Batches rejected in a doubt are tried again at once: now their events can be judged, and end as
        // dead letters.
        if lifted.hold.doubt != nil {
            kept.updateAll(where: \.isOpenlyRejected) { $0.notBefore = now }
        }
        if lifted.isAnnounced {
            emit(.note(name, .holdLifted))
        }
    }

    /// Ends a wait that the destination asked for, also for the next start.
    mutating func endRetryAfter() {
        if standing.endRetryAfter() {
            emit(.persist(SwitchName.retryAfter(name), nil))
        }
    }

    /// Learns from an answer, and makes the size ceiling durable if it has changed.
    mutating func learn<Result>(_ change: (inout Blame) -> Result) -> Result {
        let before = blame.ceiling
        let result = change(&blame)
        guard blame.ceiling != before else { return result }
        let stored = blame.ceiling?.stored(fingerprint: options.fingerprint)
        if stored != before?.stored(fingerprint: options.fingerprint) {
            emit(.persist(SwitchName.ceiling(name), stored))
        }
        return result
    }

    /// Closes the breaker if it is open. Batches start over with their retries, since the failures were the
    /// destination's.
    mutating func closeBreaker(at now: Moment) {
        guard standing.closeBreaker() else { return }
        kept.updateAll { $0.reset(at: now.boot) }
        emit(.note(name, .breakerClosed))
    }

    /// A call of the queue failed; returns when the queue may be asked again. Failures before that time are
    /// not logged again.
    mutating func noteStoreFailure(at now: Moment) -> BootInstant {
        counters.storeFailures += 1
        let failure = standing.noteStoreFailure(at: now.boot)
        if let wait = failure.wait {
            emit(.note(name, .storeFailed(again: wait)))
        }
        return failure.again
    }

    /// Why nothing at all is sent, the highest reason first; nil if something may be sent.
    func obstacle(_ gate: Gate) -> DestinationStateName? {
        gate.block ?? standing.obstacle
    }
}

/// What commands make the destination do (see `Pushing`).
extension DestinationMachine {
    /// A command wants what waits to be sent now; for a drain also what comes.
    ///
    /// A person's or an app's command ends every wait once: retries, batches that are set aside, a
    /// Retry-After. Otherwise `dispatch` would send a repaired receiver nothing. What follows depends on its
    /// answer. The drain of the stop and the further rounds of a drain end no waits (`now` is nil).
    mutating func beginPush(everything: Bool, byCommandAt now: Moment? = nil) {
        if let now {
            kept.updateAll { $0.notBefore = now.boot }
            endRetryAfter()
            standing.forgetNoRoute()
        }
        pushing.begin(
            Push(
                everything: everything || pushing.isEverything, backlog,
                batches: kept.ids { !$0.isSetAside }))
        // Batches in flight belong to a drain, because it reports all that is left. For a dispatch, only
        // batches that are not sent yet belong to what waited.
        attempts.updateAll { attempt in
            guard !attempt.isForgotten else { return }
            if everything || attempt.isLeasing || attempt.isReady {
                attempt.isPushed = true
            }
        }
    }

    /// Starts nothing more for commands, which are given the reason; requests in flight end.
    mutating func stopPush(_ reason: DestinationStateName? = nil) {
        pushing.stop(reason)
    }

    /// A request of the push failed, or no route leads to the destination (nil): what is left stays in the
    /// queue.
    mutating func endPush(after failure: Failure?) {
        guard let failure else { return stopPush(.offline) }
        pushing.note(failure)
        stopPush(standing.reasonAfterFailure)
    }

    /// Ends a push if something of higher precedence stops sending.
    mutating func endPushAtObstacle(_ gate: Gate) {
        guard let obstacle = obstacle(gate), pushing.ends(at: obstacle, probes: attempts.counts.probes)
        else { return }
        stopPush(obstacle)
    }

    /// Ends a push when nothing of it is in flight and nothing of it can start.
    mutating func endPushWhenOver(_ gate: Gate) {
        // If other attempts hold all places, batches of the push may still be waiting for one.
        guard pushing.isActive, attempts.counts.pushed == 0, standing.storeRetryAt == nil,
            turns.rateRetryAt == nil,
            attempts.begun < options.parallelBatches
        else { return }
        let backlog = backlog
        guard !pushing.mayFindMore(in: backlog) else { return }
        if let obstacle = obstacle(gate), backlog.hasSomething {
            stopPush(obstacle)
        } else {
            // All remaining batches have failed and wait for a retry.
            stopPush(kept.isEmpty ? nil : .waitingForRetry)
        }
    }
}
