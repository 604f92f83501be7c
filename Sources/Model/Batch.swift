public import EventLoops

/// The name of a destination, as in the configuration, metrics and the database.
public struct DestinationName: Sendable, Hashable, Comparable, CustomStringConvertible, ExpressibleByStringLiteral {
    package let text: String

    package init(_ text: String) { self.text = text }

    /// A destination of that name.
    public init(stringLiteral text: String) { self.text = text }

    /// The name's text.
    public var description: String { text }

    /// Alphabetical order.
    public static func < (left: DestinationName, right: DestinationName) -> Bool { left.text < right.text }
}

/// A batch's identity: the `Idempotency-Key` of every attempt to send it, across retries, restarts and crashes.
public typealias BatchID = UUIDv7

/// What is known of a batch without its events.
public struct BatchHeader: Sendable, Hashable {
    /// Drawn when the batch was formed; never derived from a row or a machine.
    public let id: BatchID
    package let destination: DestinationName
    /// The lane it goes in: all of its events have this priority.
    public let priority: Priority
    /// How many events it holds, at least one.
    public let events: Int
    /// The size of its events as uncompressed lines, their line feeds included, in bytes.
    public let bytes: Int
    /// When the oldest of its events was accepted.
    public let acceptedAt: Timestamp
    /// The least event time in it.
    public let firstEventTime: Timestamp
    /// Whose each of its events is, in their order, the empty name where nobody knows; none while nobody has asked.
    package var apps: [String] = []

    package init(
        id: BatchID, destination: DestinationName, priority: Priority, events: Int, bytes: Int,
        acceptedAt: Timestamp, firstEventTime: Timestamp
    ) {
        (self.id, self.destination, self.priority, self.events) = (id, destination, priority, events)
        (self.bytes, self.acceptedAt, self.firstEventTime) = (bytes, acceptedAt, firstEventTime)
    }
}

/// Events in flight to one destination, in order.
public struct Batch: Sendable {
    /// A run of events of one stored frame.
    public struct Part: Sendable {
        package let compression: Compression
        /// The stored frame: uncompressed, it is lines that each end with a line feed.
        public let frame: [UInt8]
        /// The frame's uncompressed size in bytes.
        public let bytes: Int
        package let eventsInFrame: Int
        package let events: Range<Int>

        package init(compression: Compression, frame: [UInt8], bytes: Int, eventsInFrame: Int, events: Range<Int>) {
            (self.compression, self.frame, self.bytes) = (compression, frame, bytes)
            (self.eventsInFrame, self.events) = (eventsInFrame, events)
        }

        /// Whether all of the frame's events belong to the batch.
        public var isWhole: Bool { events == 0..<eventsInFrame }
    }

    /// What is known of it without its events.
    public package(set) var header: BatchHeader
    /// Where its events are, in their order.
    public let parts: [Part]
    /// Whether it was perhaps attempted before, by this process or an earlier one, perhaps with other settings.
    package var mayHaveBeenSent: Bool
    /// Whether ages tell anything: not while the time of day is perhaps wrong.
    package var isClockTrusted = true

    package init(header: BatchHeader, parts: [Part], mayHaveBeenSent: Bool = false) {
        self.header = header
        self.parts = parts
        self.mayHaveBeenSent = mayHaveBeenSent
    }
}
