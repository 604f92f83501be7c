internal import EventLoops
internal import Model

/// The batches that this process knows, by their ids.
///
/// Each transaction changes a copy of the queue's state. In a single dictionary the first change would copy
/// all entries, and a destination that refuses events keeps two thousand batches here: that took a tenth of
/// the agent's processor time. So many batches are spread over small dictionaries, of which a change copies
/// one. The oldest of each lane, which every snapshot shows, is kept for the same reason.
struct HeldBatches: Sequence {
    /// Most batches in a single dictionary. Copying them costs less than 64 references.
    private static let mostTogether = 128
    /// Small dictionaries for more batches; a power of two.
    private static let parts = 64

    /// The oldest acceptance among a lane's batches that are not acknowledged.
    private struct Oldest {
        var acceptedAt: Timestamp?
        /// Batches that were accepted then: the pieces of a refused batch are many.
        var batches = 0
        /// Whether the oldest batches are gone, so that the next oldest has to be looked for.
        var isGone = false
    }

    /// One dictionary, or `parts` of them.
    private var groups: [[BatchID: HeldBatch]] = [[:]]
    private(set) var count = 0
    private var oldest: [Oldest] = []

    subscript(id: BatchID) -> HeldBatch? {
        get { groups[group(of: id)][id] }
        _modify {
            let group = group(of: id)
            if let before = groups[group][id] {
                tally(before, -1)
            }
            defer {
                if let after = groups[group][id] {
                    tally(after, 1)
                }
                spreadIfMany()
            }
            yield &groups[group][id]
        }
    }

    /// Whether a row's batch may have been sent: it was formed or leased, or is a full chunk that an
    /// earlier process could have leased.
    func mayHaveBeenSent(_ row: DeliveryRow, in lane: Lane, lastChunkAtOpen: Int64) -> Bool {
        guard let id = row.batch else { return false }
        return row.isFormed || self[id] != nil || row.chunk <= lastChunkAtOpen && lane.allows(row)
    }

    @discardableResult
    mutating func removeValue(forKey id: BatchID) -> HeldBatch? {
        guard let removed = groups[group(of: id)].removeValue(forKey: id) else { return nil }
        tally(removed, -1)
        return removed
    }

    mutating func removeAll() { self = HeldBatches() }

    var values: some Sequence<HeldBatch> { groups.lazy.joined().map(\.value) }

    func makeIterator() -> some IteratorProtocol<(key: BatchID, value: HeldBatch)> {
        groups.joined().makeIterator()
    }

    /// The acceptance of a lane's oldest batch that is not acknowledged; nil without any.
    mutating func oldestAcceptance(in lane: Int) -> Timestamp? {
        guard lane < oldest.count else { return nil }
        if oldest[lane].isGone {
            oldest[lane] = Oldest()
            for batch in values where batch.lane == lane { note(batch, 1) }
        }
        return oldest[lane].acceptedAt
    }

    /// Counts a batch that is added or removed.
    private mutating func tally(_ batch: HeldBatch, _ sign: Int) {
        count += sign
        if batch.lane >= oldest.count {
            oldest += Array(repeating: Oldest(), count: batch.lane + 1 - oldest.count)
        }
        note(batch, sign)
    }

    private mutating func note(_ batch: HeldBatch, _ sign: Int) {
        let known = oldest[batch.lane]
        guard batch.status != .acknowledged, !known.isGone else { return }
        let acceptedAt = batch.header.acceptedAt
        if acceptedAt == known.acceptedAt {
            oldest[batch.lane].batches += sign
            oldest[batch.lane].isGone = known.batches + sign == 0
        } else if sign > 0, known.acceptedAt.map({ acceptedAt < $0 }) ?? true {
            oldest[batch.lane] = Oldest(acceptedAt: acceptedAt, batches: 1)
        }
    }

    /// Ids end with random bits, so that the dictionaries are of about the same size.
    private func group(of id: BatchID) -> Int { Int(truncatingIfNeeded: id.low) & (groups.count - 1) }

    private mutating func spreadIfMany() {
        guard groups.count == 1, count > HeldBatches.mostTogether else { return }
        let all = groups[0]
        groups = Array(repeating: [:], count: HeldBatches.parts)
        for (id, batch) in all { groups[group(of: id)][id] = batch }
    }
}
