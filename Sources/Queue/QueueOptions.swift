public import Model

/// How a queue runs.
public struct QueueOptions: Sendable, Equatable {
    /// The program that opens the queue.
    public enum Opener: Sendable, Equatable {
        /// The agent: makes what is missing, repairs what is damaged.
        case agent
        /// A command, while no agent runs: what is missing or damaged stays so and is an error, the cap in force stays
        /// that of the database, nothing but what is asked for is written.
        case command
    }

    /// Where the database is; made if it is missing (its parent is not).
    public var stateDirectory: String
    /// The destinations, in the order of the configuration. Others in the database are orphans.
    public var destinations: [DestinationName]
    /// The storage cap in bytes, for frames and metadata. Default 10 MiB; at least 24 KiB.
    public var maxSize = 10 << 20
    /// What happens when it is reached. Default `wait`: a spool on disk is there already.
    public var whenFull = WhenFull.wait
    /// Events older than that expire. Default 25 days.
    public var maxAge = Duration.seconds(25 * 86_400)
    /// The same, for destinations that have their own maximum.
    public var maxAges: [DestinationName: Duration] = [:]
    /// Destinations that give up their oldest events where storing would wait for them: while they hold more than an equal part of
    /// what is queued. Default none.
    public var skipping: Set<DestinationName> = []
    /// What a commit survives. Default a power cut.
    public var durability = Durability.powerLoss
    /// The bound of dead letters in bytes; the oldest of the app that has most are purged first. Default 1 MiB.
    public var deadLettersMaxSize = 1 << 20
    /// The bound of the quarantine in bytes; the oldest of the app that has most are purged first. Default 1 MiB.
    public var quarantineMaxSize = 1 << 20
    /// The most events in a chunk; decides the page size of a new database. Default 50.
    public var batchEvents = 50
    /// The most uncompressed bytes in a chunk; decides the page size of a new database. Default 1 MiB.
    public var batchBytes = 1 << 20
    /// How many of the oldest waiting chunks are looked at for a lane's earliest event time. Default 1: events come
    /// about in the order of their times. More where deadlines go by it: each chunk costs 0.1 us a batch.
    public var eventTimeLookahead = 1
    /// The program that opens it. Default the agent.
    public var opener = Opener.agent
    /// The SQLite VFS; nil means the system's. Tests pass one that cuts power.
    public var vfs: String?

    package init(stateDirectory: String, destinations: [DestinationName]) {
        self.stateDirectory = stateDirectory
        self.destinations = destinations
    }
}
