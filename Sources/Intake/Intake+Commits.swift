internal import Containers
internal import EventLoops
internal import Events
internal import Frames
internal import Logs
package import Model

/// How lines that were taken become durable.
///
/// `takeCommit` closes the open chunks and ends the commit before anything suspends, so that lines taken
/// meanwhile belong to the next one. Then the commit waits for its turn and for room in the queue, and is
/// stored in one transaction together with the spool's checkpoints.
extension Intake {
    /// Closes a chunk and adds it to the next commit.
    func close(_ chunk: OpenChunk, _ route: Route, isFull: Bool) {
        do throws(FrameError) {
            let made = try chunk.close(for: route, isFull: isFull, with: compressors)
            pendingBytes += made.frame.count
            pending.chunks.append(made)
        } catch {
            // Compression fails only for lack of memory. Going on would lose the chunk; after a restart the
            // spool still has its lines.
            preconditionFailure("cannot pack a chunk: \(error.message)")
        }
    }

    /// Closes all open chunks; empty ones give memory back.
    func closeAll() {
        for (index, chunks) in open.enumerated() {
            for chunk in chunks {
                if chunk.isEmpty {
                    chunk.rest()
                } else {
                    close(chunk, routes[index], isFull: false)
                }
            }
        }
    }

    /// Counts events that are not stored, by what happened to them. The commit carries the counts, so that
    /// the ledger stays exact after a crash.
    func countNotStored(
        _ fate: NotStored.Fate, _ priority: Priority, to destinations: [DestinationName], events: Int = 1
    ) {
        let place = pending.notStored.firstIndex {
            $0.fate == fate && $0.priority == priority && $0.destinations == destinations
        }
        if let place {
            pending.notStored[place].events += events
        } else {
            pending.notStored.append(
                NotStored(priority: priority, destinations: destinations, fate: fate, events: events))
        }
    }

    /// Returns when what was committed before survives a power cut. Files are removed only then.
    package func persist() async throws { try await store.sync() }

    /// Whether a file must stay, because the quarantine could not hold all of its bad lines.
    package func mustStay(_ file: [UInt8]) -> Bool { store.mustStay(file) }

    /// Makes all that was taken since the last commit durable, together with `progress`.
    package func commit(_ progress: SpoolProgress) async throws {
        try await commit(progress, remembering: [:])
    }

    /// Makes all that was taken since the last commit durable, together with `progress` and further rows of
    /// the queue's memory.
    ///
    /// - Throws: if the agent stops, or the store is closed. Every later commit then throws as well.
    package func commit(_ progress: SpoolProgress, remembering memory: [String: [UInt8]]) async throws {
        var commit = takeCommit()
        commit.progress = progress
        commit.memory.merge(memory.merging(progress.memory) { _, new in new }.mapValues { $0 }) { _, new in
            new
        }
        let newCalls = calls.takeNew()

        // In order: a later checkpoint must never be durable before the events of an earlier one.
        let ticket = turn.drawTicket()
        await turn.takeTurn(ticket)
        defer { turn.passTurn() }
        do {
            guard !hasGivenUp else { throw GivenUp() }
            try await persist(commit)
            calls.start(newCalls)
        } catch {
            hasGivenUp = true
            // Their events are read again after the next start, and ask again. Without this the row of a stop
            // (`takeLeftCalls`) would hold these calls, too, and each would be made twice.
            calls.forget(newCalls)
            throw error
        }
    }

    /// Ends the present commit and returns it with all that must be durable with its events.
    func takeCommit() -> Commit {
        closeAll()
        var commit = pending
        pending = Commit()
        pendingBytes = 0
        commit.memory.merge(calls.takeMemory()) { _, new in new }
        commit.memory.merge(accepted?.takeMemory() ?? [:]) { _, new in new }
        // The memory of pass and engine (names of the day, sessions, throttles, data layers) is stored with
        // the spool's commits only: it must not be ahead of the spool's checkpoint.
        if kind == .spool {
            commit.memory.merge(
                pass.takeMemory { [rules] in rules?.engine.hiddenMemory(of: $0) ?? (false, false) }
            ) {
                _, new in new
            }
            if let rules {
                commit.memory.merge(rules.engine.takeMemory()) { _, new in new }
            }
        }
        publish(commit)
        return commit
    }

