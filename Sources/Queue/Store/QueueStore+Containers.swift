public import EventLoops

/// The last valid fetch of a container as it is stored, so that a restart without network has its
/// rules.
public struct SavedContainer: Sendable, Equatable {
    /// The lowest version that is accepted from now on, so that an old document cannot replace a newer
    /// one.
    package var version: Int
    /// The server's ETag; nil if it sent none.
    public var etag: String?
    /// When the server last said that this is the newest document.
    public var confirmed: Timestamp
    /// The bytes as served: the document with its signatures.
    public var file: [UInt8]

    package init(version: Int, etag: String?, confirmed: Timestamp, file: [UInt8]) {
        self.version = version
        self.etag = etag
        self.confirmed = confirmed
        self.file = file
    }
}

extension QueueStore {
    /// The saved copy of a container; nil if none was saved. Its signatures must be verified again.
    public func savedContainer(_ id: String) throws(QueueError) -> SavedContainer? {
        try reading { file throws(QueueError) in
            try file.statement("SELECT version, etag, confirmed_at, file FROM container WHERE id = ?").with(
                id
            ).first {
                SavedContainer(
                    version: $0.integer(0), etag: $0.isNull(1) ? nil : $0.text(1), confirmed: $0.time(2),
                    file: $0.bytes(3))
            }
        }
    }

    /// Replaces the saved copy of a container; durable when it returns.
    public func saveContainer(_ id: String, _ copy: SavedContainer) async throws(QueueError) {
        try await write { transaction throws(QueueError) in
            try transaction.tables.run(
                "REPLACE INTO container (id, version, etag, confirmed_at, file) VALUES (?, ?, ?, ?, ?)", id,
                copy.version, copy.etag, copy.confirmed, copy.file)
        }
    }

    /// Records when the server confirmed the saved copy.
    public func confirmContainer(_ id: String, at time: Timestamp) async throws(QueueError) {
        try await write { transaction throws(QueueError) in
            try transaction.tables.run("UPDATE container SET confirmed_at = ? WHERE id = ?", time, id)
        }
    }
}
