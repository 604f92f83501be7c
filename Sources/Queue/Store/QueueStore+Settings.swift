internal import EventLoops
public import Model

extension QueueStore {
    /// Applies changed settings: destinations, cap, behaviour when full, ages, bounds of dead letters
    /// and quarantine. State directory and durability stay as they are until a restart.
    ///
    /// - Throws: `capBelowStored` if the new cap, or a lowered bound of kept records, is below what is
    ///   stored. The old settings then stay in force.
    public func apply(_ new: QueueOptions) async throws(QueueError) {
        try await write { transaction throws(QueueError) in try transaction.apply(new) }
        if let file {
            limit(file)
        }
        state.givenUp = nil
        health.refusedMaxSize = nil
        publish()
        if let file {
            shrinkIfDue(file)
        }
    }

    /// Lets destinations that are behind lose their oldest events when storing would otherwise wait. If
    /// these are all destinations, the queue evicts as with `when_full = "evict"`.
    ///
    /// - Parameter bytes: bytes of new events for which this holds; after the commit that exceeds them
    ///   storing waits again.
    public func giveUp(for destinations: Set<DestinationName>, atMost bytes: Int) {
        state.givenUp =
            destinations.isEmpty ? nil : QueueState.GivenUp(destinations: destinations, bytes: bytes)
        if state.givenUp != nil, state.refusal?.reason == .full {
            state.refusal = nil
        }
        publish()
    }

    /// Makes durable what was stored with `durability = "crash"`; with `"power_loss"` it is durable
    /// already.
    ///
    /// At most one sync a second: an earlier call waits for the next sync together with all others.
    public func sync() async throws(QueueError) {
        guard state.options.durability == .crash else { return }
        _ = try opened()
        let result: Result<Void, QueueError> = await withUnsafeContinuation { continuation in
            syncWaiters.append(continuation)
            let since = lastSync.map { time.bootTime - $0 } ?? .seconds(1)
            if since < .seconds(1) {
                arm(.sync, after: .seconds(1) - since)
            } else {
                endSync()
            }
        }
        try result.get()
    }

    /// Syncs and resumes all callers that wait for it.
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

    /// Syncs the WAL, which holds everything that is not synced in the database file.
    func syncNow() throws(QueueError) {
        let file = try opened()
        lastSync = time.bootTime
        syncs += 1
        try file.database.syncWAL()
    }
}

extension Transaction {
    /// Checks the new settings and puts them in force with the COMMIT.
    fileprivate mutating func apply(_ new: QueueOptions) throws(QueueError) {
        let old = state.options
        let totals = state.figures.totals
        try Transaction.require("queue.max_size", new.maxSize, holds: totals.stored)
        if new.deadLettersMaxSize < old.deadLettersMaxSize {
            try Transaction.require(
                "dead_letters.max_size", new.deadLettersMaxSize, holds: totals.deadLetters.bytes)
        }
        if new.quarantineMaxSize < old.quarantineMaxSize {
            try Transaction.require(
                "spool.quarantine_max_size", new.quarantineMaxSize, holds: totals.quarantine.bytes)
        }
        for name in new.destinations { _ = try laneIndex(name, .normal) }
        state.figures.totals.maxSize = new.maxSize
        var kept = new
        // These take effect only with a restart: the files are open already.
        kept.stateDirectory = state.options.stateDirectory
        kept.durability = state.options.durability
        kept.vfs = state.options.vfs
        state.options = kept
        state.effectiveCap = kept.maxSize
        // A larger cap, or another rule for a full queue, may have room now.
        if state.refusal?.reason == .full {
            state.refusal = nil
        }
    }

    /// - Throws: `capBelowStored` if a setting is below what is stored: a lower bound is no reason to
    ///   delete.
    private static func require(_ setting: String, _ most: Int, holds stored: Int) throws(QueueError) {
        guard stored > most else { return }
        throw QueueError(
            .capBelowStored,
            "\(setting) is \(most) bytes, but \(stored) are stored; give at least that much, or send or "
                + "purge first"
        )
    }
}
