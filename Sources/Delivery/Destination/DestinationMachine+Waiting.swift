internal import EventLoops
internal import Model

/// What waits for a destination, as far as can be told from the queue's summary and what was asked for since.
extension DestinationMachine {
    /// Events that nobody has asked for yet.
    ///
    /// - Parameter known: what `asked` says, where it is known: to look at all attempts costs more than all else here.
    func available(_ priority: Priority, asked known: Int? = nil) -> Int {
        guard laneStates[priority].emptyUntil == nil else { return 0 }
        let waiting = waiting(priority)
        return waiting > 0 ? max(0, waiting - (known ?? asked(priority)) * largestBatch(priority)) : 0
    }

    /// Events that are in no batch, and those in batches that the queue has made and not handed over yet.
    func waiting(_ priority: Priority) -> Int {
        let lane = lanes[priority]
        return max(0, lane.waitingEvents + lane.handedOut - (laneStates[priority].taken ?? lane.handedOut))
    }

    /// Batches of the lane that the queue is forming right now.
    func asked(_ priority: Priority) -> Int {
        attempts.count { $0.priority == priority && $0.awaitsNewBatch }
    }

    /// Batches that are free since a restart, and not asked for yet.
    func freeToTake(_ priority: Priority) -> Int {
        guard lanes[priority].freeBatches > 0, laneStates[priority].emptyUntil == nil else { return 0 }
        var known = laneStates[priority].takenFree
        known += tracked.values.count { $0.header.priority == priority }
        attempts.forEach { _, attempt in
            guard attempt.priority == priority else { return }
            if attempt.awaitsKnownBatch { known += 1 }
            // The queue may have made free batches that we are about to be told of.
            known += attempt.batchesToCome
        }
        return max(0, lanes[priority].freeBatches - known)
    }

    /// Whether anything at all could go, now or later.
    var hasSomething: Bool {
        !tracked.isEmpty || Priority.inOrder.contains { waiting($0) > 0 || freeToTake($0) > 0 }
    }

    /// How many events have not reached the destination, as far as can be told.
    var eventsLeft: Int {
        var left = tracked.values.reduce(0) { $0 + $1.header.events }
        for attempt in attempts.values where !attempt.isForgotten { left += attempt.eventsLeft }
        let known = left
        for priority in Priority.inOrder { left += waiting(priority) }
        guard Priority.inOrder.contains(where: { freeToTake($0) > 0 }) else { return left }
        // Batches from before a restart: the queue's own figure, which still counts what was acknowledged just now.
        return left + max(1, lanes.critical.batchedEvents + lanes.normal.batchedEvents - known)
    }

    /// The largest batch to form, in uncompressed bytes.
    var maxBytes: Int { min(options.batchBytes, ceiling?.bytes ?? .max) }

    /// How many events a batch of a lane holds at most, by the size of those that wait.
    func largestBatch(_ priority: Priority) -> Int {
        let lane = lanes[priority]
        guard lane.waitingBytes > 0 else { return options.mostEvents }
        let fitting = maxBytes.multipliedReportingOverflow(by: lane.waitingEvents)
        return fitting.overflow
            ? options.mostEvents : min(options.mostEvents, max(1, fitting.partialValue / lane.waitingBytes))
    }

    /// How many attempts commands wait for.
    var pushedInFlight: Int { attempts.count { $0.isPushed } }

    /// When the earliest waiting event of a lane comes near to a deadline; nil without one.
    func atRisk(_ priority: Priority) -> Timestamp? {
        guard !options.deadlines.isEmpty, available(priority) > 0 else { return nil }
        return options.deadlines.atRisk(lanes[priority])
    }
}
