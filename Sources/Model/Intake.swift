public import EventLoops

/// Events on their way into the queue: of one priority, for the same destinations, in order.
public struct NewChunk: Sendable {
    package var priority: Priority
    /// The destinations of the chunk's events; fixed from here on. Not empty.
    public var destinations: [DestinationName]
    /// How many events it holds, at least one.
    public var events: Int
    /// The uncompressed size in bytes: the lines, each with its line feed.
    public var bytes: Int
    /// Least and greatest event time.
    public var eventTimes: ClosedRange<Timestamp>
    /// When the first of its events was accepted.
    public var acceptedAt: Timestamp
    /// How `frame` is packed; `none` for a chunk that was closed early.
    public var compression: Compression
    /// The lines, packed; each ends with a line feed.
    public var frame: [UInt8]
    /// Whether the chunk is as large as a batch may be. It is then sent as it is stored.
    public var isFull: Bool
    /// Destinations with batches of another size: for them even a full chunk is joined with others or
    /// split.
    public var otherBatches: [DestinationName]
    /// Deadlines that concern the events because of their app; nil if only general deadlines do.
    public var deadlines: DeadlineNames?
    /// Where the events were read, in order: decides who they belong to, and is recorded in the
    /// quarantine. Empty if unknown.
    public var origins: [EventOrigin] = []

    package init(
        priority: Priority, destinations: [DestinationName], events: Int, bytes: Int,
        eventTimes: ClosedRange<Timestamp>, acceptedAt: Timestamp, compression: Compression, frame: [UInt8],
        isFull: Bool, otherBatches: [DestinationName] = [], deadlines: DeadlineNames? = nil
    ) {
        self.priority = priority
        self.destinations = destinations
        self.events = events
        self.bytes = bytes
        self.eventTimes = eventTimes
        self.acceptedAt = acceptedAt
        self.compression = compression
        self.frame = frame
        self.isFull = isFull
        self.otherBatches = otherBatches
        self.deadlines = deadlines
    }
}

/// Where neighbouring events of a chunk were read.
public struct EventOrigin: Sendable, Equatable {
    package var app: String
    /// The file, relative to the spool; for people.
    public var path: String
    /// Offset of each event in the file.
    public var offsets: [Int64]
    /// The size of their lines in the chunk, line feeds included.
    public var bytes: Int

    package init(app: String, path: String, offsets: [Int64] = [], bytes: Int = 0) {
        self.app = app
        self.path = path
        self.offsets = offsets
        self.bytes = bytes
    }
}

/// How far a file of the spool has been read; durable in the same transaction as its events.
public struct Checkpoint: Sendable, Equatable {
    /// The file's identity: its handle (inode and generation). Opaque to the queue.
    public var key: [UInt8]
    /// Where the file was last seen, relative to the spool. The queue keeps only `shownPath` of it, which is
    /// for people and identifies nothing.
    public var path: String
    /// All bytes before it are in the queue, refused or quarantined.
    public var offset: Int64
    /// What the spool needs to recognise the file (fingerprint, marks). Opaque to the queue.
    public var state: [UInt8]

    package init(key: [UInt8], path: String, offset: Int64, state: [UInt8]) {
        self.key = key
        self.path = path
        self.offset = offset
        self.state = state
    }
}

extension Checkpoint {
    /// Longest path in bytes that `shownPath` shows completely. Paths are chosen by users and stored
    /// for each file.
    package static let longestShownPath = 512

    /// The path as it is stored for people: only both ends of a very long path.
    package var shownPath: String {
        let bytes = Array(path.utf8)
        guard bytes.count > Checkpoint.longestShownPath else { return path }
        // A cut within a character leaves bytes that decode to U+FFFD, three bytes each; 16 leaves room
        // for them.
        let end = Checkpoint.longestShownPath / 2 - 16
        return String(decoding: bytes.prefix(end), as: UTF8.self) + "…"
            + String(decoding: bytes.suffix(end), as: UTF8.self)
    }
}

/// A drop file whose events are all in the queue and whose unlink is not durable yet. Without the
/// record a crash would let the file be read again.
public struct DoneRecord: Sendable, Equatable {
    /// The name under which it was claimed, relative to the spool, as bytes.
    public var claim: [UInt8]
    /// The file's handle: inode and generation. Its content does not identify it, because contents may
    /// repeat.
    public var handle: [UInt8]

    package init(claim: [UInt8], handle: [UInt8]) {
        self.claim = claim
        self.handle = handle
    }
}

/// How far a pass over the spool has read; durable in the same transaction as its events.
public struct SpoolProgress: Sendable, Equatable {
    package var checkpoints: [Checkpoint] = []
    /// Keys of files that are gone for good; their checkpoints are deleted.
    public var forgotten: [[UInt8]] = []
    /// Drop files whose events are all stored with this commit.
    public var done: [DoneRecord] = []
    /// Claims whose unlink is durable; their records are deleted.
    public var unlinked: [DoneRecord] = []
    /// Other state that the reader remembers, by name.
    package var memory: [String: [UInt8]] = [:]