    /// Stores a commit; waits while the queue has no room, and retries after an error until the store is
    /// closed. Nothing is lost meanwhile: the lines are still in the spool.
    private func persist(_ commit: Commit) async throws {
        while true {
            do {
                switch try await store.store(commit) {
                case .stored: return
                case .wait: try await waitForRoom()
                }
            } catch let error as any StoreFailure where !error.isClosed {
                log.error("storing failed, will try again", ["reason": error.word, "hint": error.message])
                try await waitForRoom(atMost: .seconds(5))
            }
        }
    }

    /// Returns when the queue may have room again, with a limit after that time at the latest.
    private func waitForRoom(atMost limit: Duration? = nil) async throws {
        let timer = limit.map { limit in loop.after(limit) { self.goOn() } }
        defer { if let timer { loop.cancel(timer) } }
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            if isStopping { return continuation.resume(throwing: GivenUp()) }
            // After an error the queue may look as if it had room; then only time or a change of the queue
            // helps.
            if limit == nil, !store.storesNothing { return continuation.resume() }
            waitingForRoom = continuation
        }
    }

    /// Lets the waiting commit try again.
    private func goOn() {
        waitingForRoom?.resume()
        waitingForRoom = nil
    }

    /// Calls of functions that are left after the last commit at a stop, for one more row of memory. Without
    /// it, calls that were answered since that commit are made again.
    package func takeLeftCalls() -> [String: [UInt8]?] {
        // The events of new calls are not durable and are read again, with their calls.
        calls.forget(calls.takeNew())
        return calls.takeMemory()
    }

    /// Forgets data layers and sessions in which something is found. Commits that began before may still
    /// store them; `whenSettled` says when they are over.
    package func forget(_ isFound: ([UInt8]) -> Bool) {
        rules?.engine.forgetLayers(isFound)
        pass.forgetSessions(isFound)
    }

    /// Tells the intake, on the reader's loop, that the queue has published a change.
    package func queueChanged() {
        if !store.storesNothing {
            goOn()
        }
    }

    /// Ends waiting for room. Commits that do not fit throw, and what they held is read again after the next
    /// start.
    package func stopWaiting() {
        isStopping = true
        waitingForRoom?.resume(throwing: GivenUp())
        waitingForRoom = nil
    }

    /// Logs lines that went to the quarantine, at most every ten seconds: where the first one is, how many
    /// had the same reason since the last report, and how many another one.
    private func report(_ records: [QuarantineRecord]) {
        for record in records { unreported[record.reason, default: 0] += 1 }
        guard let first = records.first, time.bootTime >= nextReport else { return }
        nextReport = time.bootTime + .seconds(10)
        log.warning(
            "quarantined",
            [
                "path": first.path, "offset": first.offset, "length": first.length,
                "reason": first.reason.rawValue,
                "detail": first.detail, "count": unreported[first.reason] ?? 0,
                "other_reasons": unreported.reduce(0) { $0 + ($1.key == first.reason ? 0 : $1.value) },
                "see": "spoolship quarantine list",
            ])
        unreported = [:]
    }

    /// Publishes the counts as of a commit, and logs what is due.
    private func publish(_ commit: Commit) {
        report(commit.quarantined)
        reportMadeTooLarge()
        reportCuts()
        reportTexts()
        reportSchemas()
        rules?.publish()
        figures.update {
            $0.events = pass.counts
            $0.names = pass.nameCounts
            $0.apps = apps
            $0.schemas = schemas.counts
            for record in commit.quarantined { $0.quarantined[record.reason, default: 0] += 1 }
        }
    }
}
