public import EventLoops

/// The name of a destination, as in the configuration, metrics and the database. A type of its own, so
/// that it is not confused with other texts.
public struct DestinationName: Sendable, Hashable, Comparable, CustomStringConvertible,
    ExpressibleByStringLiteral
{
    package let text: String

    package init(_ text: String) { self.text = text }

    /// A destination's name as a literal.
    public init(stringLiteral text: String) { self.text = text }

    /// The name's text.
    public var description: String { text }

    /// Alphabetical order.
    public static func < (left: DestinationName, right: DestinationName) -> Bool { left.text < right.text }
}

/// A batch's identity: the `Idempotency-Key` of every attempt to send it, across retries, restarts and
/// crashes, so that a receiver can recognise a repetition.
public typealias BatchID = UUIDv7

/// What is known about a batch without reading its events.
public struct BatchHeader: Sendable, Hashable {
    /// Drawn when the batch was formed. Never derived from a row or a machine: a restored database
    /// would repeat it for other events.
    public let id: BatchID
    package let destination: DestinationName
    /// Priority of all of its events.
    public let priority: Priority
    /// How many events it holds, at least one.
    public let events: Int
    /// Uncompressed size of the lines, line feeds included, in bytes.
    public let bytes: Int
    /// When the oldest of its events was accepted.
    public let acceptedAt: Timestamp
    /// Least event time of its events.
    public let firstEventTime: Timestamp
    /// The app of each event in order, the empty name if unknown. Empty until delivery has asked for
    /// the apps.
    package var apps: [String] = []

    package init(
        id: BatchID, destination: DestinationName, priority: Priority, events: Int, bytes: Int,
        acceptedAt: Timestamp, firstEventTime: Timestamp
    ) {
        self.id = id
        self.destination = destination
        self.priority = priority
        self.events = events
        self.bytes = bytes
        self.acceptedAt = acceptedAt
        self.firstEventTime = firstEventTime
    }
}

/// A leased batch with its events, in order.
public struct Batch: Sendable {
    /// A run of events of one stored frame.
    public struct Part: Sendable {
        package let compression: Compression
        /// The stored frame. If it is uncompressed, it is lines that each end with a line feed.
        public let frame: [UInt8]
        /// Uncompressed size of the whole frame in bytes.
        public let bytes: Int
        package let eventsInFrame: Int
        /// The events of the frame that belong to the batch. Split batches share a frame.
        package let events: Range<Int>

        package init(
            compression: Compression, frame: [UInt8], bytes: Int, eventsInFrame: Int, events: Range<Int>
        ) {
            self.compression = compression
            self.frame = frame
            self.bytes = bytes
            self.eventsInFrame = eventsInFrame
            self.events = events
        }

        /// Whether all events of the frame belong to the batch, so that the frame can be sent as it is
        /// stored.
        public var isWhole: Bool { events == 0..<eventsInFrame }
    }

    /// What is known about the batch without reading its events.
    public package(set) var header: BatchHeader
    /// The batch's events, in order.
    public let parts: [Part]
    /// Whether the batch may have been attempted before, by this process or an earlier one, perhaps
    /// with other settings. Such a batch must be sent unchanged.
    package var mayHaveBeenSent: Bool
    /// Multiple of `request_timeout` that this attempt may take: more than 1 for a batch that timed out
    /// while others did not.
    package var timeFactor = 1
    /// Whether the time of day is trusted. Otherwise ages are meaningless and must not be acted on.
    package var isClockTrusted = true

    package init(header: BatchHeader, parts: [Part], mayHaveBeenSent: Bool = false) {
        self.header = header
        self.parts = parts
        self.mayHaveBeenSent = mayHaveBeenSent
    }
}
