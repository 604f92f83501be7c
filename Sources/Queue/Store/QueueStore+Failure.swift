internal import EventLoops
internal import Glibc
internal import Logs
internal import Model

// What happens when a transaction fails: full disks, read-only file systems, damage. Nothing is lost by waiting: the
// spool is on disk already, and what is queued stays.
extension QueueStore {
    /// Deals with a transaction that was rolled back.
    func failed(_ error: QueueError, _ operations: [Operation]) {
        // That one refuses; nothing has failed.
        if error.code != .capBelowStored { health.count(error) }
        switch error.code {
        case .corrupt where state.options.opener == .agent:
            recover(error, operations)
        case .fileFull:
            makeFit(error, operations)
        case .diskFull where ballast.giveUp():
            log.warning(
                "disk is full, ballast deleted",
                ["path": ballast.path, "error": error.message, "reading_resumes_with_free_bytes": ballast.size])
            enterTrouble(error, .diskFull)
            again(withoutCommits: operations, .diskFull)
        case .diskFull, .readOnly, .io, .noPermission:
            let reason: WaitReason = error.code == .diskFull ? .diskFull : .notWritable
            enterTrouble(error, reason)
            end(operations, error, reason)
        case .moved:
            enterTrouble(error, .outOfReach)
            again(withoutCommits: operations, .outOfReach)
        default:
            // One call that was wrong: the others are tried again without it.
            end(operations, error)
        }
        if !state.acknowledged.isEmpty { armAcknowledgementTimer() }
        publish()
        if !waiting.isEmpty { schedule() }
    }

    /// Writing works again.
    func succeeded() {
        health.failure = nil
        log.warning("queue can be written again")
    }

    private func enterTrouble(_ error: QueueError, _ reason: WaitReason) {
        if health.failure?.code != error.code {
            log.error("queue cannot be written", ["code": error.code.rawValue, "error": error.message])
        }
        health.failure = error
        state.refusal = QueueState.Refusal(reason: reason)
        armRoomTimer()
    }

    /// - Throws: `QueueError` with code `moved` when the database or its WAL is no longer where it was opened, or cannot be looked at.
    func refuseMoved(_ file: QueueFile) throws(QueueError) {
        let path = file.database.path
        if file.database.hasLostWAL {
            throw QueueError(.moved, "\(path)-wal was removed while another program reads the queue: stop that program")
        }
        guard file.database.hasMoved else { return }
        guard FileStatus(path) != nil || errno == ENOENT else {
            let reason = SystemError.message(errno)
            throw QueueError(.moved, "\(path) cannot be looked at: \(reason); `spoolship check` says what to do")
        }
        throw QueueError(
            .moved,
            "\(path) was removed or replaced: put it back, or let the agent send its events (spoolship drain) and"
                + " restart it")
    }

    /// Opens the database anew where its WAL was removed; first writes back what that holds, unless somebody reads an older state.
    func replaceLostWAL() {
        guard let database = file?.database else { return }
        database.lookForWAL()
        guard database.hasLostWAL else { return }
        do throws(QueueError) {
            try database.checkpointWAL()
            guard database.walPages == 0 else { return }
            database.close()
            file = nil
            goOn(with: try Opening.open(state.options, directory, now: time.wallTime, log))
            log.warning(
                "the queue's WAL was removed or replaced: nothing of it is lost", ["path": "\(database.path)-wal"])
        } catch {
            failed(error, [])
        }
    }

    /// Tries to write, and restores the ballast before reading resumes.
    func tryWriting(_ file: QueueFile) {
        do throws(QueueError) {
            try refuseMoved(file)
            // Transactions that failed at their end have left whole frames behind the WAL's end. Once a shorter one is written
            // over their beginning, they look like what a start finds behind damage.
            _ = try file.database.integer("PRAGMA wal_checkpoint(TRUNCATE)")
            let tables = try TableWriter(file)
            try tables.execute("UPDATE total SET max_size = max_size")
            try tables.commit()
        } catch {
            if error.code == .corrupt { return failed(error, []) }
            health.count(error)
            return armRoomTimer()
        }
        guard ballast.restore() else { return armRoomTimer() }
        state.refusal = nil
        succeeded()
        publish()
        if !state.acknowledged.isEmpty { armAcknowledgementTimer() }
    }

    /// Ends calls that could not be done: commits wait with their callers, others fail.
    private func end(_ operations: [Operation], _ error: QueueError, _ reason: WaitReason) {
        for operation in operations {
            if let wait = operation.wait { wait(reason) } else { operation.fail(error) }
        }
    }

