public import Model

/// A page of a listing.
public struct RecordPage: Sendable, Equatable {
    /// The records as JSON objects without their content. Members with times end in `_ms`.
    public var records: [JSONValue] = []
    /// Value of `after` for the next page; nil on the last page.
    public var next: String?
}

/// A page of an export.
public struct RecordLines: Sendable, Equatable {
    /// Lines, each with its line feed.
    public var lines: [UInt8] = []
    /// Value of `after` for the next page; nil on the last page.
    public var next: String?
}

/// A quarantined line as it is stored, to be shown or read again.
public struct StoredQuarantineRecord: Sendable, Equatable {
    /// Row number. A commit that has read the line again names it in `Commit.requeued`.
    public var id: Int64
    package var record: QuarantineRecord
}
