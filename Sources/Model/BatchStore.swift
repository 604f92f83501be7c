public import EventLoops

/// What delivery asks of the queue.
///
/// Each call is durable when it returns, unless it says otherwise, and its changes are in the published
/// summaries by then.
public protocol BatchStore: Sendable {
    /// Leases up to `count` batches of a lane: first free ones, as `request.free` and `request.except` say,
    /// then new ones formed from waiting events.
    func leaseNext(_ request: LeaseRequest, count: Int) async -> LeasedBatches

    /// Leases a batch again that was given back. No batch if it is gone, or waits for another destination
    /// now.
    func leaseAgain(_ id: BatchID, for destination: DestinationName) async -> LeasedBatches

    /// Gives a lease back: the batch stays unchanged and can be leased again. Leases are only in
    /// memory.
    func release(_ id: BatchID) async

    /// The app of each event of a leased batch, in order; the empty name if unknown. An empty list if
    /// they cannot be read.
    func apps(of batch: BatchID) async -> [String]

    /// Ends a batch with the fate of each of its events, in one transaction.
    ///
    /// A settlement that only acknowledges may become durable up to 250 ms after the call returns.
    /// - Returns: the free batches made for the parts that go `again`, in the order of their groups.
    func settle(_ settlement: Settlement) async throws -> [BatchHeader]

    /// Ends leased batches that the destination has acknowledged completely, as `settle` does for one.
    func acknowledge(_ batches: [BatchID]) async throws

    /// Returns when everything settled and acknowledged before is durable.
    func flush() async throws
}

/// The answer to a request for batches.
public struct LeasedBatches: Sendable {
    package var batches: [Batch] = []
    /// Why there are not more batches; nil if there is nothing more to lease.
    public var failure: (any Error)?
    /// The lane after these leases. Published summaries may be older or newer than the answer; the revision
    /// tells. Nil if the queue could not look.
    public var lane: LaneSummary?

    package init() {}
}

/// Which batches are wanted, and how large they may be.
public struct LeaseRequest: Sendable, Equatable {
    package var destination: DestinationName
    package var priority: Priority
    package var maxEvents: Int
    /// Most uncompressed bytes in a batch. A single event may exceed it, or it could never be sent.
    public var maxBytes: Int
    /// Events with an earlier event time are urgent because of a deadline and go first; nil if there is
    /// no deadline.
    public var urgentBefore: Timestamp?
    /// Name of the deadline; only events whose app it concerns are urgent. Nil: events of all apps.
    public var urgentFor: String?
    /// Apps whose events are not wanted. A chunk qualifies if it has an event of another known app.
    public var notOf: Set<String> = []
    /// Whether no event may be sent before an older one. Otherwise small chunks are joined past full
    /// chunks between them.
    public var inOrder = false
    /// Whether the newest waiting events are wanted rather than the oldest.
    public var isNewest = false
    /// Free batches to leave alone: the caller tracks their retries and leases each by its id.
    public var except: Set<BatchID> = []
    /// Which of the other free batches come before new ones. After a restart the newest free batches
    /// are those that were in flight.
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

/// The fates of a batch's events.
public struct Settlement: Sendable, Equatable {
    /// What happens to a run of events.
    public enum Disposition: Sendable, Equatable {
        /// The destination has the events.
        case acknowledged
        /// The destination rejected the events permanently.
        case deadLetter(Failure)
        /// The events are sent again in a new batch; parts with the same group share one.
        case again(group: Int)
    }

    /// A run of events and its fate.
    public struct Part: Sendable, Equatable {
        /// Indexes in the batch, from 0.
        public var events: Range<Int>
        package var disposition: Disposition

        package init(_ events: Range<Int>, _ disposition: Disposition) {
            self.events = events
            self.disposition = disposition
        }
    }

    package var batch: BatchID
    /// All events of the batch, each in one part, in order.
    public var parts: [Part]

    package init(batch: BatchID, parts: [Part]) {
        self.batch = batch
        self.parts = parts
    }

    /// The settlement of a batch that the destination has completely.
    public static func acknowledged(_ header: BatchHeader) -> Settlement {
        Settlement(batch: header.id, parts: [Part(0..<header.events, .acknowledged)])
    }

    /// Whether the destination has all events.
    public var isAcknowledgement: Bool { parts.allSatisfy { $0.disposition == .acknowledged } }
}

/// What waits in one lane; published by the queue after each change, so that delivery decides without
/// asking.
public struct LaneSummary: Sendable, Equatable {
    /// Events that are in no batch yet.
    package var waitingEvents = 0
    package var waitingBytes = 0
    /// When the oldest waiting event was accepted; nil if nothing waits.
    public var oldestAcceptedAt: Timestamp?
    /// Least event time of the waiting events, which deadlines use; nil if nothing waits.
    public var earliestEventTime: Timestamp?
    /// Least event time for each set of deadlines that apply to some apps only; empty if no deadline names
    /// apps.
    public var earliestByDeadlines: [DeadlineNames: Timestamp] = [:]
    /// Batches that can be leased by their id.
    package var freeBatches = 0
    /// Events in all batches, leased or not.
    public var batchedEvents = 0
    /// Number of changes of the lane since the queue was opened; never decreases.
    ///
    /// Published summaries and answers to leases can overtake each other: the one with the higher number is
    /// newer.
    public var revision = 0
    /// Events that commands removed since the queue was opened. After a change, batches that were given
    /// back may be gone or belong to another destination.
    public var withdrawn = 0

    package init() {}
}

/// Sends batches to one destination; each folder of `Outputs` provides one.
public protocol BatchSender: Sendable {
    /// Makes one attempt. It ends within the destination's timeouts; over the network it also ends at
    /// once if its task is cancelled.
    func send(_ batch: Batch) async -> Outcome

    /// Whether the output authenticates with files that may change while it runs: tokens, keys, certificates.
    var followsFiles: Bool { get }

    /// Reads those files again if they have changed; returns whether the next attempt will use
    /// something new.
    func hasNewCredentials() async -> Bool

    /// Drops credentials that a service issued, because a person says that their refusal has been
    /// repaired: the next attempt asks the service for others.
    func dropIssuedCredentials() async
}

extension BatchSender {
    /// By default there are no such files.
    public var followsFiles: Bool { false }

    /// By default nothing can change.
    public func hasNewCredentials() async -> Bool { false }

    /// By default no service issues any.
    public func dropIssuedCredentials() async {}
}
