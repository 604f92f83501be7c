/// Stores that a person can look into.
public enum RecordStore: String, Sendable, CaseIterable {
    case queue
    /// What destinations rejected.
    case deadLetters = "dead-letters"
    /// What could not be read as an event.
    case quarantine
}

/// A filter for records; nil means all.
public struct RecordSelection: Sendable, Equatable {
    /// Only of this destination (queue, dead letters).
    public var destination: DestinationName?
    /// Only of this priority (queue, dead letters).
    public var priority: Priority?
    /// Only of this app (quarantine).
    public var app: String?
    /// Only of this kind of failure (dead letters) or for this reason (quarantine).
    public var reason: String?
    /// Only these: numbers; in the queue `destination/chunk.first` as listed, or a batch's id.
    public var ids: [String]?
    /// Not the records, but the bad lines of files that stay because of them (quarantine); the queue knows nothing of those.
    public var isOfFiles = false

    /// All records.
    public init() {}
}
