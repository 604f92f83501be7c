internal import EventLoops
internal import Model

/// When and what one destination gets: values in, effects out.
///
/// It reads no clock, and draws random numbers from a seed that it is given. After every change `advance` starts
/// whatever may start, so nothing is ever due and forgotten: there is no timer that must not be lost, only `wakeAt`.
///
/// Sources: App Center's channel (ac01–ac06, ac13–ac18), Google Analytics' dispatch (ga02–ga07).
struct DestinationMachine: Sendable {
    /// What takes precedence over the destination's own state.
    struct Gate: Sendable, Equatable {
        /// When events go by themselves.
        struct Automatic: Sendable, Equatable {
            /// How long the oldest of a lane may wait.
            var waits: PerPriority<Duration>
            /// Whether a full batch goes before its time.
            var batchOnSize: Bool
            /// See `DeliveryOptions.phase`.
            var phase: Double?

            /// When what was accepted then goes: after half the wait at the earliest, at its end at the latest. In between the
            /// machine's phase decides; an agent with constant events sends once a wait, as without it.
            func due(_ priority: Priority, since accepted: BootInstant) -> BootInstant {
                let wait = waits[priority]
                let half = wait.nanosecondsClamped / 2
                guard let phase, half > 0 else { return accepted + wait }
                let earliest = accepted.nanoseconds.addingSaturating(half)
                let late = (Int64(Double(half) * phase) - earliest % half + half) % half
                return BootInstant(nanoseconds: earliest.addingSaturating(late))
            }
        }

        /// Nothing goes at all, and why.
        var block: DestinationStateName?
        /// Nil: nothing is sent unprompted.
        var automatic: Automatic?
    }

    /// The destination or its settings are wrong.
    struct Hold: Sendable, Equatable {
        let failure: Failure
        let since: Timestamp
        var nextProbe: BootInstant
        /// Whether it is about rejected events, which may be at fault themselves.
        var doubt: Doubt?
    }

    /// It failed too often.
    struct Breaker: Sendable, Equatable {
        let since: Timestamp
        /// Nil: no probe is sent unprompted.
        var nextProbe: BootInstant?
    }

    enum Offline: Sendable, Equatable {
        /// Until the network says otherwise.
        case noRoute
        /// A sender found out by itself, and looks again then.
        case until(BootInstant)
    }

    /// The attempt that the destination has answered, and when.
    struct Answer {
        let number: UInt64
        let isProbe: Bool
        /// Whose the batch's events are, one by one; empty where nobody looked.
        let apps: [String]
        let now: Moment

        /// Whose the event at a place is; nil where nobody knows.
        func app(of place: Int) -> String? { apps.isEmpty || apps[place].isEmpty ? nil : apps[place] }

        /// Whose all of them are; nil: several apps', or nobody knows.
        var app: String? { Set(apps).count == 1 ? app(of: 0) : nil }
    }

    /// What is known of a lane beyond its summary.
    struct LaneState: Sendable {
        /// When the oldest waiting event was accepted: as the queue says, and on the clock for waits.
        var oldest: (acceptedAt: Timestamp, boot: BootInstant)?
        /// So many of the waiting events go now, whatever their age: the lane's time was up.
        var flush = 0
        /// The queue had nothing to give: nothing is asked until the summary changes, or then.
        var emptyUntil: BootInstant?
        /// How often in a row it had nothing to give.
        var emptyAnswers = 0
        /// Events of all leases so far, by the queue's own count (`LaneSummary.handedOut`): the difference is what the summary
        /// does not show yet, or shows before the batches have come. Nil before the first summary.
        var taken: Int?
        /// When the queue's count changed last. Long after that it is right: no lane stalls because an answer was lost.
        var leasedAt: BootInstant?
        /// Free batches that were handed over since the summary last changed. The summary may not show it yet; should it
        /// have shown it before, it counts no more after a moment.
        var takenFree = 0
        var takenUntil: BootInstant?
    }

    /// How many events a destination counts as having taken, when it acknowledged something before a restart.
    private static let trustKept = 10

    var options: DestinationOptions
    var lanes = Lanes()
    var laneStates = PerPriority(both: LaneState())
    var attempts = SmallMap<UInt64, Attempt>()
    var tracked: [BatchID: TrackedBatch] = [:]
    var nextAttempt: UInt64 = 1

