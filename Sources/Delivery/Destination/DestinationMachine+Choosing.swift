internal import EventLoops
internal import Model

extension DestinationMachine {
    /// The next attempt, by the order of precedence; nil when nothing may start.
    mutating func nextStart(_ gate: Gate, at now: Moment) -> Start? {
        guard gate.block == nil, storeRetryAt == nil, gate.automatic != nil || push != nil else { return nil }
        guard retryAfterUntil == nil, offline == nil else { return nil }
        if hold != nil || breaker != nil {
            let isDue = gate.automatic != nil && nextProbe.map { $0 <= now.boot } ?? false
            return isDue || push?.probe == true ? probe() : look(gate, at: now)
        }
        guard push != nil || startNotBefore == nil else { return nil }
        guard let start = regular(gate, at: now) else { return nil }
        if let wait = bucket?.wait(at: now.boot), wait > .zero {
            rateRetryAt = now.boot + wait
            return nil
        }
        return start
    }

    private func regular(_ gate: Gate, at now: Moment) -> Start? {
        // What was rejected, and its pieces, take turns with all else, whatever their lane: they may be thousands.
        let piece = hasPlace(.normal) ? rejected(gate, at: now) : nil
        if prefersPieces, let piece { return piece }
        return unrejected(gate, at: now) ?? piece ?? setAside(.fails, gate, at: now)
    }

    private func rejected(_ gate: Gate, at now: Moment) -> Start? {
        // While requests fail, a lane that is full of retries offers no new piece either.
        let full = refusingSince == nil ? [] : Priority.inOrder.filter(isFullOfRetries)
        return setAside(.rejected, gate, at: now)
            ?? ready(gate, at: now) {
                $0.rejectedAt != nil && ($0.attemptedAt != nil || !full.contains($0.header.priority))
            } ?? (suspectsFree ? free(in: Priority.inOrder, gate) : nil)
    }

    private func unrejected(_ gate: Gate, at now: Moment) -> Start? {
        for priority in Priority.inOrder where hasPlace(priority) {
            guard let start = start(in: priority, gate, at: now) else { continue }
            // Whatever causes a sending takes the waiting critical events first (ac06).
            if priority == .normal, hasPlace(.critical), !isFullOfRetries(.critical), available(.critical) > 0 {
                return .next(.critical, takesFree: false, isProbe: false)
            }
            if priority == .normal, isCriticalOnItsWay { return nil }
            return start
        }
        return nil
    }

    /// The oldest of the batches that were given back and may go again now.
    private func ready(_ gate: Gate, at now: Moment, where isMeant: (TrackedBatch) -> Bool) -> Start? {
        // In order, only what is first in its lane goes, and alone.
        let known =
            options.order == .free
            ? Array(tracked.values) : Priority.inOrder.compactMap { hasPlace($0) ? oldest($0) : nil }
        let ready = known.filter {
            isMeant($0) && !$0.isSetAside && $0.notBefore <= now.boot
                && (gate.automatic != nil || push?.everything == true || push?.batches.contains($0.header.id) == true)
        }
        return ready.min(by: DestinationMachine.isOlder).map { .again($0.header.id, isProbe: false) }
    }

    private func start(in priority: Priority, _ gate: Gate, at now: Moment) -> Start? {
        if let again = ready(gate, at: now, where: { $0.header.priority == priority && $0.rejectedAt == nil }) {
            return again
        }
        guard !isFullOfRetries(priority) || looks(at: now), hasRoomForRejected else { return nil }
        if !suspectsFree, let free = free(in: [priority], gate) { return free }
        if let asked = attempts.firstKey(where: { $0.isReady && $0.priority == priority }) { return .ready(asked) }
        return isDue(priority, gate) ? .next(priority, takesFree: false, isProbe: false) : nil
    }

    /// A batch that is free since a restart.
    private func free(in lanes: [Priority], _ gate: Gate) -> Start? {
        let lane = lanes.first {
            freeToTake($0) > 0 && !isFullOfRetries($0) && hasRoomForRejected
                && (gate.automatic != nil || push?.everything == true || (push?.free[$0] ?? 0) > 0)
        }
        return lane.map { .next($0, takesFree: true, isProbe: false) }
    }

    func isDue(_ priority: Priority, _ gate: Gate) -> Bool {
        guard waiting(priority) > 0 else { return false }
        let asked = asked(priority)
        let events = available(priority, asked: asked)
        guard events > 0 else { return false }
        let coming = asked * largestBatch(priority)
        if let push, push.everything || push.events[priority] > coming { return true }
        guard let automatic = gate.automatic else { return false }
        if laneStates[priority].flush > coming { return true }
        return automatic.batchOnSize
            && (events >= options.dueEvents || lanes[priority].waitingBytes - asked * maxBytes >= maxBytes)
    }

