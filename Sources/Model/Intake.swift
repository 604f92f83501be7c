public import EventLoops

/// Events on their way into the queue: of one priority, for the same destinations, in order.
public struct NewChunk: Sendable {
    package var priority: Priority
    /// Their destinations; fixed from here on. Not empty.
    public var destinations: [DestinationName]
    /// How many events it holds, at least one.
    public var events: Int
    /// The uncompressed size in bytes: the lines, each with its line feed.
    public var bytes: Int
    /// The least and the greatest event time.
    public var eventTimes: ClosedRange<Timestamp>
    /// When the first of its events was accepted.
    public var acceptedAt: Timestamp
    /// How `frame` is packed: `none` for a chunk closed early.
    public var compression: Compression
    /// The lines, packed. Uncompressed, each ends with a line feed.
    public var frame: [UInt8]
    /// Whether the chunk is as large as a batch may be: it is then sent as it is stored.
    public var isFull: Bool
    /// Destinations whose batches have another size: for them even a full chunk is joined with others, or cut.
    public var otherBatches: [DestinationName]
    /// The deadlines that concern its events because of their app; nil: none besides those that concern all.
    public var deadlines: DeadlineNames?
    /// Where its events were read, in order: whose they are, and for the quarantine. Empty where nobody knows.
    public var origins: [EventOrigin] = []

    package init(
        priority: Priority, destinations: [DestinationName], events: Int, bytes: Int,
        eventTimes: ClosedRange<Timestamp>, acceptedAt: Timestamp, compression: Compression, frame: [UInt8],
        isFull: Bool, otherBatches: [DestinationName] = [], deadlines: DeadlineNames? = nil
    ) {
        (self.priority, self.destinations, self.events) = (priority, destinations, events)
        (self.bytes, self.eventTimes, self.acceptedAt) = (bytes, eventTimes, acceptedAt)
        (self.compression, self.frame, self.isFull) = (compression, frame, isFull)
        (self.otherBatches, self.deadlines) = (otherBatches, deadlines)
    }
}

/// Where neighbouring events of a chunk were read.
public struct EventOrigin: Sendable, Equatable {
    package var app: String
    /// The file, relative to the spool; for people.
    public var path: String
    /// Where in the file each of them began, in bytes.
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

/// How far a file of the spool has been read: durable in the same transaction as its events.
public struct Checkpoint: Sendable, Equatable {
    /// The file's identity: its handle (inode with generation). Opaque to the queue.
    public var key: [UInt8]
    /// Where the file was last seen, relative to the spool; for people.
    public var path: String
    /// All bytes before it are in the queue, refused or quarantined.
    public var offset: Int64
    /// What the spool needs to know the file again (fingerprint, marks). Opaque to the queue.
    public var state: [UInt8]

    package init(key: [UInt8], path: String, offset: Int64, state: [UInt8]) {
        self.key = key
        self.path = path
        self.offset = offset
        self.state = state
    }
}

/// A drop file whose events are all in the queue and whose unlink is not durable yet.
public struct DoneRecord: Sendable, Equatable {
    /// The name it was claimed under, relative to the spool, as bytes.
    public var claim: [UInt8]
    /// The file's handle: inode with generation; its content does not count, since contents may repeat.
    public var handle: [UInt8]

    package init(claim: [UInt8], handle: [UInt8]) {
        self.claim = claim
        self.handle = handle
    }
}

/// What a pass over the spool has read: durable in the same transaction as the events it read.
public struct SpoolProgress: Sendable, Equatable {
    package var checkpoints: [Checkpoint] = []
    /// Keys of files that are gone for good.
    public var forgotten: [[UInt8]] = []
    /// Drop files that this commit covers wholly.
    public var done: [DoneRecord] = []
    /// Claims whose unlink is durable: their records go.
    public var unlinked: [DoneRecord] = []

