internal import EventLoops
internal import Model

/// Decides when a full queue must evict events although it is configured to wait: more waits in the spool
/// than `spool.when_full.max_unread` allows, and some destinations acknowledge nothing, so that waiting for
/// them would only fill the disk. A pure value.
struct UnreadBound {
    /// How long a destination with waiting events may acknowledge nothing before it counts as behind.
    static let patience = Duration.seconds(30)

    /// The progress of a destination: deliveries acknowledged so far, and deliveries that wait.
    typealias Progress = (acknowledged: Int, queued: Int)

    /// The most unread bytes; 0 for no bound.
    let most: Int64
    /// The destinations whose oldest events are evicted now.
    private(set) var behind: Set<DestinationName> = []
    /// The last number of acknowledged deliveries of each destination, and since when it has not changed.
    private var standing: [DestinationName: (acknowledged: Int, since: BootInstant)] = [:]

    init(most: Int64) { self.most = most }

    /// What the queue must change.
    enum Change: Equatable {
        /// Make room for this many bytes at the cost of the oldest events of these destinations.
        case giveUp(Set<DestinationName>, Int64)
        /// Stop evicting: a full queue waits again.
        case wait
    }

    /// Compares the state with that of the last call.
    ///
    /// - Parameters:
    ///   - unread: the unread bytes of the spool.
    ///   - isFull: whether reading waits because the queue has reached its cap.
    /// - Returns: what the queue must change; nil if nothing.
    mutating func look(
        unread: Int64, _ destinations: [DestinationName: Progress], isFull: Bool, at now: BootInstant
    ) -> Change? {
        let wasGivingUp = !behind.isEmpty
        // The queue had room in between, so older observations prove nothing.
        guard isFull || wasGivingUp else {
            standing = [:]
            return nil
        }
        for (name, progress) in destinations
        where progress.queued == 0 || standing[name]?.acknowledged != progress.acknowledged {
            standing[name] = (progress.acknowledged, now)
        }
        // Evict down to 90 % of the bound, so that the decision does not change with every file, and no
        // further.
        let excess = unread - most / 10 * 9
        let isPassed = wasGivingUp ? excess > 0 : most > 0 && unread > most
        behind = isPassed ? Set(standing.filter { now - $0.value.since >= UnreadBound.patience }.keys) : []
        if !behind.isEmpty { return .giveUp(behind, excess) }
        return wasGivingUp ? .wait : nil
    }
}