    /// At most `parallelBatches` are in flight; a critical one more, when normal ones take all places (ac04). After a refusal: one.
    func hasPlace(_ priority: Priority) -> Bool {
        if refusingSince != nil, attempts.contains(where: { $0.takesPlace }) { return false }
        if options.order != .free, attempts.contains(where: { $0.priority == priority && $0.takesPlace }) {
            return false
        }
        let taken = attempts.count { $0.takesPlace }
        if taken < options.parallelBatches { return true }
        return priority == .critical && taken == options.parallelBatches
            && !attempts.contains { $0.priority == .critical && $0.takesPlace }
    }

    /// Whether so many batches of the lane wait for a retry that nothing new of it starts (ac04); in order, nothing passes one.
    func isFullOfRetries(_ priority: Priority) -> Bool {
        if options.order != .free { return oldest(priority) != nil }
        return tracked.values.count { $0.waitsForRetry && $0.header.priority == priority } >= 2
            * options.parallelBatches
    }

    /// The batch that is first in its lane's order, of those that were given back.
    func oldest(_ priority: Priority, where isMeant: (TrackedBatch) -> Bool = { _ in true }) -> TrackedBatch? {
        tracked.values.filter { $0.header.priority == priority && !$0.isSetAside && isMeant($0) }
            .min(by: DestinationMachine.isOlder)
    }

    private static func isOlder(_ left: TrackedBatch, _ right: TrackedBatch) -> Bool {
        if left.header.acceptedAt != right.header.acceptedAt { return left.header.acceptedAt < right.header.acceptedAt }
        if left.place != right.place { return left.place.lexicographicallyPrecedes(right.place) }
        return left.header.id < right.header.id
    }

    /// A batch that is set aside: one at a time. What alone fails goes when nothing else has to (fault 11).
    private func setAside(_ aside: TrackedBatch.Aside, _ gate: Gate, at now: Moment) -> Start? {
        guard gate.automatic != nil, begun < options.parallelBatches,
            !attempts.contains(where: { $0.batch?.isSetAside == true })
        else { return nil }
        let due = tracked.values.filter { $0.aside == aside && $0.notBefore <= now.boot }
        return due.min { $0.notBefore < $1.notBefore }.map { .again($0.header.id, isProbe: false) }
    }

    /// What is tried to learn whether the destination has recovered: another batch than the last time, if there is
    /// one, and one that was set aside only when there is nothing else.
    private func probe() -> Start? {
        guard begun < options.parallelBatches, !attempts.contains(where: \.isProbe) else { return nil }
        if let doubt = hold?.doubt, let start = untried(in: doubt) { return start }
        if let start = unasked() { return start }
        if options.order == .promised, let first = firstInOrder() { return first }
        // What is set aside may be taken again, and would end a doubt.
        let known = tracked.values.filter { !$0.isSetAside || hold?.doubt != nil }
        let fresh = Priority.inOrder.first { freeToTake($0) > 0 || available($0) > 0 }
        let isCriticalNew = fresh == .critical && !known.contains { $0.header.priority == .critical }
        if let fresh, known.count < 2 || isCriticalNew {
            return .next(fresh, takesFree: freeToTake(fresh) > 0, isProbe: true)
        }
        // Of another app than the last one, if there is any, and what was not tried again yet.
        let last = known.max(by: TrackedBatch.isRested)?.app
        let others = known.filter { $0.app != last }
        let all = [
            others.filter { !$0.isTriedAgain && $0.app != nil }, others.filter { !$0.isTriedAgain }, others, known,
            Array(tracked.values),
        ].first { !$0.isEmpty }
        return all?.min(by: TrackedBatch.isRested).map { .again($0.header.id, isProbe: true) }
    }

    /// What is first in its lane, of the lane that was attempted longer ago; in a doubt, what was not tried since.
    func firstInOrder(untriedSince began: BootInstant? = nil) -> Start? {
        let firsts = Priority.inOrder.compactMap { priority -> (start: Start, at: Int64)? in
            guard hasPlace(priority) else { return nil }
            let first = oldest(priority) { batch in began.map { !mayBePassed(batch, since: $0) } ?? true }
            if let first {
                return (.again(first.header.id, isProbe: true), first.attemptedAt?.nanoseconds ?? .min)
            }
            let takesFree = freeToTake(priority) > 0
            guard hasRoomForRejected, takesFree || available(priority) > 0 else { return nil }
            return (.next(priority, takesFree: takesFree, isProbe: true), .min)
        }
        return firsts.min { $0.at < $1.at }?.start
    }
}