    package init() {}
}

/// A line or a file that could not be read as an event: kept whole if it is small enough, and never silently discarded.
public struct QuarantineRecord: Sendable, Equatable {
    /// Why; closed, because it is a metric label.
    public enum Reason: String, Sendable, CaseIterable {
        /// Not JSON, by RFC 8259.
        case notJSON = "not_json"
        case notUTF8 = "not_utf8"
        case notAnObject = "not_an_object"
        /// No `name`: version 0.1 put these aside, which are records now.
        case noName = "no_name"
        /// Longer than `spool.max_event_size`.
        case tooLong = "too_long"
        case tooDeep = "too_deep"
        /// The event's time is more than three days ahead.
        case timeAhead = "time_ahead"
        /// Larger than the whole queue may be.
        case neverFits = "never_fits"
        /// Containers' tags made it larger than an event may be; kept as they left it.
        case madeTooLarge = "made_too_large"
        /// Text that may hold what containers hide in members; kept as its shape.
        case unredactable
        case cutShort = "cut_short"
        case badArchive = "bad_archive"
        /// A limit whose consequence is `quarantine`.
        case limit
        /// Refused by a limit whose consequence is `refuse`, or by a full queue; kept here, counted as refused.
        case refused
        /// One that only a newer version of Spoolship knows: it was installed before.
        case unknown
    }

    package var reason: Reason
    /// What exactly, for a person: `expected a value at byte 17`. Never the content.
    public var detail: String
    package var app: String
    /// The file, relative to the spool; for people.
    public var path: String
    /// Where in the (uncompressed) file it begins, in bytes.
    public var offset: Int64
    /// How long it is in the file, in bytes.
    public var length: Int64
    /// Its bytes: all of them, or the first 4 KiB of what was too long.
    public var content: [UInt8]
    /// When it was put here.
    public var time: Timestamp
    /// Names its file, while that is ours to remove: it stays as long as the quarantine cannot hold this. Empty otherwise; not kept.
    public var file: [UInt8]

    package init(
        reason: Reason, detail: String, app: String, path: String, offset: Int64, length: Int64, content: [UInt8],
        time: Timestamp, file: [UInt8] = []
    ) {
        (self.reason, self.detail, self.app, self.path, self.offset) = (reason, detail, app, path, offset)
        (self.length, self.content, self.time, self.file) = (length, content, time, file)
    }
}

/// Everything that one pass over the spool makes durable, all or nothing (invariant 1: exact hand-over).
public struct Commit: Sendable {
    /// The events, in their order within each priority.
    public var chunks: [NewChunk] = []
    package var progress = SpoolProgress()
    package var quarantined: [QuarantineRecord] = []
    /// Quarantined lines, by number, read again for this commit: they leave the quarantine; results count in `read`.
    public var requeued: [Int64] = []
    /// Events read in all: accepted + refused + quarantined.
    public var read = 0
    /// Events that a limit refused.
    public var refused = 0
    /// Events accepted and at once discarded or expired, by destination set and priority.
    public var notStored: [NotStored] = []
    /// What the pass remembers beyond a restart (sessions, counters of limits), by name; nil removes.
    public var memory: [String: [UInt8]?] = [:]

    package init() {}
}

/// Events that count as accepted and, in the same transaction, as discarded or expired.
public struct NotStored: Sendable, Equatable {
    /// What happened to them.
    public enum Fate: Sendable, Equatable {
        /// Older than `queue.max_age` when they were read.
        case expired
        /// A rule, disabled collection or the lack of a destination said so; the reason is a metric label.
        case discarded(reason: String)
    }

    package var priority: Priority
    /// The destinations that would have got them.
    public var destinations: [DestinationName]
    package var fate: Fate
    package var events: Int

    package init(priority: Priority, destinations: [DestinationName], fate: Fate, events: Int) {
        self.priority = priority
        self.destinations = destinations
        self.fate = fate
        self.events = events
    }
}