    package init() {}
}

/// A line or a file that could not be read as an event. Kept completely if it is small enough, and
/// never discarded silently.
public struct QuarantineRecord: Sendable, Equatable {
    /// Why. Closed, because it is a metric label.
    public enum Reason: String, Sendable, CaseIterable {
        /// Not JSON by RFC 8259.
        case notJSON = "not_json"
        case notUTF8 = "not_utf8"
        case notAnObject = "not_an_object"
        /// No `name`: version 0.1 quarantined such objects, which are records today.
        case noName = "no_name"
        /// Longer than `spool.max_event_size`.
        case tooLong = "too_long"
        /// Nested more deeply than the scanner reads.
        case tooDeep = "too_deep"
        /// The event's time is more than three days in the future.
        case timeAhead = "time_ahead"
        /// Larger than the whole queue may be.
        case neverFits = "never_fits"
        /// Rules of containers made it larger than an event may be; kept as they left it.
        case madeTooLarge = "made_too_large"
        /// Text that may contain what containers hide in members; only its shape is kept.
        case unredactable
        /// The line or the archive ended too early.
        case cutShort = "cut_short"
        /// A compressed file that is damaged.
        case badArchive = "bad_archive"
        /// A limit whose consequence is `quarantine`.
        case limit
        /// The schema of its name does not allow the event.
        case schema
        /// Refused by a limit with consequence `refuse`, or by a full queue. Kept here and counted as
        /// refused.
        case refused
        /// A reason that only a newer version of Spoolship knows, which ran here before.
        case unknown
    }

    package var reason: Reason
    /// The exact problem, for a person: `expected a value at byte 17`. Never the content.
    public var detail: String
    package var app: String
    /// The file, relative to the spool; for people.
    public var path: String
    /// Offset in the (uncompressed) file.
    public var offset: Int64
    /// Length in the file, in bytes.
    public var length: Int64
    /// The line's bytes: all of them, or the first 4 KiB of a line that was too long.
    public var content: [UInt8]
    /// Time at which the line was put in the quarantine.
    public var time: Timestamp
    /// Handle of its file if the spool owns the file, which must stay as long as the quarantine cannot
    /// hold this line. Empty otherwise; not stored.
    public var file: [UInt8]

    package init(
        reason: Reason, detail: String, app: String, path: String, offset: Int64, length: Int64,
        content: [UInt8],
        time: Timestamp, file: [UInt8] = []
    ) {
        self.reason = reason
        self.detail = detail
        self.app = app
        self.path = path
        self.offset = offset
        self.length = length
        self.content = content
        self.time = time
        self.file = file
    }
}

/// Everything that one pass over the spool makes durable, all or nothing: the exact hand-over of
/// docs/ARCHITECTURE.md.
public struct Commit: Sendable {
    /// The events, in order within each priority.
    public var chunks: [NewChunk] = []
    package var progress = SpoolProgress()
    package var quarantined: [QuarantineRecord] = []
    /// Numbers of quarantined lines that this commit has read again: they leave the quarantine, and
    /// their results count in `read`.
    public var requeued: [Int64] = []
    /// Events read: accepted, refused and quarantined ones.
    public var read = 0
    /// Events refused by a limit.
    public var refused = 0
    /// Events that were accepted and immediately discarded or expired, by destinations and priority.
    public var notStored: [NotStored] = []
    /// What passes remember beyond a restart (sessions, counters of limits), by name; nil removes an
    /// entry.
    public var memory: [String: [UInt8]?] = [:]

    package init() {}
}

/// Events that count as accepted and, in the same transaction, as discarded or expired.
public struct NotStored: Sendable, Equatable {
    /// Why the events were not stored.
    public enum Fate: Sendable, Equatable {
        /// The events were older than `queue.max_age` when they were read.
        case expired
        /// A rule, disabled collection or the lack of a destination discarded them; the reason is a
        /// metric label.
        case discarded(reason: String)
    }

    /// The reason under which the ledger counts events that consent keeps from a destination.
    public static let withheldReason = "withheld"

    package var priority: Priority
    /// Destinations that would have received them.
    public var destinations: [DestinationName]
    package var fate: Fate
    package var events: Int
    /// Whether other destinations get these events: then they count as accepted with their chunk, and not
    /// here a second time.
    package var isStoredForOthers = false

    package init(priority: Priority, destinations: [DestinationName], fate: Fate, events: Int) {
        self.priority = priority
        self.destinations = destinations
        self.fate = fate
        self.events = events
    }
}
