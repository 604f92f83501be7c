public import Model

/// The condition of an erasure: which stored events and texts to remove.
public struct ErasureSearch: Sendable {
    /// Returns true if a stored event must be removed. The line is one JSON object, with or without
    /// its line feed; `app` is the app it came from, or empty if that is unknown.
    public typealias Judge = (_ line: UnsafeRawBufferPointer, _ app: String) -> Bool

    /// Makes the judge on the store's loop: a judge may keep state that is not `Sendable`.
    let makeJudge: @Sendable () -> Judge
    /// Returns true if a text that is not an event (a destination's answer, a damaged line) mentions
    /// what is to be removed.
    let isMentioned: @Sendable (_ text: [UInt8]) -> Bool

    /// - Parameters:
    ///   - makeJudge: makes a judge of events, used on the store's loop only.
    ///   - isMentioned: whether a text that is not an event mentions what is to be removed.
    public init(
        makeJudge: @escaping @Sendable () -> Judge, isMentioned: @escaping @Sendable (_ text: [UInt8]) -> Bool
    ) {
        self.makeJudge = makeJudge
        self.isMentioned = isMentioned
    }
}

/// What an erasure removed, or would remove in a trial, counted by the place where it was stored.
public struct ErasedRecords: Sendable, Equatable {
    /// Events removed from the queue; an event that waits for two destinations counts once.
    public var events = 0
    /// Deliveries removed from the queue, by destination; the ledger counts them as discarded with the
    /// reason `erased`.
    public var deliveries: [DestinationName: Int] = [:]
    /// Number of batches that may have been sent before. Their other events are sent again in new batches, so
    /// receivers may get those twice.
    public var dissolvedBatches: Int { dissolved.count }
    /// Events that are being sent at the moment and therefore could not be removed.
    public var eventsInFlight = 0
    /// Chunks that could not be read. Their events are counted as lost when they are due to be sent.
    public var damagedChunks = 0
    /// Dead letters removed.
    public var deadLetters = 0
    /// Dead letters that were kept, but without the destination's answer, because the answer mentioned
    /// what was to be removed.
    public var answers = 0
    /// Quarantined lines removed.
    public var quarantined = 0
    /// Stored data layers removed.
    public var dataLayers = 0
    /// Stored sessions removed, by producer.
    public var sessions = 0

    /// Ids of the batches that `dissolvedBatches` counts. A trial finds the same batch in each of its chunks.
    var dissolved: Set<BatchID> = []
    /// Chunks that were skipped because a batch with some of their events is in flight; `erase` retries
    /// them.
    var chunksInFlight: [Int64] = []

    /// Nothing removed.
    public init() {}

    /// Deliveries removed, of all destinations together.
    public var allDeliveries: Int { deliveries.values.reduce(0, +) }

    /// Returns the skipped chunks and resets their counts, because the retry counts them again.
    mutating func takeInFlight() -> [Int64] {
        defer {
            chunksInFlight = []
            eventsInFlight = 0
        }
        return chunksInFlight
    }

    /// Adds the counts of another part of the same erasure.
    mutating func add(_ other: ErasedRecords) {
        events += other.events
        deliveries.merge(other.deliveries, uniquingKeysWith: +)
        dissolved.formUnion(other.dissolved)
        eventsInFlight += other.eventsInFlight
        damagedChunks += other.damagedChunks
        deadLetters += other.deadLetters
        answers += other.answers
        quarantined += other.quarantined
        dataLayers += other.dataLayers
        sessions += other.sessions
        chunksInFlight += other.chunksInFlight
    }
}
