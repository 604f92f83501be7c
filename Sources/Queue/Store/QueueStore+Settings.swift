internal import EventLoops
public import Model

extension QueueStore {
    /// Applies changed settings: destinations, cap, what happens when it is reached, age, bounds of dead letters and
    /// quarantine. The directory and durability stay as they are until a restart.
    ///
    /// - Throws: `QueueError` with code `capBelowStored` if the new cap is below what is stored: the old settings stay
    ///   in force (ac11).
    public func apply(_ new: QueueOptions) async throws(QueueError) {
        try new.validate()
        try await write { transaction throws(QueueError) in try transaction.apply(new) }
        evictionBudget = nil
        if health.refusedMaxSize != nil {
            health.refusedMaxSize = nil
            publish()
        }
        if let file { shrinkIfDue(file) }
    }

    /// Says what happens from now on when the cap is reached: the setting, or eviction while a dead destination
    /// would fill the disk with unread files.
    ///
    /// - Parameter bytes: after so many bytes of events, and the commit that passes them, it waits again; nil: never.
    public func setWhenFull(_ whenFull: WhenFull, atMost bytes: Int? = nil) {
        state.options.whenFull = whenFull
        evictionBudget = whenFull == .evict ? bytes : nil
        if whenFull == .evict, state.refusal?.reason == .full { state.refusal = nil }
        publish()
    }

    /// Takes what was stored off what may be stored by evicting others.
    func spendEvictionBudget(_ bytes: Int) {
        guard let budget = evictionBudget else { return }
        evictionBudget = budget > bytes ? budget - bytes : nil
        if evictionBudget == nil { state.options.whenFull = .wait }
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

    /// Syncs for all waiting callers.
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
        try Opening.checkCap(new, state.figures)
        for name in new.destinations { _ = try place(name, .normal) }
        state.figures.totals.maxSize = new.maxSize
        var kept = new
        kept.stateDirectory = state.options.stateDirectory
        kept.durability = state.options.durability
        kept.vfs = state.options.vfs
        state.options = kept
        state.bounds = FileBounds(kept)
        state.effectiveCap = kept.maxSize
        try tables.limit(to: state.bounds)
        try trimDeadLetters()
        try trimQuarantine()
    }
}
