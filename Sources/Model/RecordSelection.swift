/// A store that a person can look into.
public enum RecordStore: String, Sendable, CaseIterable {
    case queue
    /// Events that destinations rejected.
    case deadLetters = "dead-letters"
    /// Lines and files that could not be read as events.
    case quarantine
}

/// A filter for records; nil means no restriction.
public struct RecordSelection: Sendable, Equatable {
    /// Only of this destination (queue, dead letters).
    public var destination: DestinationName?
    /// Only of this priority (queue, dead letters).
    public var priority: Priority?
    /// Only of this app (dead letters, quarantine).
    public var app: String?
    /// Only of this kind of failure (dead letters) or for this reason (quarantine).
    public var reason: String?
    /// Only records with these ids. Ids are numbers; in the queue `destination/chunk.first` as listed, or a
    /// batch's id.
    public var ids: [String]?
    /// Selects bad lines that are still in files, because the quarantine could not hold them, rather
    /// than records (quarantine only). The queue does not handle them.
    public var isOfFiles = false

    /// All records.
    public init() {}
}
