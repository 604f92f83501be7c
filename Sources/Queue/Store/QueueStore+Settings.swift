internal import EventLoops
public import Model

extension QueueStore {
    /// Applies changed settings: destinations, cap, what happens when it is reached, age, bounds of dead letters and
    /// quarantine. The directory and durability stay as they are until a restart.
    ///
    /// - Throws: `QueueError` with code `capBelowStored` if the new cap, or a lowered bound of what is kept, is below what is stored:
    ///   the old settings stay in force (ac11).
    public func apply(_ new: QueueOptions) async throws(QueueError) {
        try await write { transaction throws(QueueError) in try transaction.apply(new) }
        if let file { limit(file) }
        state.givenUp = nil
        health.refusedMaxSize = nil
        publish()
        if let file { shrinkIfDue(file) }
    }

    /// Lets destinations that are behind give up their oldest events where storing would wait; if they are all of them, the queue
    /// evicts as `when_full = "evict"` does.
    ///
    /// - Parameter bytes: after so many bytes of events, and the commit that passes them, storing waits again.
    public func giveUp(for destinations: Set<DestinationName>, atMost bytes: Int) {
        state.givenUp = destinations.isEmpty ? nil : QueueState.GivenUp(destinations: destinations, bytes: bytes)
        if state.givenUp != nil, state.refusal?.reason == .full { state.refusal = nil }
        publish()
    }

    /// Makes durable what was stored with `durability = "crash"`; with `"power_loss"` it is already.
    ///
    /// A sync a second at most: a caller that asks sooner waits for the next, together with all others.
    public func sync() async throws(QueueError) {
        guard state.options.durability == .crash else { return }
        _ = try opened()
        let result: Result<Void, QueueError> = await withUnsafeContinuation { continuation in
            syncWaiters.append(continuation)
            let since = lastSync.map { time.bootTime - $0 } ?? .seconds(1)
            if since < .seconds(1) { arm(.sync, after: .seconds(1) - since) } else { endSync() }
        }
        try result.get()
    }

    func endSync() {
        cancel(.sync)
        let waiters = syncWaiters
        syncWaiters = []
        guard !waiters.isEmpty else { return }
        let result: Result<Void, QueueError>
        do throws(QueueError) {
            result = .success(try syncNow())
        } catch {
            health.count(error)
            result = .failure(error)
        }
        for waiter in waiters { waiter.resume(returning: result) }
    }

    /// Syncs the WAL, which holds whatever is not synced in the database file.
    func syncNow() throws(QueueError) {
        let file = try opened()
        lastSync = time.bootTime
        syncs += 1
        try file.database.syncWAL()
    }
}

extension Transaction {
    fileprivate mutating func apply(_ new: QueueOptions) throws(QueueError) {
        let (old, totals) = (state.options, state.figures.totals)
        try Transaction.require("queue.max_size", new.maxSize, holds: totals.stored)
        if new.deadLettersMaxSize < old.deadLettersMaxSize {
            try Transaction.require("dead_letters.max_size", new.deadLettersMaxSize, holds: totals.deadLetters.bytes)
        }
        if new.quarantineMaxSize < old.quarantineMaxSize {
            try Transaction.require("spool.quarantine_max_size", new.quarantineMaxSize, holds: totals.quarantine.bytes)
        }
        for name in new.destinations { _ = try place(name, .normal) }
        state.figures.totals.maxSize = new.maxSize
        var kept = new
        kept.stateDirectory = state.options.stateDirectory
        kept.durability = state.options.durability
        kept.vfs = state.options.vfs
        state.options = kept
        state.bounds = FileBounds(kept)
        state.effectiveCap = kept.maxSize
        // Another rule for a full queue may have room now.
        if state.refusal?.reason == .full { state.refusal = nil }
    }

    /// A lower bound is not a reason to delete (ac11).
    private static func require(_ setting: String, _ most: Int, holds stored: Int) throws(QueueError) {
        guard stored > most else { return }
        throw QueueError(
            .capBelowStored,
            "\(setting) is \(most) bytes, but \(stored) are stored; give at least that much, or send or purge first")
    }
}
