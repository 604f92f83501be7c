internal import Containers
internal import EventLoops
internal import Events
internal import Frames
internal import Logs
package import Model

/// How what was taken becomes durable.
extension Intake {
    func close(_ chunk: OpenChunk, _ route: Route, isFull: Bool) {
        do throws(FrameError) {
            let made = try chunk.close(for: route, isFull: isFull, with: &compressors)
            pendingBytes += made.frame.count
            pending.chunks.append(made)
        } catch {
            // Only want of memory ends here; going on would lose the chunk, and the spool still has it.
            preconditionFailure("cannot pack a chunk: \(error.message)")
        }
    }

    func closeAll() {
        for (index, chunks) in open.enumerated() {
            for chunk in chunks {
                if chunk.isEmpty { chunk.rest() } else { close(chunk, routes[index], isFull: false) }
            }
        }
    }

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

    /// Returns when what was committed before survives a power cut.
    package func persist() async throws { try await store.sync() }

    /// Whether a file has to stay, because the quarantine could not hold all of its bad lines.
    package func mustStay(_ file: [UInt8]) -> Bool { store.mustStay(file) }

    /// Makes all that was taken since the last commit durable, with `progress`.
    package func commit(_ progress: SpoolProgress) async throws { try await commit(progress, remembering: [:]) }

    /// Makes all that was taken since the last commit durable, with `progress` and what else is to be remembered.
    package func commit(_ progress: SpoolProgress, remembering memory: [String: [UInt8]]) async throws {
        var commit = takeCommit()
        commit.progress = progress
        commit.memory.merge(memory.mapValues { $0 }) { _, new in new }
        let newCalls = calls.takeNew()

        // In order: a later checkpoint must never be durable before the events of an earlier one.
        let ticket = turn.drawTicket()
        await turn.takeTurn(ticket)
        defer { turn.passTurn() }
        guard !hasGivenUp else { throw GivenUp() }
        do {
            try await persist(commit)
            calls.start(newCalls)
        } catch {
            hasGivenUp = true
            throw error
        }
    }

    func takeCommit() -> Commit {
        closeAll()
        var commit = pending
        pending = Commit()
        pendingBytes = 0
        commit.memory.merge(calls.takeMemory()) { _, new in new }
        // What the pass and the engine remember goes with the spool's commits: names of the day, sessions, throttles, layers.
        if kind == .spool {
            commit.memory.merge(pass.takeMemory { [rules] in rules?.engine.hiddenMemory(of: $0) ?? (false, false) }) {
                _, new in new
            }
            if let rules { commit.memory.merge(rules.engine.takeMemory()) { _, new in new } }
        }
        publish(commit)
        return commit
    }

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

    /// Returns when the queue may have room again; with a limit, when that time is over at the latest.
    private func waitForRoom(atMost limit: Duration? = nil) async throws {
        let timer = limit.map { limit in loop.after(limit) { self.goOn() } }
        defer { if let timer { loop.cancel(timer) } }
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            if isStopping { return continuation.resume(throwing: GivenUp()) }
            // After an error the queue may look as if it had room: then only time or a change helps.
            if limit == nil, !store.storesNothing { return continuation.resume() }
            waitingForRoom = continuation
        }
    }

    private func goOn() {
        waitingForRoom?.resume()
        waitingForRoom = nil
    }

    /// The calls of functions that are left at a stop, behind the last commit: without it newer ones are made again.
    package func takeLeftCalls() -> [String: [UInt8]?] {
        // Their events are not durable: they are read again.
        calls.forget(calls.takeNew())
        return calls.takeMemory()
    }

    /// To be called on the reader's loop when the queue has published a change.
    package func queueChanged() {
        if !store.storesNothing { goOn() }
    }

    /// Ends waiting for room: commits that do not fit throw, and what they held is read again after the next start.
    package func stopWaiting() {
        isStopping = true
        waitingForRoom?.resume(throwing: GivenUp())
        waitingForRoom = nil
    }

    /// One log line for what went to the quarantine, at most every ten seconds: where the first one is, how many there were
    /// for the same reason since the last line, and how many for others.
    private func report(_ records: [QuarantineRecord]) {
        for record in records { unreported[record.reason, default: 0] += 1 }
        guard let first = records.first, time.bootTime >= nextReport else { return }
        nextReport = time.bootTime + .seconds(10)
        log.warning(
            "quarantined",
            [
                "path": first.path, "offset": first.offset, "length": first.length, "reason": first.reason.rawValue,
                "detail": first.detail, "count": unreported[first.reason] ?? 0,
                "other_reasons": unreported.reduce(0) { $0 + ($1.key == first.reason ? 0 : $1.value) },
                "see": "spoolship quarantine list",
            ])
        unreported = [:]
    }

    private func publish(_ commit: Commit) {
        report(commit.quarantined)
        reportMadeTooLarge()
        reportCuts()
        rules?.publish()
        figures.update {
            $0.events = pass.counts
            $0.names = pass.nameCounts
            $0.apps = apps
            for record in commit.quarantined { $0.quarantined[record.reason, default: 0] += 1 }
        }
    }
}
