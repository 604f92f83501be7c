public import Model

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
    package var record: QuarantineRecord
}
