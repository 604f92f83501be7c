internal import Logs

/// What is given up while the database file is full before its bounds, because its pages are filled badly.
struct Relief {
    /// What the quarantine may hold meanwhile, in bytes; nil: its bound.
    var quarantine: Int?
    /// What dead letters may hold meanwhile, in bytes; nil: their bound.
    var deadLetters: Int?
    /// Events that come are dropped: nothing else is left to give up.
    var dropsEvents = false
    /// One transaction may pass the bound.
    var isGranted = false
    /// The file was replaced, and a transaction has not succeeded since: it is not replaced for the same reason again.
    var isReplaced = false

    /// Whether nothing is given up.
    var isNone: Bool { quarantine == nil && deadLetters == nil && !dropsEvents }

    /// The next step down, in bytes; few are not worth another one.
    static func half(of bytes: Int) -> Int { bytes > 64 << 10 ? bytes / 2 : 0 }
}

// A transaction that the file has no pages for: it gives way step by step, and each step is one that cannot be repeated
// for ever. The disk has room; waiting for it would be waiting for nothing.
extension QueueStore {
    /// Deals with calls that did not fit in the file.
    func makeFit(_ error: QueueError, _ operations: [Operation]) {
        guard let file else { return }
        do throws(QueueError) {
            if !state.relief.isReplaced, try isBeyondNeed(operations, file) {
                state.relief.isReplaced = true
                return recover(file.database.damage("it names pages beyond its end"), operations)
            }
            // Places of files are paid for: without them nothing is exact, and files can be many.
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

    /// Whether the file has far more room than the calls can need: then a damaged number asked for a page that is not there.
    private func isBeyondNeed(_ operations: [Operation], _ file: QueueFile) throws(QueueError) -> Bool {
        let need = operations.reduce(2 * state.bounds.transaction) { $0 + min($1.bytes, 1 << 40) + $1.places }
        return try file.database.room() > (8 << 20) + 4 * need
    }

    private func tryAgain(_ operations: [Operation]) { waiting = operations + waiting }

    /// Takes the next step for a commit that does not fit by itself; false when none is left.
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

    /// One line for as long as anything is given up.
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

    /// The cap comes down to what the file holds, until half of it is free.
    private func lowerCap() -> Bool {
        let cap = state.figures.totals.stored / 20 * 19
        guard cap < state.effectiveCap, cap > 0 else { return false }
        state.effectiveCap = cap
        log.warning("queue file is full before its cap", ["stored_bytes": state.figures.totals.stored])
        return true
    }

    /// The bound holds again after a transaction that was let through.
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
            // Setting a number in memory: where that fails everything does, and the next transaction meets it.
            health.count(error)
        }
    }

    /// Nothing more is given up once half of the file is free.
    func endRelief(_ file: QueueFile) throws(QueueError) {
        guard !state.relief.isNone else { return }
        let used = file.fileBytes - (try file.freeBytes())
        if used < state.bounds.file / 2 { state.relief = Relief() }
    }
}
