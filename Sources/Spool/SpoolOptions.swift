public import Model

/// What the spool starts from: the state kept in the queue.
public struct SpoolStart: Sendable {
    /// How far each file had been read.
    public var checkpoints: [Checkpoint]
    /// Drop files that were queued whole, and whose removal may not have been durable.
    public var done: [DoneRecord]
    /// Other memory of readers; entries of others are left alone.
    public var memory: [String: [UInt8]]

    /// Makes the start of the kept checkpoints and memory; nothing by default.
    public init(checkpoints: [Checkpoint] = [], done: [DoneRecord] = [], memory: [String: [UInt8]] = [:]) {
        self.checkpoints = checkpoints
        self.done = done
        self.memory = memory
    }
}

/// How the spool is read.
public struct SpoolOptions: Sendable, Equatable {
    /// What happens to a file all of whose events are queued.
    public enum AfterRead: Sendable, Equatable {
        /// The file is removed.
        case delete
        /// The file stays where it is, with a checkpoint that says that it was read.
        case keep
        /// The file is moved into a folder of the day (UTC) below `directory`.
        ///
        /// - Parameters:
        ///   - directory: relative to the spool, or absolute and on the same file system.
        ///   - retention: folders older than that are removed; nil: never.
        ///   - mostBytes: beyond it the oldest files are removed; nil: no bound.
        case archive(directory: String, retention: Duration?, mostBytes: Int64? = nil)
    }

    /// The spool: an absolute path.
    public var directory: String
    /// The place that is read in place; nil for a spool, whose files the reader may remove.
    public var place: ReadPlace?
    /// What is read of files of the place that are there when their pattern is seen for the first time.
    public var since = ReadStart.beginning
    /// The agent's own directories, which no place may reach into.
    public var own: [String] = []
    /// All places, none of which may meet another, and what each is where its root leads.
    public var places: [ReadPlace: ReadPlace] = [:]
    /// Apps whose events come from files in place or from a journal. A user of the same name cannot write
    /// events of these apps through `incoming/`.
    public var appsElsewhere: Set<String> = []
    /// The format that wraps lines of append files; nil, the default, if each line is a record.
    public var format: LineWrapper?
    /// Whether lines of text that follow each other are handed over together (`TextHandling.blocks`). Default
    /// false.
    public var joinsText = false
    /// The encoding of files of the place; nil, the default, for UTF-8. A byte order mark of UTF-16 is
    /// recognised without it.
    public var encoding: FileEncoding?
    /// How a record of several lines begins; nil, the default, if each line is a record.
    public var recordStart: RecordStart?
    /// What to do with a file once all its events are queued. Default `delete`.
    public var afterRead = AfterRead.delete
    /// The longest line in bytes, its LF not counted; longer ones are quarantined. Default 1 MB.
    public var maxEventSize = 1_000_000
    /// How many files are held open at most, besides deleted ones that are not read to the end. Default 256.
    public var maxOpenFiles = 256
    /// How often directories are looked at that cannot be watched. Default 1 s.
    public var pollInterval = Duration.seconds(1)
    /// Interval of checks where the path of a place leads: no event reports that a link above it or a parent
    /// was replaced.
    var pathInterval = Duration.seconds(10)
    /// Whether changes are watched for, except on NFS, CIFS, FUSE and the like; else directories are polled.
    /// Default true.
    public var isWatching = true
    /// How many bytes are taken, at the least, before a commit is due. Default 2 MiB.
    public var commitBytes = 2 << 20
    /// The shortest time between commits that are not due by their size: a lone line goes at once, a drip in
    /// groups. Default 5 ms.
    public var linger = Duration.milliseconds(5)
    /// The same time while the sink holds nothing urgent (`SpoolSink.isUrgent`); a drip is still read every
    /// `linger`. Nil (default): `linger`.
    public var patience: Duration?
    /// How long a drop file written in place must be unchanged to count as complete. Default 1 s.
    public var settleTime = Duration.seconds(1)
    /// How long after it was found to end too early a drop file is tried once more. Default 5 s.
    public var secondTry = Duration.seconds(5)
    /// How long an append file must be unchanged until a block of text is whole. Default 0.5 s.
    public var textTime = Duration.milliseconds(500)
    /// How long an append file must be unchanged, without a writer, until a last line without LF is whole.
    /// Default 10 s.
    public var sealTime = Duration.seconds(10)
    /// How long an append file must be unchanged, without a writer, until it may go; a rotated one after
    /// `settleTime`. Default 60 s.
    public var giveUpTime = Duration.seconds(60)
    /// How long a rotated or deleted file must be unchanged until a last line without LF is whole although no
    /// writer was seen to close it, if the kernel cannot be asked whether a writer has it open. Default 10
    /// minutes.
    public var unclosedTime = Duration.seconds(600)
    /// How long a file that is about to be removed is watched for a writer that comes at the last moment.
    /// Default 1 s.
    public var graceTime = Duration.seconds(1)
    /// How long removed files are gathered before their directories are synced and their records go. Default
    /// 1 s.
    public var syncInterval = Duration.seconds(1)
    /// Shortest time between two looks at the sizes of waiting files while nothing is read. Default 2 s.
    var lookInterval = Duration.seconds(2)
    /// Most waiting drop files of an app. Beyond it their directory is listed again once these are read.
    var mostWaitingDrops = 16_384
    /// Most waiting drop files of all owners, approximately. Beyond it each owner may have an equal part of
    /// this number.
    var mostDropsInAll = 65_536
    /// Most drop files that stay because of their bad lines, approximately. An app or owner with its part of
    /// them waits.
    var mostStayingDrops = 8192
    /// Most known append files, approximately, at 0.8 KB each; four times as many if files stay after
    /// reading.
    var mostAppendFiles = 262_144
    /// Most known directories of an app: each takes a watch, and a kilobyte or more.
    var mostDirectories = 8192

    /// The defaults, for a spool.
    public init(directory: String) { self.directory = directory }
}
