public import EventLoops

/// The last good fetch of a container, as it is kept.
public struct SavedContainer: Sendable, Equatable {
    package var version: Int
    /// The tag that the server gave it; nil for none.
    public var etag: String?
    /// When the server last said that it is the newest.
    public var confirmed: Timestamp
    /// What was served: the document with its signatures.
    public var file: [UInt8]

    package init(version: Int, etag: String?, confirmed: Timestamp, file: [UInt8]) {
        self.version = version
        self.etag = etag
        self.confirmed = confirmed
        self.file = file
    }
}

extension QueueStore {
    /// The saved copy of a container; nil when none was ever saved. What is in it must be verified again.
    public func savedContainer(_ id: String) throws(QueueError) -> SavedContainer? {
        try reading { file throws(QueueError) in
            try file.statement("SELECT version, etag, confirmed_at, file FROM container WHERE id = ?").take(id).first {
                SavedContainer(
                    version: $0.integer(0), etag: $0.isNull(1) ? nil : $0.text(1), confirmed: $0.time(2),
                    file: $0.bytes(3))
            }
        }
    }

    /// Keeps a copy of a container in place of an older one; durable when it returns.
    public func saveContainer(_ id: String, _ copy: SavedContainer) async throws(QueueError) {
        try await write { transaction throws(QueueError) in
            try transaction.tables.run(
                "REPLACE INTO container (id, version, etag, confirmed_at, file) VALUES (?, ?, ?, ?, ?)", id,
                copy.version, copy.etag, copy.confirmed, copy.file)
        }
    }

    /// Notes that the server has confirmed the saved copy.
    public func confirmContainer(_ id: String, at time: Timestamp) async throws(QueueError) {
        try await write { transaction throws(QueueError) in
            try transaction.tables.run("UPDATE container SET confirmed_at = ? WHERE id = ?", time, id)
        }
    }
}
