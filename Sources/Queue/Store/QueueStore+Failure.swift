internal import EventLoops
internal import Glibc
internal import Logs
internal import Model

// What happens when a transaction fails: full disks, read-only file systems, damage.
//
// Waiting loses nothing: events that are not stored yet are in the spool, and what is queued stays. So
// commits wait with their callers, and only calls that cannot succeed later fail.
extension QueueStore {
    /// Handles a transaction that was rolled back. Each of its calls is retried, waits with its caller,
    /// or fails.
    func failed(_ error: QueueError, _ operations: [Operation]) {
        // A refused setting is an answer, not a failure to write.
        if error.code != .capBelowStored {
            health.count(error)
        }
        switch error.code {
        case .corrupt where state.options.opener == .agent:
            // Damage: what can be read is salvaged, and the calls are retried with the new database.
            recover(error, operations)
        case .fileFull:
            // The file's bound is reached although the cap is not: something must be given up.
            makeFit(error, operations)
        case .diskFull where ballast.giveUp():
            log.warning(
                "disk is full, ballast deleted",
                [
                    "path": ballast.path, "reason": error.message,
                    "reading_resumes_with_free_bytes": ballast.size,
                ])
            // With the ballast's room, acknowledgements can be written. Commits wait until the ballast
            // is restored.
            enterTrouble(error, .diskFull)
            again(withoutCommits: operations, .diskFull)
        case .diskFull, .readOnly, .io, .noPermission:
            let reason: WaitReason = error.code == .diskFull ? .diskFull : .notWritable
            enterTrouble(error, reason)
            end(operations, error, reason)
        case .moved:
            // Sending what is queued still works through the open file. Commits would be lost with it,
            // so they wait.
            enterTrouble(error, .outOfReach)
            again(withoutCommits: operations, .outOfReach)
        default:
            // An error of one call; the other calls are retried without it.
            end(operations, error)
        }
        if !state.acknowledged.isEmpty {
            armAcknowledgementTimer()
        }
        publish()
        if !waiting.isEmpty {
            schedule()
        }
    }

    /// Records that writing works again.
    func succeeded() {
        health.failure = nil
        log.warning("queue can be written again")
    }

    /// Records a failure that persists: storing waits, and the room timer retries.
    private func enterTrouble(_ error: QueueError, _ reason: WaitReason) {
        if health.failure?.code != error.code {
            log.error("queue cannot be written", ["code": error.code.rawValue, "reason": error.message])
        }
        health.failure = error
        state.refusal = QueueState.Refusal(reason: reason)
        armRoomTimer()
    }

    /// - Throws: `moved` if the database or its WAL is no longer where it was opened, or cannot be
    ///   looked at. A commit would survive neither a restart nor a crash then.
    func refuseMoved(_ file: QueueFile) throws(QueueError) {
        let path = file.database.path
        if file.database.hasLostWAL {
            throw QueueError(
                .moved, "\(path)-wal was removed while another program reads the queue: stop that program")
        }
        guard file.database.hasMoved else { return }
        guard FileStatus(path) != nil || errno == ENOENT else {
            let reason = SystemError.message(errno)
            throw QueueError(
                .moved, "\(path) cannot be inspected: \(reason); `spoolship check` says what to do")
        }
        throw QueueError(
            .moved,
            "\(path) was removed or replaced: put it back, or let the agent send its events (spoolship "
                + "drain) and restart it")
    }

