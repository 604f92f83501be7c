internal import Model

// Small batches are asked for ahead, several at a time, and wait here for a place.
//
// With batches of 50 events the queue's thread and this one would wake each other for every one of them, which costs as
// much as sending it. What waits ahead takes no place (ac04), never goes before critical events that wait (ac06), and is
// given back as soon as the state that allows sending changes.
extension DestinationMachine {
    /// How many batches may wait for a place.
    private static let mostAhead = 5
    /// No more are asked for while more than so many are left.
    private static let fewAhead = 1
    /// Larger batches, in uncompressed bytes, are not asked for ahead: they cost memory, and few wake-ups anyway.
    private static let largestAhead = 64 << 10

    /// How many attempts are more than a wish for later.
    var begun: Int { attempts.count { !$0.isWaitingAhead } }

    mutating func newAttempt() -> AttemptID {
        defer { nextAttempt += 1 }
        return attemptID(nextAttempt)
    }

    /// Whether the queue is about to hand over a critical batch.
    ///
    /// A normal one waits for that answer: the batch may hold fewer events than it was asked for (a full chunk is a batch
    /// as it is stored), so that more critical ones wait than it seems.
    var isCriticalOnItsWay: Bool {
        attempts.contains { $0.priority == .critical && $0.isLeasing && $0.wishedBatch?.rejectedAt == nil }
    }

    /// Gives back what is ready and may not be sent any more.
    mutating func returnReady(_ gate: Gate) {
        guard attempts.contains(where: { $0.isReady }) else { return }
        let permission = permission(gate)
        let isFull = PerPriority(critical: isFullOfRetries(.critical), normal: isFullOfRetries(.normal))
        let gone = attempts.keys { $0.isReady && (!permission.allows($0) || isFull[$0.priority]) }
        for number in gone { returnReady(number) }
    }

    mutating func returnReady(_ number: UInt64) {
        guard let batch = attempts.look(number, { $0.batch }) else { return }
        effects.append(.cut(attemptID(number)))
        giveBack(batch, number)
    }

    /// Asks for full batches that will go as soon as there is a place, while all is well and many of them wait.
    mutating func askAhead(_ gate: Gate, at now: Moment) {
        guard options.order == .free, gate.block == nil, gate.automatic != nil, obstacle(gate) == nil,
            storeRetryAt == nil, push == nil,
            bucket == nil, tracked.isEmpty, suspects.isEmpty, !isStopping, !hasPlace(.normal),
            attempts.contains(where: { $0.isSending })
        else { return }
        var ahead = attempts.count { $0.isWaitingAhead }
        guard ahead <= DestinationMachine.fewAhead else { return }
        let priority: Priority = available(.critical) > 0 ? .critical : .normal
        guard isSmall(priority) else { return }
        while ahead < DestinationMachine.mostAhead, available(priority) >= options.mostEvents, isDue(priority, gate) {
            let id = newAttempt()
            attempts[id.number] = Attempt(.nextAhead, priority: priority, isProbe: false, isPushed: false)
            effects.append(.leaseNext(id, request(priority, at: now)))
            ahead += 1
        }
    }

    private func isSmall(_ priority: Priority) -> Bool {
        let lane = lanes[priority]
        guard lane.waitingEvents > 0 else { return false }
        let bytes = lane.waitingBytes / lane.waitingEvents * options.mostEvents
        return min(bytes, maxBytes) <= DestinationMachine.largestAhead
    }
}
