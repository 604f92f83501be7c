public import Model

/// What a person can look into.
public enum RecordKind: Sendable, CaseIterable {
    /// What waits.
    case queue
    /// What destinations rejected.
    case deadLetters
    /// What could not be read as an event.
    case quarantine
}

/// Which records are meant; nil means all.
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

    /// All records.
    public init() {}
}

/// A page of records.
public struct RecordPage: Sendable, Equatable {
    /// The records, readable, without their content. Times are members that end in `_ms`.
    public var records: [JSONValue] = []
    /// What to give as `after` for the next page; nil at the end.
    public var next: String?
}

/// A page of an export.
public struct RecordLines: Sendable, Equatable {
    /// Lines, each with its line feed.
    public var lines: [UInt8] = []
    /// What to give as `after` for the next page; nil at the end.
    public var next: String?
}

/// A quarantined line, for reading it again.
public struct StoredQuarantineRecord: Sendable, Equatable {
    /// Its number; to be named in `Commit.requeued` when it has been read.
    public var id: Int64
    /// What was kept.
    public var record: QuarantineRecord
}
