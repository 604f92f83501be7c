/// What the intake asks of the queue.
public protocol CommitStore: Sendable {
    /// Stores a commit, all of it or nothing; what `stored` was returned for survives a crash. Throws a `StoreFailure`.
    func store(_ commit: Commit) async throws -> StoreResult

    /// Returns once all that was stored before survives a power cut.
    func sync() async throws

    /// Whether nothing would be stored now, as far as is known. From any thread.
    var storesNothing: Bool { get }

    /// Whether a file has to stay, by what was stored so far: the quarantine could not hold all of its bad lines. From any thread.
    func mustStay(_ file: [UInt8]) -> Bool
}

/// What happened to a commit.
public enum StoreResult: Sendable, Equatable {
    /// It is durable. `refused` events of it were not accepted, because the queue is full of critical ones or because
    /// they could never fit; they are in the quarantine.
    case stored(refused: Int)
    /// Nothing of it was stored; the observer tells when there is room again (`accepting` is no more `nothing`).
    case wait(WaitReason)
}

/// Why nothing is stored.
public enum WaitReason: String, Sendable, CaseIterable {
    /// The cap is reached; there is room again below 90 % of it.
    case full
    case diskFull = "disk_full"
    /// The file system cannot be written, fails, or does not let the agent.
    case notWritable = "not_writable"
    /// A reader outside keeps the WAL from being written back.
    case walPinned = "wal_pinned"
    /// The database was removed, replaced or closed off: what it holds lives as long as the agent, and no more is added.
    case outOfReach = "out_of_reach"
}

/// Why a store failed to store.
public protocol StoreFailure: Error {
    /// The kind of failure: one of the store's closed set of words.
    var word: String { get }
    /// One line for a person: what is wrong and what to do. Never event content.
    var message: String { get }
    /// Whether the store was closed: it will store nothing more.
    var isClosed: Bool { get }
}
