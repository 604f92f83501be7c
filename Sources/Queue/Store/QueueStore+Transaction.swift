internal import EventLoops
internal import Logs
internal import Model

/// A writing call that waits for its transaction.
struct Operation {
    /// Approximate number of bytes that it writes; limits how many calls share a transaction.
    var bytes: Int
    /// Bytes that it adds to tables without a bound of their own.
    var places = 0
    /// Whether the call stores events, for which there may be room later.
    var bringsEvents = false
    /// Index of the lane that it forms a batch of; nil for other calls.
    var formsIn: Int?
    /// Does the call's part within the transaction. The returned closure resumes the caller after the
    /// COMMIT.
    let apply: (inout Transaction) throws(QueueError) -> () -> Void
    /// Resumes the caller with an error; nothing of the call was done.
    let fail: (QueueError) -> Void
    /// Resumes the caller of a commit, who keeps the commit and waits; nil for other calls.
    var wait: ((WaitReason) -> Void)?
}

extension Operation {
    /// A call that suspends in `continuation` until `body` is durable or has failed.
    fileprivate init<Value: Sendable>(
        bytes: Int, places: Int, bringsEvents: Bool, formsIn: Int?,
        _ continuation: UnsafeContinuation<Result<Value, QueueError>, Never>,
        _ wait: ((WaitReason) -> Value)?,
        _ body: @escaping (inout Transaction) throws(QueueError) -> Value
    ) {
        self.init(
            bytes: bytes, places: places, bringsEvents: bringsEvents, formsIn: formsIn,
            apply: { transaction throws(QueueError) in
                let value = try body(&transaction)
                return { continuation.resume(returning: .success(value)) }
            },
            fail: { continuation.resume(returning: .failure($0)) },
            wait: wait.map { wait in { continuation.resume(returning: .success(wait($0))) } })
    }
}

extension QueueStore {
    /// Runs `body` in the next transaction, together with all other waiting calls; returns its result
    /// once it is durable.
    func write<Value: Sendable>(
        bytes: Int = 0, places: Int = 0, bringsEvents: Bool = false, formsIn: Int? = nil,
        wait: ((WaitReason) -> Value)? = nil,
        _ body: @escaping (inout Transaction) throws(QueueError) -> Value
    ) async throws(QueueError) -> Value {
        // Keeps the task on this loop. Otherwise it would resume by way of the loop that the caller's
        // task prefers.
        try await withTaskExecutorPreference(loop) { () async throws(QueueError) -> Value in
            _ = try opened()
            let result: Result<Value, QueueError> = await withUnsafeContinuation {
                waiting.append(
                    Operation(
                        bytes: bytes, places: places, bringsEvents: bringsEvents, formsIn: formsIn, $0, wait,
                        body))
                schedule()
            }
            return try result.get()
        }
    }

    /// Schedules a transaction, unless one is scheduled.
    func schedule() {
        guard !isScheduled else { return }
        isScheduled = true
        // Posted, so that the transaction runs after all work that already waits on the loop. Calls to the
        // queue that this work makes then share the transaction.
        loop.post {
            self.assumeIsolated {
                $0.isScheduled = false
                $0.transact()
            }
        }
    }

    /// Runs one transaction: the acknowledgements, then the waiting calls in order (group commit). It
    /// contains no `await`, so no other call sees or changes the state in between.
    func transact() {
        replaceLostWAL()
        guard let file else { return }
        let operations = takeWaiting()
        guard !operations.isEmpty || !state.acknowledged.isEmpty else { return }
        // Other loops get the answers that were gathered for them before this loop waits for the disk.
        loop.wakeOthers()
        let expiredBefore = state.figures.expired
        let completions: [() -> Void]
        do throws(QueueError) {
            // New events must be stored where a restart finds them. Other calls continue: what is queued may
            // still be sent.
            if operations.contains(where: { $0.wait != nil }) {
                try refuseMoved(file)
            }
            completions = try change(file) { transaction throws(QueueError) in
                try transaction.removeAcknowledged()
                var completions: [() -> Void] = []
                for operation in operations { completions.append(try operation.apply(&transaction)) }
                return completions
            }
        } catch {
            return failed(error, operations)
        }
        health.transactions += 1
        // The transaction has removed all acknowledged batches; later ones start a new 250 ms.
        cancel(.acknowledgements)
        let expired = state.figures.expired - expiredBefore
        if expired > 0 {
            log.warning("events expired", ["deliveries": expired, "total": state.figures.expired])
        }
        state.relief.isReplaced = false
        endGrant(file)
        if health.failure != nil, state.refusal == nil || state.refusal?.reason == .full {
            succeeded()
        }
        if state.refusal?.reason == .walPinned {
            armRoomTimer()
        }
        reconsiderRefusal()
        publish()
        // After the snapshot is published: a caller that resumes must see its own changes there.
        for completion in completions { completion() }
        loop.wakeOthers()
        checkpointIfDue(file)
        restLater()
        if !waiting.isEmpty {
            schedule()
        }
    }

