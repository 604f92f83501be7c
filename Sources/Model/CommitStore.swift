/// What intake asks of the queue.
public protocol CommitStore: Sendable {
    /// Stores a commit completely or not at all. When it returns `stored`, the commit survives a crash.
    /// Throws a `StoreFailure`.
    func store(_ commit: Commit) async throws -> StoreResult

    /// Returns when everything stored before survives a power cut.
    func sync() async throws

    /// Whether a commit would have to wait, as far as is known. From any thread.
    var storesNothing: Bool { get }

    /// Whether a file must stay in the spool after the commits so far: the quarantine could not hold
    /// all of its bad lines. From any thread.
    func mustStay(_ file: [UInt8]) -> Bool
}

/// What happened to a commit.
public enum StoreResult: Sendable, Equatable {
    /// The commit is durable. `refused` of its events were not accepted, because the queue is full of
    /// critical events or they could never fit; these are in the quarantine.
    case stored(refused: Int)
    /// Nothing of it was stored. The observer tells when there is room again (`accepting` is no longer
    /// `nothing`).
    case wait(WaitReason)
}

/// Why nothing is stored.
public enum WaitReason: String, Sendable, CaseIterable {
    /// The cap is reached; storing resumes below 90 % of it.
    case full
    /// The file system is full.
    case diskFull = "disk_full"
    /// The file system is read-only, fails, or denies access.
    case notWritable = "not_writable"
    /// A reader outside keeps the WAL from being written back.
    case walPinned = "wal_pinned"
    /// The database was removed, replaced or made inaccessible. What it holds lasts as long as the
    /// agent; nothing is added.
    case outOfReach = "out_of_reach"
}

/// Why a store failed to store.
public protocol StoreFailure: Error {
    /// The kind of failure, from the store's closed set of words.
    var word: String { get }
    /// One line for a person: what is wrong and what to do. Never event content.
    var message: String { get }
    /// Whether the store was closed and will store nothing more.
    var isClosed: Bool { get }
}
