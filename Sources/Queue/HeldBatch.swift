internal import EventLoops
internal import Model

/// A batch that this process knows: leased, given back, or acknowledged with its rows still in the
/// database.
///
/// Their number is bounded by what delivery has in flight or waits to retry; a backlog of batches stays
/// in the tables only.
struct HeldBatch {
    /// The state of a known batch; `QueueState+Invariants` draws the transitions.
    enum Status {
        /// In flight. It must not be evicted, expired or cut: the destination may be storing it.
        case leased
        /// Given back; it can be leased again by its id.
        case free
        /// Acknowledged; the next transaction deletes its rows.
        case acknowledged
    }

    /// Id, destination and size of the batch.
    let header: BatchHeader
    /// Index in `Figures.lanes`. A salvage may change it (`takeUpHeld`).
    var lane: Int
    /// Rows of table `delivery` that make up the batch, in order.
    let rows: [DeliveryRow]
    /// Cost of the chunk if this batch is all that needs its only chunk, so that an acknowledgement can
    /// delete the chunk without a query. Nil if other deliveries may need it.
    let soleCost: Int?
    /// What this process knows about the batch; the tables do not contain it.
    var status: Status
}

/// A batch with its frames, as it was read for a lease.
struct LoadedBatch {
    /// The frames, and what delivery learns about them.
    var batch: Batch
    /// The entry for `QueueState.held` that makes the lease take effect.
    let held: HeldBatch
    /// Greatest event time of its chunks. If it has expired, so has the whole batch.
    let newest: Timestamp
}

extension DeliveryRow {
    /// Whether a named deadline applies to these events because of their app. A deadline without a name
    /// (nil) applies to all events.
    func concerns(_ deadline: String?) -> Bool {
        guard let deadline else { return true }
        return deadlines?.contains(deadline) ?? false
    }
}

extension StoredChunk {
    /// The events of a delivery row in this chunk; nil if the chunk has fewer events than the row
    /// states, which means damage.
    func part(_ row: DeliveryRow) -> Batch.Part? {
        guard row.first >= 0, row.events > 0, row.first + row.events <= events else { return nil }
        return Batch.Part(
            compression: compression, frame: frame, bytes: bytes, eventsInFrame: events,
            events: row.first..<row.first + row.events)
    }
}