    /// Runs `body` in a transaction. When this returns, its changes are durable and in force; when it
    /// throws, they are gone.
    func change<Value>(
        _ file: QueueFile, _ body: (inout Transaction) throws(QueueError) -> Value
    ) throws(QueueError) -> Value {
        var transaction = try Transaction(file, state)
        let value = try body(&transaction)
        transaction.state.assertUnbroken(since: state)
        state = try transaction.commit(log)
        return value
    }

    /// Removes as many waiting calls as one transaction should take; at least one.
    private func takeWaiting() -> [Operation] {
        var bytes = 0
        var count = 0
        for operation in waiting {
            bytes += operation.bytes
            if count > 0 && bytes > state.bounds.transaction { break }
            count += 1
        }
        let taken = Array(waiting.prefix(count))
        waiting.removeFirst(count)
        return taken
    }

    /// Writes the WAL back when it has reached its size, and shrinks the file if that is due.
    private func checkpointIfDue(_ file: QueueFile) {
        if file.walBytes >= state.bounds.checkpointAt {
            checkpoint(file)
            shrinkIfDue(file)
        } else if state.figures.totals.stored == 0,
            file.fileBytes > QueueStore.keptFree + state.bounds.checkpointAt
        {
            // The queue has emptied, and the WAL may not reach its size for days: the file should not
            // stay large until then.
            shrinkIfDue(file)
        }
    }

    /// Bytes in free pages that the file keeps for new events. Giving pages back and adding them again
    /// costs more than keeping them.
    private static let keptFree = 64 << 20

    /// Starts to give free pages back if they are many, or if the file is larger than its bounds.
    func shrinkIfDue(_ file: QueueFile) {
        if isLargerThanNeeded(file) {
            arm(.shrinking, after: .milliseconds(20))
        }
    }

    /// Whether the file exceeds its bound and has free pages, or has more free pages than `keptFree`
    /// and consists mostly of them.
    private func isLargerThanNeeded(_ file: QueueFile) -> Bool {
        do throws(QueueError) {
            let free = try file.freeBytes()
            let size = file.fileBytes
            return free > 0 && size > state.bounds.file || free > QueueStore.keptFree && free > size / 2
        } catch {
            // If something is wrong with the file, the next transaction finds and handles it.
            health.count(error)
            return false
        }
    }

    /// Gives one transaction's worth of pages back, so that no other call waits longer than for a
    /// commit.
    func shrink() {
        guard let file, health.failure == nil else { return }
        loop.wakeOthers()
        do throws(QueueError) {
            let tables = try TableWriter(file)
            try tables.execute("PRAGMA incremental_vacuum(\(state.bounds.transaction / file.pageSize))")
            try tables.commit()
            try file.database.checkpointWAL()
            file.measure()
            try file.limit(to: state.bounds)
        } catch {
            return failed(error, [])
        }
        publish()
        shrinkIfDue(file)
    }

    /// Writes the WAL back into the database file, as far as readers allow.
    ///
    /// - Parameter empties: whether the WAL is also truncated, so that it keeps no deleted text.
    func checkpoint(_ file: QueueFile, empties: Bool = false) {
        do throws(QueueError) {
            try file.database.checkpointWAL(empties: empties)
            file.measure()
            try endRelief(file)
        } catch {
            if error.code == .corrupt { return failed(error, []) }
            // The WAL holds everything and the next transaction tries again; the failure is reported
            // and counted.
            health.count(error)
            log.warning("WAL checkpoint failed", ["code": error.code.rawValue, "reason": error.message])
        }
    }

    /// Ensures that acknowledgements become durable within 250 ms.
    func armAcknowledgementTimer() {
        // A steady stream commits about five times a second, so most acknowledgements share a commit
        // and its sync. While writing fails, it is retried once a second.
        arm(.acknowledgements, after: health.failure == nil ? .milliseconds(250) : .seconds(1))
    }
}

extension Transaction {
    /// Deletes the acknowledged batches and counts their events.
    fileprivate mutating func removeAcknowledged() throws(QueueError) {
        let acknowledged = state.acknowledged
        state.acknowledged.removeAll(keepingCapacity: true)
        for id in acknowledged {
            guard let batch = state.held.removeValue(forKey: id) else { continue }
            for row in batch.rows {
                try tables.delete(row, from: state.figures.lanes[batch.lane].key)
                if let cost = batch.soleCost {
                    try remove(chunk: row.chunk, cost: cost)
                } else {
                    try dismiss(chunk: row.chunk)
                }
            }
            state.figures.lanes[batch.lane].batches.events -= batch.header.events
            state.figures.lanes[batch.lane].batches.bytes -= batch.header.bytes
            state.figures.lanes[batch.lane].remove(
                .acknowledged, events: batch.header.events, bytes: batch.header.bytes)
        }
    }
}
