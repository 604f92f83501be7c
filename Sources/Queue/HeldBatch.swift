internal import EventLoops
internal import Model

/// A batch that this process knows: leased, given back, or settled and not yet taken out of the database.
///
/// There are as many as delivery has in flight or waiting for a retry, never a backlog of them.
struct HeldBatch {
    enum Status {
        /// In flight: it is not evicted and does not expire.
        case leased
        /// Free for another lease by its id.
        case free
        /// Acknowledged; its rows go with the next transaction.
        case acknowledged
    }

    let header: BatchHeader
    /// Its place in `Figures.lanes`.
    var lane: Int
    let rows: [DeliveryRow]
    /// The chunk's cost if the batch is all that needs its only chunk; nil if that has to be looked up.
    let soleCost: Int?
    var status: Status
}

/// A batch as it was read, to be held.
struct LoadedBatch {
    var batch: Batch
    let held: HeldBatch
    /// The greatest event time of its chunks.
    let newest: Timestamp
}

extension DeliveryRow {
    /// Whether a deadline of that name concerns its events because of their app; one without a name concerns all.
    func concerns(_ deadline: String?) -> Bool {
        guard let deadline else { return true }
        return deadlines?.contains(deadline) ?? false
    }
}

extension StoredChunk {
    /// A row's events in this chunk; nil if the chunk has not so many.
    func part(_ row: DeliveryRow) -> Batch.Part? {
        guard row.first >= 0, row.events > 0, row.first + row.events <= events else { return nil }
        return Batch.Part(
            compression: compression, frame: frame, bytes: bytes, eventsInFrame: events,
            events: row.first..<row.first + row.events)
    }
}
