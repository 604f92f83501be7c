internal import EventLoops
internal import Logs
internal import Model

/// Makes commits durable, one after the other, and waits meanwhile: for their turn, and for room in the
/// queue. It belongs to the reader's loop.
///
/// Invariant: once a commit was given up, no later one is stored. Its checkpoint would skip the events of the
/// one before.
final class Committer {
    /// Thrown by commits that were given up because the agent stops.
    struct GivenUp: Error, CustomStringConvertible {
        let description = "not stored before the agent stopped"
    }

    private enum Phase {
        case open
        /// A commit waits for room in the queue. There is at most one, because commits take turns.
        case waiting(CheckedContinuation<Void, any Error>)
        /// The agent stops: no commit waits for room any more.
        case stopping
        /// A commit was given up: commits after it must fail as well.
        case givenUp
    }

    private let store: any CommitStore
    private let loop: EventLoop
    private let log: Log
    /// Keeps commits in the order in which they were begun.
    private let turnstile = Turnstile()
    private var phase = Phase.open

    init(_ store: any CommitStore, on loop: EventLoop, log: Log) {
        self.store = store
        self.loop = loop
        self.log = log
    }

    /// Calls `body` when all commits that had begun are durable or given up.
    func whenSettled(_ body: @escaping @Sendable () -> Void) { turnstile.whenFree(body) }

    /// Stores a commit after those that were begun before: a later checkpoint must never be durable before
    /// the events of an earlier one.
    ///
    /// - Throws: if the agent stops, or the store is closed. Every later commit then throws as well.
    func commit(_ commit: Commit) async throws {
        let ticket = turnstile.drawTicket()
        await turnstile.takeTurn(ticket)
        defer { turnstile.passTurn() }
        if case .givenUp = phase { throw GivenUp() }
        do {
            try await persist(commit)
        } catch {
            phase = .givenUp
            throw error
        }
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
                log.error(
                    "events could not be stored: they will be tried again",
                    ["reason": error.word, "hint": error.message])
                try await waitForRoom(atMost: .seconds(5))
            }
        }
    }

    /// Returns when the queue may have room again, with a limit after that time at the latest.
    private func waitForRoom(atMost limit: Duration? = nil) async throws {
        let timer = limit.map { limit in loop.after(limit) { self.goOn() } }
        defer { if let timer { loop.cancel(timer) } }
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            if case .stopping = phase { return continuation.resume(throwing: GivenUp()) }
            // After an error the queue may look as if it had room; then only time or a change of the queue
            // helps.
            if limit == nil, !store.storesNothing { return continuation.resume() }
            assert(isOpen, "two commits wait for room, or one after a commit was given up")
            phase = .waiting(continuation)
        }
    }

    /// Whether no commit waits for room and none was given up.
    private var isOpen: Bool {
        if case .open = phase { return true }
        return false
    }

    /// Lets the waiting commit try again.
    private func goOn() {
        guard case .waiting(let continuation) = phase else { return }
        phase = .open
        continuation.resume()
    }

    /// The queue has published a change.
    func queueChanged() {
        if !store.storesNothing {
            goOn()
        }
    }

    /// Ends waiting for room. Commits that do not fit throw, and what they held is read again after the next
    /// start.
    func stopWaiting() {
        switch phase {
        case .open: phase = .stopping
        case .waiting(let continuation):
            phase = .stopping
            continuation.resume(throwing: GivenUp())
        case .stopping, .givenUp: break
        }
    }
}

extension CommitStore {
    /// Stores a commit of lines that do not come from the spool, without waiting for room. Returns how many
    /// of its events were refused; nil without room.
    func storeOnce(_ commit: Commit) async throws(IntakeError) -> Int? {
        do {
            guard case .stored(let refused) = try await store(commit) else { return nil }
            return refused
        } catch {
            throw IntakeError(storing: error)
        }
    }
}
