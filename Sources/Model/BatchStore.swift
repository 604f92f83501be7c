public import EventLoops

/// What delivery asks of the queue. Every call is durable when it returns, except where it says otherwise, and what it
/// changed is in the published summaries by then.
public protocol BatchStore: Sendable {
    /// Leases the next batches of a lane, so many, or fewer when there are no more: its free ones that are not in
    /// `request.except` (free since a restart), as `request.free` says, then new ones, formed from what waits.
    func leaseNext(_ request: LeaseRequest, count: Int) async -> LeasedBatches

    /// Leases a batch again that was given back; nil when it is gone, or waits for another destination now.
    func lease(_ id: BatchID, for destination: DestinationName) async throws -> Batch?

    /// Gives a lease back: the batch stays as it is, free for another attempt. Leases live in memory only.
    func release(_ id: BatchID) async

    /// Whose the events of a leased batch are, in their order; the empty name where nobody knows. None when it cannot be read.
    func apps(of batch: BatchID) async -> [String]

    /// Ends a batch: what happened to each of its events, in one transaction.
    ///
    /// A settlement that only acknowledges may become durable up to 100 ms after the call returns (invariant 3).
    /// - Returns: the batches that were made for the parts that go `again`, free, in the order of their groups.
    func settle(_ settlement: Settlement) async throws -> [BatchHeader]

    /// Ends leased batches that their destination has acknowledged as a whole, as `settle` does for one.
    func acknowledge(_ batches: [BatchID]) async throws

    /// Returns once all that was settled and acknowledged before is durable.
    func flush() async throws
}

/// The answer to a request for several batches.
public struct LeasedBatches: Sendable {
    package var batches: [Batch] = []
    /// Why there are not more; nil where there is nothing more to lease.
    public var failure: (any Error)?

    package init() {}
}

/// The batch that is wanted.
public struct LeaseRequest: Sendable, Equatable {
    package var destination: DestinationName
    package var priority: Priority
    package var maxEvents: Int
    /// At most so many uncompressed bytes, one event excepted.
    public var maxBytes: Int
    /// Events that a deadline makes urgent go first, when given: those whose event time is before it.
    public var urgentBefore: Timestamp?
    /// Only events that the deadline of this name concerns because of their app are urgent; nil: those of any app.
    public var urgentFor: String?
    /// Apps of which no events are wanted: stored events of others too, and none of older versions.
    public var notOf: Set<String> = []
    /// Whether nothing may pass an older event. Otherwise small chunks are joined past full ones between them.
    public var inOrder = false
    /// Free batches to leave alone: the caller keeps their waits and asks for each by its id.
    public var except: Set<BatchID> = []
    /// Which of the other free batches comes before new ones; the newest were in flight at a restart.
    public var free = Free.oldest

    /// A choice among free batches.
    public enum Free: Sendable { case oldest, newest, none }

    package init(destination: DestinationName, priority: Priority, maxEvents: Int, maxBytes: Int) {
        self.destination = destination
        self.priority = priority
        self.maxEvents = maxEvents
        self.maxBytes = maxBytes
    }
}

/// What happened to a batch's events.
public struct Settlement: Sendable, Equatable {
    /// What happens to some of them.
    public enum Disposition: Sendable, Equatable {
        /// The destination has them.
        case acknowledged
        /// The destination rejected them for good.
        case deadLetter(Failure)
        /// They go again, in a new batch; parts with the same number share one.
        case again(group: Int)
    }

    /// A run of events and its fate.
    public struct Part: Sendable, Equatable {
        /// Places in the batch, from 0.
        public var events: Range<Int>
        package var disposition: Disposition

        package init(_ events: Range<Int>, _ disposition: Disposition) {
            self.events = events
            self.disposition = disposition
        }
    }

    package var batch: BatchID
    /// All of its events, each in one part, in their order.
    public var parts: [Part]

    package init(batch: BatchID, parts: [Part]) {
        self.batch = batch
        self.parts = parts
    }

    /// All of a batch's events are with their destination.
    public static func acknowledged(_ header: BatchHeader) -> Settlement {
        Settlement(batch: header.id, parts: [Part(0..<header.events, .acknowledged)])
    }

    /// Whether the destination has all of them.
    public var isAcknowledgement: Bool { parts.allSatisfy { $0.disposition == .acknowledged } }
}

/// What waits in one lane of one destination; published by the queue after each change.
public struct LaneSummary: Sendable, Equatable {
    package var waitingEvents = 0
    package var waitingBytes = 0
    /// When the oldest of them was accepted; nil when there are none.
    public var oldestAcceptedAt: Timestamp?
    /// The least event time among them; nil when there are none. Deadlines go by it.
    public var earliestEventTime: Timestamp?
    /// The same for the events that deadlines concern because of their app; empty where no deadline names apps.
    public var earliestByDeadlines: [DeadlineNames: Timestamp] = [:]
    package var freeBatches = 0
    /// The events in all batches, leased or not.
    public var batchedEvents = 0
    /// Events of all leases since the queue was opened, those of a batch that is leased again counted again.
    ///
    /// It tells which leases a summary shows already: summaries and answers of the queue overtake each other.
    public var handedOut = 0
    /// Events that commands took out since the queue was opened: batches that were given back may be gone, or another destination's.
    public var withdrawn = 0

    package init() {}
}

/// Sends batches to one destination: what each folder of `Outputs` provides.
public protocol BatchSender: Sendable {
    /// One attempt. Ends within the destination's timeouts, over the network also at once when its task is cancelled.
    func send(_ batch: Batch) async -> Outcome

    /// Whether it authenticates with files that may change while it runs: tokens, keys, certificates.
    var followsFiles: Bool { get }

    /// Reads those files again if they have changed; whether the next attempt uses something new because of that.
    func hasNewCredentials() async -> Bool
}

extension BatchSender {
    /// By default it has no such files.
    public var followsFiles: Bool { false }

    /// By default there is nothing that could change.
    public func hasNewCredentials() async -> Bool { false }
}