    /// Reopens the database if its WAL was removed. First the WAL's content is written back, which is
    /// impossible while a reader needs an older state; then the next call tries again.
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
                "the queue's WAL was removed or replaced: nothing of it is lost",
                ["path": "\(database.path)-wal"])
        } catch {
            failed(error, [])
        }
    }

    /// Tests whether writing works again, and restores the ballast before reading resumes.
    func tryWriting(_ file: QueueFile) {
        do throws(QueueError) {
            try refuseMoved(file)
            // Transactions that failed in their COMMIT have left whole frames behind the WAL's end. If
            // a shorter transaction overwrote only their beginning, the next start would take the rest
            // for transactions behind damage.
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
        if !state.acknowledged.isEmpty {
            armAcknowledgementTimer()
        }
    }

    /// Ends calls that could not be done: commits wait with their callers, other calls fail.
    private func end(_ operations: [Operation], _ error: QueueError, _ reason: WaitReason) {
        for operation in operations {
            if let wait = operation.wait {
                wait(reason)
            } else {
                operation.fail(error)
            }
        }
    }

    /// Ends a call that failed by itself. With several calls it is unknown which one failed, so each is
    /// retried in a transaction of its own.
    func end(_ operations: [Operation], _ error: QueueError) {
        guard operations.count > 1 else {
            for operation in operations { operation.fail(error) }
            return
        }
        var alone = operations
        // A size that fills a transaction keeps `takeWaiting` from joining the call with others.
        for index in alone.indices { alone[index].bytes = .max / 2 }
        waiting = alone + waiting
    }

    /// Retries the calls that make room; commits wait with their callers.
    private func again(withoutCommits operations: [Operation], _ reason: WaitReason) {
        for operation in operations { operation.wait?(reason) }
        waiting = operations.filter { $0.wait == nil } + waiting
        transact()
    }

    /// Reads from the database. If the agent meets damage, it salvages the database first and reads
    /// again.
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

    /// Salvages a damaged database and continues with the new one. The calls are retried.
    func recover(_ error: QueueError, _ operations: [Operation]) {
        log.error("queue database is damaged", ["reason": error.message])
        guard let damaged = file else { return end(operations, error, .notWritable) }
        damaged.database.close()
        file = nil
        do throws(QueueError) {
            goOn(with: try Opening.replace(state.options, directory, now: time.wallTime, log))
            waiting = operations + waiting
        } catch {
            health.count(error)
            health.failure = error
            state.refusal = QueueState.Refusal(reason: .notWritable)
            log.error(
                "queue database cannot be replaced", ["code": error.code.rawValue, "reason": error.message])
            end(operations, error, .notWritable)
            armRoomTimer()
        }
    }

    /// Opens the database again after a failed salvage.
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

    /// Continues with another database: the state's counts are replaced by its counts.
    private func goOn(with opening: Opening) {
        file = opening.file
        // Summaries of the new database are newer than all that were published.
        let revision = state.figures.lanes.reduce(0) { max($0, $1.revision) }
        state.figures = opening.figures
        for lane in state.figures.lanes.indices { state.figures.lanes[lane].revision += revision }
        state.noteAgreement(with: opening.file)
        takeUpHeld(opening.file)
        keepConsent(in: opening.file)
        health.recoveries += opening.recoveries
    }

    /// Stores again what commands have set about consent: damage may have cost that row, and the next start
    /// would send what was withdrawn.
    private func keepConsent(in file: QueueFile) {
        let text = state.consent.text
        do throws(QueueError) {
            try change(file) { transaction throws(QueueError) in
                try transaction.setSwitch(QueueStore.consentSwitch, text)
            }
        } catch {
            // The new database is damaged too: the next transaction handles that.
            health.count(error)
        }
    }

    /// Keeps the leases of batches that were salvaged completely; other batches are forgotten.
    private func takeUpHeld(_ file: QueueFile) {
        for (id, batch) in state.held {
            do throws(QueueError) {
                var found = try file.lookUp(id)
                if found == nil {
                    found = try change(file) { transaction throws(QueueError) in
                        try transaction.restoreRows(of: batch)
                    }
                }
                // The lane's index may have changed, because a destination may have been lost.
                guard let found,
                    found.rows.elementsEqual(
                        batch.rows, by: { ($0.chunk, $0.first) == ($1.chunk, $1.first) }),
                    let lane = state.figures.lane(found.lane), let first = batch.rows.first
                else {
                    state.held[id] = nil
                    continue
                }
                state.held[id]?.lane = lane
                if first.isFormed {
                    if batch.status != .free {
                        state.figures.lanes[lane].batches.free -= 1
                    }
                } else {
                    state.figures.lanes[lane].batches.events += batch.header.events
                    state.figures.lanes[lane].batches.bytes += batch.header.bytes
                    if batch.status == .free {
                        state.figures.lanes[lane].batches.free += 1
                    }
                }
            } catch {
                // The new database is damaged too: the next transaction handles that.
                health.count(error)
                state.held[id] = nil
            }
        }
        let held = state.held
        state.acknowledged.removeAll { held[$0] == nil }
    }
}

extension Transaction {
    /// Gives a batch its rows back if the salvage recreated them without its id; nil if some are
    /// missing. Otherwise an attempt that is under way would be repeated under another id.
    fileprivate mutating func restoreRows(
        of batch: HeldBatch
    ) throws(QueueError) -> (lane: LaneKey, rows: [DeliveryRow])? {
        guard let laneIndex = state.figures.lane(batch.header.destination, batch.header.priority) else {
            return nil
        }
        let lane = state.figures.lanes[laneIndex].key
        for row in batch.rows {
            let there = try file.rows(of: row.chunk, in: lane).first { $0.first == row.first }
            guard let there, there.events == row.events, there.batch == nil else { return nil }
        }
        for row in batch.rows {
            try tables.delete(row, from: lane)
            try tables.insert(row, in: lane)
        }
        if batch.rows.first?.isFormed ?? false {
            // As `QueueFile.countFormed` would have counted it at the start.
            state.figures.lanes[laneIndex].batches.free += 1
            state.figures.lanes[laneIndex].batches.events += batch.header.events
            state.figures.lanes[laneIndex].batches.bytes += batch.header.bytes
        }
        return (lane, batch.rows)
    }
}