    var hold: Hold?
    /// When the first doubt began that was ended by what had been taken before it.
    var doubtedSince: BootInstant?
    var breaker: Breaker?
    var retryAfterUntil: BootInstant?
    var offline: Offline?
    var storeRetryAt: BootInstant?
    var storeFailures = 0
    /// Spreads the first connections of a fleet (fault 14).
    var startNotBefore: BootInstant?
    var bucket: TokenBucket?
    var rateRetryAt: BootInstant?

    var push: Push?
    /// Why the last push ended; nil when all went.
    var pushEnd: DestinationStateName?
    /// How pushed attempts ended: nil where the batch was taken, split or given up. Taken by the coordinator.
    var ends: [Failure?] = []
    /// While stopping, nothing that fails is final: only acknowledgements count.
    var isStopping = false

    /// How many batches were ever acknowledged.
    var acknowledgements = 0
    /// When the attempt began that was acknowledged and began last: what was rejected before is the events' fault.
    var tookAt: BootInstant?
    /// Whether a piece of what was rejected is next, before what was not.
    var prefersPieces = false
    /// Apps with whose events requests failed, while those of others may be taken.
    var suspects: [String: Suspect] = [:]
    /// When what waits is looked through for events of an app that was not asked yet.
    var lookAt: BootInstant?
    /// Attempts that failed since the last one that went through, and were logged.
    var failuresInARow = 0
    /// Since when it fails, or asks to be tried again later, and has taken nothing: then one request at a time is on its way.
    var refusingSince: Timestamp?
    var hasAcknowledgedWithSettings: Bool
    var rejections = RejectionWindow()
    var ceiling: SizeCeiling?
    /// The largest batch that it took among the last hundred or so, in uncompressed bytes.
    var largestTaken = 0
    var counters = DeliveryCounters()
    var random: RepeatableRandom
    var lastSuccess: Timestamp?
    var lastFailure: (failure: Failure, at: Timestamp)?

    /// What is to be done, in order. Taken by the coordinator.
    var effects: [DeliveryEffect] = []

    init(
        _ options: DestinationOptions, startNotBefore: BootInstant?, retryAfterUntil: BootInstant?,
        acknowledgedFingerprint: String?, random: RepeatableRandom, at now: Moment
    ) {
        self.options = options
        self.random = random
        self.startNotBefore = startNotBefore
        self.retryAfterUntil = retryAfterUntil
        hasAcknowledgedWithSettings = acknowledgedFingerprint == options.fingerprint
        // A restart in front of a bad event is no reason to hold; one before a heap of them is.
        rejections = RejectionWindow(trusted: hasAcknowledgedWithSettings ? DestinationMachine.trustKept : 0)
        bucket = options.requestsPerSecond.map { TokenBucket(perSecond: $0, at: now.boot) }
    }

    var name: DestinationName { options.name }

    func attemptID(_ number: UInt64) -> AttemptID { AttemptID(destination: name, number: number) }

    // MARK: What changes from outside

    /// The queue's figures have changed.
    mutating func update(_ new: Lanes, at now: Moment) {
        let hasNew = Priority.inOrder.contains { new[$0].waitingEvents > lanes[$0].waitingEvents }
        for priority in Priority.inOrder where new[priority] != lanes[priority] {
            if new[priority].withdrawn != lanes[priority].withdrawn {
                // Which of those that were given back are left, the queue knows: it hands them over as after a restart.
                tracked = tracked.filter { $0.value.header.priority != priority }
            }
            laneStates[priority].emptyUntil = nil
            laneStates[priority].emptyAnswers = 0
            laneStates[priority].takenFree = 0
            laneStates[priority].takenUntil = nil
            // Without a count yet, or where the queue has begun again (a damaged file was replaced), it is the queue's.
            if laneStates[priority].taken == nil || new[priority].handedOut < lanes[priority].handedOut {
                laneStates[priority].taken = new[priority].handedOut
            }
            if new[priority].handedOut != lanes[priority].handedOut { laneStates[priority].leasedAt = now.boot }
            let acceptedAt = new[priority].oldestAcceptedAt
            if acceptedAt != laneStates[priority].oldest?.acceptedAt {
                // A time in the future (the clock was set back) starts the full wait now (ac05).
                laneStates[priority].oldest = acceptedAt.map { acceptedAt in
                    let age = max(.zero, now.wall - acceptedAt)
                    return (acceptedAt, now.boot + (.zero - age))
                }
            }
        }
        lanes = new
        if hasNew { offerNew(at: now) }
    }

