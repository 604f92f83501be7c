/// Waiting events that were taken out because of their app.
public struct SiftedEvents: Sendable, Equatable {
    /// Deliveries that were counted as discarded: they must not be sent.
    public internal(set) var withheld = 0
    /// Deliveries that were counted as expired.
    var expired = 0
    /// Deliveries that must leave, but whose requests had begun before: they may arrive.
    public internal(set) var inFlight = 0
    /// Chunks with requests that had begun before, so that events or their text could not be taken out.
    var chunksInFlight: Set<Int64> = []

    /// Nothing was taken out.
    public init() {}

    /// Adds the counts of another part of the same search.
    mutating func add(_ other: SiftedEvents) {
        withheld += other.withheld
        expired += other.expired
        inFlight += other.inFlight
        chunksInFlight.formUnion(other.chunksInFlight)
    }
}
