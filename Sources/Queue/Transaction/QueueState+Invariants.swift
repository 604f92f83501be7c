internal import Model

// The life of a batch, and what holds after each transaction.
//
//                     join, form                       acknowledge                removeAcknowledged
//     small chunks ───────────────┐               ┌──▶ acknowledged ─────────────────▶ gone
//                     takeWhole   ▼    settle     │
//     a full chunk ────────────▶ leased ──────────┼──▶ divide ──▶ parts gone, each child free
//                                 │ ▲             │
//                         release │ │ find        └──▶ takeOut (evicted, expired), discard, lose ──▶ gone
//                                 ▼ │                       ▲
//                                free ──────────────────────┘
//
// At a start every formed batch is free (`FigureTables.countFormed`). A batch of which a part is damaged
// is dissolved, and its other rows wait again (`dissolveBatch`). `move` puts a batch into another lane,
// where it is free.
extension QueueState {
    /// Stops a debug build before the COMMIT of a transaction that broke one of the rules 1 to 8.
    /// Release builds do not check.
    ///
    /// If the counts did not agree with the rows when the file was opened, because of damage that no
    /// checksum covers, nothing is checked: the rules could fail through no fault of ours.
    @inline(__always)
    func assertUnbroken(since before: QueueState) {
        assert(!environment.isCounted || broken(since: before) == nil, broken(since: before) ?? "")
    }

    /// Records whether the counts agree with the rows, in debug builds only: counting reads all rows.
    @inline(__always)
    func noteAgreement(with file: QueueFile) {
        assert(
            {
                environment.isCounted = FigureTables(file).agree(with: figures)
                return true
            }())
    }

    /// The first rule that the transaction from `before` to this state has broken; nil if it broke
    /// none.
    private func broken(since before: QueueState) -> String? {
        for lane in figures.lanes {
            let old = before.figures.lane(lane.key).map { before.figures.lanes[$0] }
            if let rule = lane.broken(since: old) { return "\(lane.name) \(lane.priority.name): \(rule)" }
        }
        if let rule = brokenByHeld() { return rule }
        return figures.totals.broken(since: before.figures.totals)
    }

    /// 5. Known batches are counted in their lane, and as free ones if they are free.
    /// 6. Each acknowledged batch is in the list of batches that the next transaction removes.
    private func brokenByHeld() -> String? {
        for index in figures.lanes.indices {
            let mine = held.values.filter { $0.lane == index }
            guard mine.reduce(0, { $0 + $1.header.events }) <= figures.lanes[index].batches.events,
                mine.count(where: { $0.status == .free }) <= figures.lanes[index].batches.free
            else { return "5: held batches are not counted in \(figures.lanes[index].name)" }
        }
        let leaving = held.values.count { $0.status == .acknowledged }
        return leaving <= acknowledged.count ? nil : "6: an acknowledged batch would stay"
    }
}

extension Lane {
    /// 1. The ledger balances, or is off by as much as before: a start accepts a ledger that was
    ///    written so.
    /// 2. No count is negative.
    /// 3. The events in batches are part of the queued events.
    /// 4. If no event is queued, no bytes are.
    fileprivate func broken(since old: Lane?) -> String? {
        guard ledger.imbalance == old?.ledger.imbalance ?? 0 else {
            return "1: the ledger does not balance: \(ledger)"
        }
        guard
            min(ledger.queued, queuedBytes, batches.events, batches.bytes, batches.free, deadLetters) >= 0
        else {
            return "2: a count is negative: \(self)"
        }
        guard waitingEvents >= 0, waitingBytes >= 0 else {
            return "3: more is in batches than is queued: \(self)"
        }
        return ledger.queued == 0 && queuedBytes != 0 ? "4: nothing is queued, in \(queuedBytes) bytes" : nil
    }
}

extension Ledger {
    /// Difference between the events that entered the queue and those that left it or are queued; 0 if the
    /// ledger balances.
    fileprivate var imbalance: Int {
        accepted + retried - acknowledged - deadLettered - evicted - expired - discarded - lost - queued
    }
}

extension Totals {
    /// 7. No total is negative, and the last chunk id never falls.
    /// 8. No count of events read falls: metrics publish them as counters.
    fileprivate func broken(since before: Totals) -> String? {
        guard min(stored, deadLetters.count, deadLetters.bytes, quarantine.count, quarantine.bytes) >= 0
        else {
            return "7: a total is negative: \(self)"
        }
        guard lastChunk >= before.lastChunk else {
            return "7: the last chunk was \(before.lastChunk), is \(lastChunk)"
        }
        let now = intake
        let old = before.intake
        let fell =
            now.read < old.read || now.accepted < old.accepted || now.refused < old.refused
            || now.quarantined < old.quarantined
        return fell ? "8: of what was read \(now), it was \(old)" : nil
    }
}