    /// The settings have changed: what was learned about the old ones is forgotten; a person who has them read again also means
    /// that what held a destination is fixed, a container does not.
    mutating func update(_ new: DestinationOptions, isByPerson: Bool, at now: Moment) {
        let old = options
        options = new
        if isByPerson || old.fingerprint != new.fingerprint {
            ceiling = nil
            liftHold(at: now.boot)
        }
        if old.fingerprint != new.fingerprint {
            (hasAcknowledgedWithSettings, tookAt) = (false, nil)
            suspects = [:]
            rejections = RejectionWindow()
        }
        if old.fingerprint != new.fingerprint || old.retry != new.retry || old.whenExhausted != new.whenExhausted
            || old.probeInterval != new.probeInterval
        {
            // Waits that have begun are by the new settings, too.
            resetRetries(at: now)
        }
        if old.requestsPerSecond != new.requestsPerSecond {
            bucket = new.requestsPerSecond.map { TokenBucket(perSecond: $0, at: now.boot) }
        }
    }

    /// The network has changed: waits end, the breaker closes (ac15). Retry-After and holds stay.
    mutating func resetRetries(at now: Moment) {
        if case .until = offline { offline = nil }
        if refusingSince != nil { (refusingSince, startNotBefore) = (nil, nil) }
        closeBreaker(at: now)
        for id in tracked.keys { tracked[id]?.reset(at: now.boot) }
        attempts.updateAll { _, attempt in attempt.isBegunAgain = true }
    }

    mutating func setRoute(_ isPresent: Bool, at now: Moment) {
        if !isPresent {
            if offline != .noRoute {
                offline = .noRoute
                effects.append(.note(name, .offline))
            }
        } else if offline == .noRoute {
            offline = nil
            effects.append(.note(name, .online))
            resetRetries(at: now)
        }
    }

    /// A person says that it has recovered, or it has other credentials: holds are lifted, retries begin again.
    mutating func resume(at now: Moment) {
        liftHold(at: now.boot)
        resetRetries(at: now)
        rejections.forgive()
        suspects = [:]
        for id in tracked.keys { tracked[id]?.notBefore = now.boot }
    }

    /// Collection was disabled and the queue emptied: nothing of it is ours any more.
    mutating func forgetAll() {
        for number in attempts.keys(where: { $0.isReady }) { returnReady(number) }
        tracked = [:]
        attempts.updateAll { _, attempt in
            attempt.isForgotten = true
            attempt.isPushed = false
        }
        for priority in Priority.inOrder {
            laneStates[priority] = LaneState(taken: laneStates[priority].taken)
        }
        hold = nil
        breaker = nil
        push = nil
    }

    // MARK: Small steps

    /// How long to wait before the next look whether everything has recovered.
    mutating func probeWait() -> Duration { options.retry.shortened(options.probeInterval, using: &random) }

    /// When the destination is next tried while it is held, or its breaker is open; a hold comes first.
    var nextProbe: BootInstant? { hold.map(\.nextProbe) ?? breaker?.nextProbe }

    mutating func liftHold(at now: BootInstant) {
        guard let lifted = hold else { return }
        hold = nil
        // What was rejected in a doubt is tried again at once, to end as a dead letter.
        for (id, batch) in tracked where lifted.doubt != nil && batch.rejectedAt != nil && !batch.isSetAside {
            tracked[id]?.notBefore = now
        }
        if lifted.doubt?.isAnnounced ?? true { effects.append(.note(name, .holdLifted)) }
    }

    mutating func closeBreaker(at now: Moment) {
        guard breaker != nil else { return }
        breaker = nil
        for id in tracked.keys { tracked[id]?.reset(at: now.boot) }
        effects.append(.note(name, .breakerClosed))
    }

    /// The queue could not do what was asked: it is left alone for a moment.
    mutating func noteStoreFailure(at now: Moment) -> BootInstant {
        counters.storeFailures += 1
        // Several calls that fail together are one failure: they were under way when the first of them was told.
        if let again = storeRetryAt, again > now.boot { return again }
        storeFailures += 1
        let wait = Duration.seconds(min(30, 1 << min(5, storeFailures - 1)))
        let again = now.boot + wait
        storeRetryAt = again
        effects.append(.note(name, .storeFailed(again: wait)))
        return again
    }

    /// Why nothing goes to the destination at all, the highest reason first; nil when something may.
    func obstacle(_ gate: Gate) -> DestinationStateName? {
        if let block = gate.block { return block }
        if hold != nil { return .held }
        if retryAfterUntil != nil { return .retryAfter }
        if offline != nil { return .offline }
        if breaker != nil { return .breakerOpen }
        return nil
    }
}
