public import Model

/// The settings of a queue.
public struct QueueOptions: Sendable, Equatable {
    /// The program that opens the queue.
    public enum Opener: Sendable, Equatable {
        /// The agent: it creates missing files, repairs damage and adds new destinations.
        case agent
        /// A command, while no agent runs. Missing or damaged files are an error and stay as they are,
        /// the cap in force stays that of the database, and only what the command asks for is written.
        case command
    }

    /// Directory of the database. It is created if missing, its parent is not.
    public var stateDirectory: String
    /// Destinations in the order of the configuration. Others in the database are orphans: their events
    /// stay until a command moves or purges them.
    public var destinations: [DestinationName]
    /// The storage cap in bytes, for frames and rows. Default 10 MiB; at least 24 KiB.
    public var maxSize = 10 << 20
    /// What happens when the cap is reached. Default `wait`: the spool on disk holds the backlog
    /// anyway.
    public var whenFull = WhenFull.wait
    /// Age after which events expire. Default 25 days.
    public var maxAge = Duration.seconds(25 * 86_400)
    /// Maximum age of destinations with a setting of their own.
    public var maxAges: [DestinationName: Duration] = [:]
    /// Maximum age of the events of apps with a setting of their own, beside that of the destination.
    public var appMaxAges: [String: Duration] = [:]
    /// What events are used for, by destination; those without a purpose are missing.
    public var purposes: [DestinationName: [String]] = [:]
    /// Destinations that give up their oldest events if storing would otherwise wait, as long as they
    /// hold more than an equal share of the queued bytes. Default none.
    public var skipping: Set<DestinationName> = []
    /// Whether a commit survives a power cut, or only a crash of the process. Default a power cut.
    public var durability = Durability.powerLoss
    /// Bound of the dead letters in bytes. The oldest ones of the app with the most bytes are purged
    /// first. Default 1 MiB.
    public var deadLettersMaxSize = 1 << 20
    /// Bound of the quarantine in bytes. The oldest lines of the app with the most bytes are purged
    /// first. Default 1 MiB.
    public var quarantineMaxSize = 1 << 20
    /// Most events in a chunk. Determines the page size of a new database (`FileBounds`). Default 50.
    public var batchEvents = 50
    /// Most uncompressed bytes in a chunk. Determines the page size of a new database. Default 1 MiB.
    public var batchBytes = 1 << 20
    /// Number of the oldest waiting chunks that are read for a lane's earliest event time. Default 1,
    /// because events arrive roughly in the order of their times. Deadlines by event time need more;
    /// each chunk costs 0.1 µs a batch.
    public var eventTimeLookahead = 1
    /// The program that opens the queue. Default the agent.
    public var opener = Opener.agent
    /// Name of the SQLite VFS; nil means the system's. Tests pass one that cuts power.
    public var vfs: String?

    package init(stateDirectory: String, destinations: [DestinationName]) {
        self.stateDirectory = stateDirectory
        self.destinations = destinations
    }
}
