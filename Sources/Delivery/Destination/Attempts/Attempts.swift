internal import EventLoops
internal import Model

/// What is on its way for a destination: requested from the queue, sent, or being settled.
///
/// Dozens of questions are asked of all attempts for each batch. They are answered by running totals, which
/// each change keeps up to date. So attempts must be changed through this type only; otherwise a place would
/// stay occupied, and the destination would stall.
struct Attempts: Sendable {
    /// Running totals over all attempts.
    struct Counts: Sendable, Equatable {
        /// Attempts that hold one of the destination's places.
        var places = PerPriority(both: 0)
        /// Attempts that wait for the queue.
        var leasing = PerPriority(both: 0)
        /// Attempts that wait for the queue to form a batch from waiting events.
        var askingForNew = PerPriority(both: 0)
        /// Batches that exist in the queue and were requested, and those that settlements are making.
        var known = PerPriority(both: 0)
        /// Batches leased ahead.
        var ready = PerPriority(both: 0)
        /// Attempts ahead of a free place: requested or leased.
        var ahead = 0
        var sending = 0
        var unproven = 0
        var probes = 0
        /// Attempts whose result a command waits for.
        var pushed = 0
        /// Batches that settlements are making.
        var coming = 0
        /// Attempts with a batch that was set aside.
        var setAside = 0

        /// Adds an attempt (1) or takes it out (-1).
        fileprivate mutating func add(_ attempt: Attempt, _ sign: Int) {
            let priority = attempt.priority
            if attempt.takesPlace {
                places[priority] += sign
            }
            if attempt.isLeasing {
                leasing[priority] += sign
            }
            if attempt.awaitsNewBatch {
                askingForNew[priority] += sign
            }
            if attempt.awaitsKnownBatch {
                known[priority] += sign
            }
            if attempt.isReady {
                ready[priority] += sign
            }
            if attempt.isWaitingAhead {
                ahead += sign
            }
            if attempt.isSending {
                sending += sign
            }
            if attempt.isUnproven {
                unproven += sign
            }
            if attempt.isProbe {
                probes += sign
            }
            if attempt.isPushed {
                pushed += sign
            }
            if attempt.holdsSetAside {
                setAside += sign
            }
            let coming = attempt.batchesToCome
            self.coming += sign * coming
            known[priority] += sign * coming
        }
    }

    /// Most events that wait for proof. All attempts are scanned for each request, so more of them would slow
    /// every request down.
    private static let mostUnproven = 16

    private var all = SmallMap<UInt64, Attempt>()
    private var nextNumber: UInt64 = 1
    /// Running totals; always the sum over `all`.
    private(set) var counts = Counts()

    var isEmpty: Bool { all.isEmpty }
    var count: Int { all.count }

    /// Attempts that are neither ahead of a free place nor waiting for proof; limits probes and retries of
    /// set-aside batches.
    var begun: Int { all.count - counts.ahead - counts.unproven }

    /// Whether another rejected event may wait for proof.
    var hasRoomForUnproven: Bool { counts.unproven < Attempts.mostUnproven }

    var numbers: [UInt64] { all.keys }

    var values: [Attempt] { all.values }

    subscript(number: UInt64) -> Attempt? { all[number] }

    // MARK: Changes

    mutating func begin(_ attempt: Attempt) -> UInt64 {
        defer { nextNumber += 1 }
        all[nextNumber] = attempt
        counts.add(attempt, 1)
        return nextNumber
    }

    /// Ends an attempt and returns it; nil if it is unknown.
    @discardableResult
    mutating func end(_ number: UInt64) -> Attempt? {
        guard let ended = all.removeValue(forKey: number) else { return nil }
        counts.add(ended, -1)
        assert(!all.isEmpty || counts == Counts(), "nothing is counted when nothing is on its way")
        return ended
    }

    mutating func endAll() { (all, counts) = (SmallMap(), Counts()) }

    /// Changes an attempt in place and keeps the totals.
    @inline(__always)
    mutating func update(_ number: UInt64, _ change: (inout Attempt) -> Void) {
        all.update(number) { attempt in
            counts.add(attempt, -1)
            change(&attempt)
            counts.add(attempt, 1)
        }
    }

    /// Changes all attempts in place and keeps the totals.
    mutating func updateAll(_ change: (inout Attempt) -> Void) {
        all.updateAll { _, attempt in
            counts.add(attempt, -1)
            change(&attempt)
            counts.add(attempt, 1)
        }
    }

    // MARK: Questions

    /// A property of an attempt, without copying the attempt; nil for an unknown number.
    @inline(__always)
    func look<Result>(_ number: UInt64, _ say: (Attempt) -> Result?) -> Result? { all.look(number, say) }

    @inline(__always)
    func forEach(_ look: (Attempt) -> Void) { all.forEach { _, attempt in look(attempt) } }

    func contains(_ number: UInt64) -> Bool { all.contains(number) }

    @inline(__always)
    func contains(where isSo: (Attempt) -> Bool) -> Bool { all.contains(where: isSo) }

    @inline(__always)
    func first(where isSo: (Attempt) -> Bool) -> UInt64? { all.firstKey(where: isSo) }

    func numbers(where isSo: (Attempt) -> Bool) -> [UInt64] { all.keys(where: isSo) }

    /// Events of the attempts that the destination does not have.
    var eventsLeft: Int {
        var left = 0
        all.forEach { _, attempt in
            if !attempt.isForgotten {
                left += attempt.eventsLeft
            }
        }
        return left
    }

    /// Whether the queue is about to hand over a critical batch.
    ///
    /// Normal batches wait for that answer. The batch may hold fewer events than requested (a full chunk
    /// becomes a batch as it is stored), so that more critical events wait than the summary suggests.
    var isCriticalOnItsWay: Bool {
        counts.leasing.critical > 0
            && contains { $0.priority == .critical && $0.isLeasing && $0.wishedBatch?.rejectedAt == nil }
    }

    /// The attempt that holds a batch or has requested it by its id.
    func of(_ batch: BatchID) -> UInt64? { all.firstKey { $0.batch?.header.id == batch } }
}
