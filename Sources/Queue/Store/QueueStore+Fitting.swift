internal import Logs

/// What is given up while the database file is full although the counted bytes are below their bounds,
/// because its pages are poorly filled.
struct Relief {
    /// Temporary bound of the quarantine in bytes; nil if its own bound is in force.
    var quarantine: Int?
    /// Temporary bound of the dead letters in bytes; nil if their own bound is in force.
    var deadLetters: Int?
    /// Whether new events are counted as quarantined and dropped: nothing else is left to give up.
    var dropsEvents = false
    /// Whether the next transaction may exceed the bound of the file.
    var isGranted = false
    /// Whether the file was salvaged for this reason and no transaction has succeeded since. A second
    /// salvage would not help.
    var isReplaced = false

    /// Whether nothing is given up.
    var isNone: Bool { quarantine == nil && deadLetters == nil && !dropsEvents }

    /// Half of a number of bytes; 0 for 64 KiB or less, because another step would gain little.
    static func half(of bytes: Int) -> Int { bytes > 64 << 10 ? bytes / 2 : 0 }
}

// Calls that the file has no pages for. The disk has room, so waiting would not help; instead something
// is given up, step by step. Each step can be taken a bounded number of times, so that no call is
// retried forever. A full database file in DESIGN.md lists the steps.
extension QueueStore {
    /// Takes the next step for calls that did not fit in the file, and retries them or lets them fail.
    func makeFit(_ error: QueueError, _ operations: [Operation]) {
        guard let file else { return }
        do throws(QueueError) {
            if !state.relief.isReplaced, try isBeyondNeed(operations, file) {
                state.relief.isReplaced = true
                return recover(file.database.damage("it names pages beyond its end"), operations)
            }
            // Positions in files get extra room: without them no event is handed over exactly once, and
            // the files can be many.
            if try file.payForPlaces(operations.reduce(0) { $0 + $1.places }, state.bounds) {
                return tryAgain(operations)
            }
            guard operations.count <= 1 else { return end(operations, error) }
            if let commit = operations.first, commit.wait != nil, giveWay(to: commit) {
                return tryAgain(operations)
            }
            guard !state.relief.isGranted else {
                state.relief.isGranted = false
                try file.limit(to: state.bounds)
                return end(operations, error)
            }
            state.relief.isGranted = true
            try file.grant(2 * state.bounds.transaction + (operations.first?.places ?? 0) * 2)
            tryAgain(operations)
        } catch {
            health.count(error)
            end(operations, error)
        }
    }

    /// Whether the file has far more room than the calls can need. Then a damaged page number asked for
    /// a page that does not exist.
    private func isBeyondNeed(_ operations: [Operation], _ file: QueueFile) throws(QueueError) -> Bool {
        let need = operations.reduce(2 * state.bounds.transaction) { $0 + min($1.bytes, 1 << 40) + $1.places }
        return try file.database.room() > (8 << 20) + 4 * need
    }

    private func tryAgain(_ operations: [Operation]) { waiting = operations + waiting }

    /// Takes the next step for a single commit that does not fit; false if no step is left.
    private func giveWay(to commit: Operation) -> Bool {
        let totals = state.figures.totals
        let isHeldByKept = totals.quarantine.bytes + totals.deadLetters.bytes > totals.stored
        if commit.bringsEvents, !isHeldByKept, lowerCap() { return true }
        if state.quarantineBound > 0 {
            noteRelief()
            state.relief.quarantine = Relief.half(
                of: max(totals.quarantine.bytes, min(commit.bytes, state.quarantineBound)))
            return true
        }
        if totals.deadLetters.bytes > 0, state.relief.deadLetters != 0 {
            noteRelief()
            state.relief.deadLetters = Relief.half(of: totals.deadLetters.bytes)
            return true
        }
        if commit.bringsEvents, lowerCap() { return true }
        guard commit.bringsEvents, !state.relief.dropsEvents else { return false }
        state.relief.dropsEvents = true
        log.error(
            "queue file cannot hold new events: they are given up and counted as quarantined",
            ["stored_bytes": totals.stored])
        return true
    }

    /// Logs one message for as long as anything is given up.
    private func noteRelief() {
        guard state.relief.isNone else { return }
        log.warning(
            "queue file is full before its bounds",
            [
                "quarantine_bytes": state.figures.totals.quarantine.bytes,
                "dead_letter_bytes": state.figures.totals.deadLetters.bytes,
                "stored_bytes": state.figures.totals.stored, "hint": "the oldest kept lines are purged",
            ])
    }

    /// Lowers the cap to 95 % of what is stored, until half of the queue is free; false if it is that
    /// low already.
    private func lowerCap() -> Bool {
        let cap = state.figures.totals.stored / 20 * 19
        guard cap < state.effectiveCap, cap > 0 else { return false }
        state.effectiveCap = cap
        log.warning("queue file is full before its cap", ["stored_bytes": state.figures.totals.stored])
        return true
    }

    /// Restores the file's bound after a transaction that was allowed to exceed it.
    func endGrant(_ file: QueueFile) {
        guard state.relief.isGranted else { return }
        state.relief.isGranted = false
        limit(file)
    }

    /// Lets the file grow to the bounds in force.
    func limit(_ file: QueueFile) {
        do throws(QueueError) {
            try file.limit(to: state.bounds)
        } catch {
            // This sets a number in memory. If it fails everything fails, and the next transaction
            // handles that.
            health.count(error)
        }
    }

    /// Restores all bounds once half of the file is free.
    func endRelief(_ file: QueueFile) throws(QueueError) {
        guard !state.relief.isNone else { return }
        let used = file.fileBytes - (try file.freeBytes())
        if used < state.bounds.file / 2 {
            state.relief = Relief()
        }
    }
}