    /// Ends the call that failed by itself. Which one it was is not known: with several, each is tried alone.
    func end(_ operations: [Operation], _ error: QueueError) {
        guard operations.count > 1 else {
            for operation in operations { operation.fail(error) }
            return
        }
        var alone = operations
        for index in alone.indices { alone[index].bytes = .max / 2 }
        waiting = alone + waiting
    }

    /// Tries the calls again that make room; commits wait with their callers.
    private func again(withoutCommits operations: [Operation], _ reason: WaitReason) {
        for operation in operations { operation.wait?(reason) }
        waiting = operations.filter { $0.wait == nil } + waiting
        transact()
    }

    /// Reads from the database; where that meets damage, what can be read is saved into a new one first, and read there.
    func reading<Value>(_ body: (QueueFile) throws(QueueError) -> Value) throws(QueueError) -> Value {
        do throws(QueueError) {
            return try body(try opened())
        } catch {
            guard error.isDamage, state.options.opener == .agent else { throw error }
            health.count(error)
            recover(error, [])
            publish()
            return try body(try opened())
        }
    }

    /// Moves a damaged database aside, saves what can be read into a new one, and goes on with it.
    func recover(_ error: QueueError, _ operations: [Operation]) {
        log.error("queue database is damaged", ["error": error.message])
        guard let damaged = file else { return end(operations, error, .notWritable) }
        damaged.database.close()
        file = nil
        do throws(QueueError) {
            goOn(with: try Salvage.run(state.options, directory, now: time.wallTime, log))
            waiting = operations + waiting
        } catch {
            health.count(error)
            health.failure = error
            state.refusal = QueueState.Refusal(reason: .notWritable)
            log.error("queue database cannot be replaced", ["code": error.code.rawValue, "error": error.message])
            end(operations, error, .notWritable)
            armRoomTimer()
        }
    }

    /// Opens the database again after a recovery that failed.
    func reopen() {
        do throws(QueueError) {
            let opening = try Opening.open(state.options, directory, now: time.wallTime, log)
            goOn(with: opening)
            tryWriting(opening.file)
        } catch {
            health.count(error)
            armRoomTimer()
        }
    }

    private func goOn(with opening: Opening) {
        file = opening.file
        state.figures = opening.figures
        state.noteAgreement(with: opening.file)
        takeUpHeld(opening.file)
        health.recoveries += opening.recoveries
    }

    /// Keeps the leases of batches that were salvaged whole; the others are gone.
    private func takeUpHeld(_ file: QueueFile) {
        for (id, batch) in state.held {
            do throws(QueueError) {
                var found = try file.lookUp(id)
                if found == nil {
                    found = try change(file) { transaction throws(QueueError) in try transaction.restoreRows(of: batch)
                    }
                }
                // Its lane's place may be another now: a destination may have been lost.
                guard let found,
                    found.rows.elementsEqual(batch.rows, by: { ($0.chunk, $0.first) == ($1.chunk, $1.first) }),
                    let lane = state.figures.lane(found.lane), let first = batch.rows.first
                else {
                    state.held[id] = nil
                    continue
                }
                state.held[id]?.lane = lane
                if first.isFormed {
                    if batch.status != .free { state.figures.lanes[lane].freeBatches -= 1 }
                } else {
                    state.figures.lanes[lane].batchedEvents += batch.header.events
                    state.figures.lanes[lane].batchedBytes += batch.header.bytes
                    if batch.status == .free { state.figures.lanes[lane].freeBatches += 1 }
                }
            } catch {
                // Damaged again: the next transaction meets it.
                health.count(error)
                state.held[id] = nil
            }
        }
        let held = state.held
        state.acknowledged.removeAll { held[$0] == nil }
    }
}

extension Transaction {
    /// Gives a batch its rows back that were made again without its id; nil if they are not all there.
    fileprivate mutating func restoreRows(
        of batch: HeldBatch
    ) throws(QueueError) -> (lane: LaneKey, rows: [DeliveryRow])? {
        guard let place = state.figures.lane(batch.header.destination, batch.header.priority) else { return nil }
        let lane = state.figures.lanes[place].key
        for row in batch.rows {
            let there = try file.rows(of: row.chunk, in: lane).first { $0.first == row.first }
            guard let there, there.events == row.events, there.batch == nil else { return nil }
        }
        for row in batch.rows {
            try tables.delete(row, from: lane)
            try tables.insert(row, in: lane)
        }
        if batch.rows.first?.isFormed ?? false {
            // As if it had been read at the start.
            state.figures.lanes[place].freeBatches += 1
            state.figures.lanes[place].batchedEvents += batch.header.events
            state.figures.lanes[place].batchedBytes += batch.header.bytes
        }
        return (lane, batch.rows)
    }
}
