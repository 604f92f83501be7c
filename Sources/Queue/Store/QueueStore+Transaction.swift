internal import EventLoops
internal import Logs
internal import Model

/// A call that writes, waiting for its transaction.
struct Operation {
    /// What it writes, as far as that is worth counting, in bytes.
    var bytes: Int
    /// What it adds to tables without their own bound.
    var places = 0
    /// Whether it brings events, for which there may be room later.
    var bringsEvents = false
    /// The lane that it forms a batch of; nil for others.
    var formsIn: Int?
    /// Does its part inside the transaction; what it returns resumes the caller after the COMMIT.
    let apply: (inout Transaction) throws(QueueError) -> () -> Void
    /// Resumes the caller with the reason why nothing of it was done.
    let fail: (QueueError) -> Void
    /// Resumes the caller of a commit, who keeps it and waits; nil for others.
    var wait: ((WaitReason) -> Void)?
}

extension Operation {
    /// A call that waits in `continuation` for what `body` returns, or why it was not done.
    fileprivate init<Value: Sendable>(
        bytes: Int, places: Int, bringsEvents: Bool, formsIn: Int?,
        _ continuation: UnsafeContinuation<Result<Value, QueueError>, Never>, _ wait: ((WaitReason) -> Value)?,
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
    /// Does `body` in the next transaction, with all else that waits by then; returns what it returned once it is durable.
    func write<Value: Sendable>(
        bytes: Int = 0, places: Int = 0, bringsEvents: Bool = false, formsIn: Int? = nil,
        wait: ((WaitReason) -> Value)? = nil, _ body: @escaping (inout Transaction) throws(QueueError) -> Value
    ) async throws(QueueError) -> Value {
        // It goes on here: otherwise it comes back by way of the loop that the caller's task prefers.
        try await withTaskExecutorPreference(loop) { () async throws(QueueError) -> Value in
            _ = try opened()
            let result: Result<Value, QueueError> = await withUnsafeContinuation {
                waiting.append(
                    Operation(
                        bytes: bytes, places: places, bringsEvents: bringsEvents, formsIn: formsIn, $0, wait, body))
                schedule()
            }
            return try result.get()
        }
    }

    func schedule() {
        guard !isScheduled else { return }
        isScheduled = true
        // Behind whatever else waits for the loop: those calls share the transaction.
        loop.post {
            self.assumeIsolated {
                $0.isScheduled = false
                $0.transact()
            }
        }
    }

    /// One transaction: the acknowledgements, then the calls that wait, in their order. No `await` in it.
    func transact() {
        replaceLostWAL()
        guard let file else { return }
        let operations = takeWaiting()
        guard !operations.isEmpty || !state.acknowledged.isEmpty else { return }
        loop.wakeOthers()
        let expiredBefore = state.figures.expired
        let completions: [() -> Void]
        do throws(QueueError) {
            // What is accepted must outlive the agent; what was accepted may still be sent.
            if operations.contains(where: { $0.wait != nil }) { try refuseMoved(file) }
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
        // It has taken them all: those that come from now on have their own time.
        cancel(.acknowledgements)
        let expired = state.figures.expired - expiredBefore
        if expired > 0 { log.warning("events expired", ["deliveries": expired, "total": state.figures.expired]) }
        state.relief.isReplaced = false
        endGrant(file)
        if health.failure != nil, state.refusal == nil || state.refusal?.reason == .full { succeeded() }
        if state.refusal?.reason == .walPinned { armRoomTimer() }
        reconsiderRefusal()
        publish()
        for completion in completions { completion() }
        loop.wakeOthers()
        checkpointIfDue(file)
        if !waiting.isEmpty { schedule() }
    }

    /// Runs `body` in a transaction: what it did is durable and in force when this returns, and gone when this throws.
    func change<Value>(
        _ file: QueueFile, _ body: (inout Transaction) throws(QueueError) -> Value
    ) throws(QueueError) -> Value {
        var transaction = try Transaction(file, state)
        let value = try body(&transaction)
        transaction.state.assertUnbroken(since: state)
        state = try transaction.commit(log)
        return value
    }

    /// As many of the waiting calls as one transaction takes.
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

    private func checkpointIfDue(_ file: QueueFile) {
        if file.walBytes >= state.bounds.checkpointAt {
            checkpoint(file)
            shrinkIfDue(file)
        } else if state.figures.totals.stored == 0, file.fileBytes > QueueStore.keptFree + state.bounds.checkpointAt {
            // A backlog has gone, and the WAL may not grow for days: the file must not wait for that.
            shrinkIfDue(file)
        }
    }

    /// Free pages that are kept for what comes next, in bytes: giving them back and taking them again costs more than they.
    private static let keptFree = 64 << 20

    /// Begins to give free pages back to the file system, if they are many or the bounds are smaller than the file.
    func shrinkIfDue(_ file: QueueFile) {
        if isLargerThanNeeded(file) { arm(.shrinking, after: .milliseconds(20)) }
    }

    private func isLargerThanNeeded(_ file: QueueFile) -> Bool {
        do throws(QueueError) {
            let free = try file.freeBytes()
            let size = file.fileBytes
            return free > 0 && size > state.bounds.file || free > QueueStore.keptFree && free > size / 2
        } catch {
            // The next transaction meets what is wrong.
            health.count(error)
            return false
        }
    }

    /// One step, as small as a transaction: others wait no longer for it than for a commit.
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

    /// Writes the WAL back into the database file, as far as readers let it; `empties`: what was removed goes from it, too.
    func checkpoint(_ file: QueueFile, empties: Bool = false) {
        do throws(QueueError) {
            try file.database.checkpointWAL(empties: empties)
            file.measure()
            try endRelief(file)
        } catch {
            if error.code == .corrupt { return failed(error, []) }
            // The WAL holds everything and the next transaction tries again; the failure is reported and counted.
            health.count(error)
            log.warning("WAL checkpoint failed", ["code": error.code.rawValue, "error": error.message])
        }
    }

    func armAcknowledgementTimer() {
        // A steady stream is stored five times a second: it goes with the next commit, and costs no sync of its own. While writing
        // fails, it is tried once a second.
        arm(.acknowledgements, after: health.failure == nil ? .milliseconds(250) : .seconds(1))
    }
}

extension Transaction {
    /// Takes the acknowledged batches out, rows and all.
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
            state.figures.lanes[batch.lane].batchedEvents -= batch.header.events
            state.figures.lanes[batch.lane].batchedBytes -= batch.header.bytes
            state.figures.lanes[batch.lane].remove(
                \.acknowledged, events: batch.header.events, bytes: batch.header.bytes)
        }
    }
}
