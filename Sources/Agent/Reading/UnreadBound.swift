internal import EventLoops

/// Decides when `when_full = "wait"` must become `evict`: more waits in the spool than `spool.max_unread` allows, and no
/// destination acknowledges anything, so that waiting would only fill the disk. A pure core.
struct UnreadBound {
    /// How long nothing may have been acknowledged before anything is evicted.
    static let patience = Duration.seconds(30)

    /// The most unread bytes; 0: no bound.
    let most: Int64
    /// Whether old events are given up now.
    private(set) var isEvicting = false
    private var acknowledged: Int?
    private var quietSince = BootInstant(nanoseconds: 0)

    init(most: Int64) { self.most = most }

    /// What has to change.
    enum Change: Equatable {
        /// So many bytes are to be read at the cost of the oldest events.
        case evict(Int64)
        case wait
    }

    /// Looks at the figures.
    ///
    /// - Parameters:
    ///   - unread: bytes in the spool that are not in the queue.
    ///   - acknowledged: deliveries that all destinations have acknowledged so far.
    ///   - isFull: whether reading waits because the queue has reached its cap.
    mutating func look(unread: Int64, acknowledged: Int, isFull: Bool, at now: BootInstant) -> Change? {
        if acknowledged != self.acknowledged {
            self.acknowledged = acknowledged
            quietSince = now
            return end()
        }
        // To a tenth below the bound, so that it does not change with every file; and no further.
        let excess = unread - most / 10 * 9
        if isEvicting { return excess > 0 ? .evict(excess) : end() }
        guard most > 0, isFull, unread > most, now - quietSince >= UnreadBound.patience else { return nil }
        isEvicting = true
        return .evict(excess)
    }

    private mutating func end() -> Change? {
        guard isEvicting else { return nil }
        isEvicting = false
        return .wait
    }
}
