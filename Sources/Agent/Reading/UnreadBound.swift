internal import EventLoops
internal import Model

/// Decides when a full queue must give up events although it is to wait: more waits in the spool than `spool.max_unread` allows, and
/// some destinations acknowledge nothing, so that waiting for them would only fill the disk. A pure core.
struct UnreadBound {
    /// How long a destination may acknowledge nothing of what waits for it before it is behind.
    static let patience = Duration.seconds(30)

    /// What tells how a destination is doing: the deliveries that it has acknowledged so far, and those that wait for it.
    typealias Progress = (acknowledged: Int, queued: Int)

    /// The most unread bytes; 0: no bound.
    let most: Int64
    /// Whose old events are given up now.
    private(set) var behind: Set<DestinationName> = []
    /// What each had acknowledged, and since when.
    private var standing: [DestinationName: (acknowledged: Int, since: BootInstant)] = [:]

    init(most: Int64) { self.most = most }

    enum Change: Equatable {
        /// So many bytes are to be read at the cost of these destinations' oldest events.
        case giveUp(Set<DestinationName>, Int64)
        case wait
    }

    /// Looks at the unread bytes of the spool, and at whether reading waits because the queue has reached its cap.
    mutating func look(
        unread: Int64, _ destinations: [DestinationName: Progress], isFull: Bool, at now: BootInstant
    ) -> Change? {
        let wasGivingUp = !behind.isEmpty
        // What was seen before there was room is too long ago to tell anything.
        guard isFull || wasGivingUp else {
            standing = [:]
            return nil
        }
        for (name, progress) in destinations
        where progress.queued == 0 || standing[name]?.acknowledged != progress.acknowledged {
            standing[name] = (progress.acknowledged, now)
        }
        // To a tenth below the bound, so that it does not change with every file; and no further.
        let excess = unread - most / 10 * 9
        let isPassed = wasGivingUp ? excess > 0 : most > 0 && unread > most
        behind = isPassed ? Set(standing.filter { now - $0.value.since >= UnreadBound.patience }.keys) : []
        if !behind.isEmpty { return .giveUp(behind, excess) }
        return wasGivingUp ? .wait : nil
    }
}
