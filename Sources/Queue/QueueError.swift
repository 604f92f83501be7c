//  Queue: the SQLite file: enqueue and checkpoint in one transaction, lease, acknowledge, evict, expire, dead letters,
//  the ledger, migrations, salvage.
//  Promise: what a call has returned from survives a crash; the ledger balances at every instant.
//  It knows nothing of HTTP, of the files of the spool, or of what is inside an event.

public import Model

/// What can go wrong with the queue.
public struct QueueError: Error, Sendable, Equatable {
    /// Closed, because each code is a metric label.
    public enum Code: String, Sendable, CaseIterable {
        /// There is no queue where a command looks for one.
        case missing
        /// Another process owns the state directory.
        case locked
        /// A newer version of the program has written the database.
        case newerSchema = "newer_schema"
        /// The file is a database, but not ours.
        case foreign
        /// SQLite finds the database damaged.
        case corrupt
        /// The file system has no room.
        case diskFull = "disk_full"
        /// The queue has no room for what is to be sent or read again.
        case full
        /// The database has reached its maximum size.
        case fileFull = "file_full"
        /// The file system cannot be written.
        case readOnly = "read_only"
        /// The database was removed or replaced while it was open, or its path cannot be looked at.
        case moved
        /// The state directory or the database may not be opened.
        case noPermission = "no_permission"
        /// The storage cap is below what is stored.
        case capBelowStored = "cap_below_stored"
        /// An option, or the use of a batch, that makes no sense.
        case misuse
        /// The store was closed.
        case closed
        /// Anything else that reading or writing failed with.
        case io
    }

    /// The kind of failure.
    public let code: Code
    /// One line for a person: what is wrong and what to do. Never event content.
    public let message: String
    /// Whether the system had nothing to do with it: what is in the file does not fit together.
    let isDamage: Bool

    package init(_ code: Code, _ message: String, isDamage: Bool? = nil) {
        self.code = code
        self.message = message
        self.isDamage = isDamage ?? (code == .corrupt)
    }
}

extension QueueError: StoreFailure {
    /// The code, as in metrics.
    public var word: String { code.rawValue }
    /// Whether the store was closed.
    public var isClosed: Bool { code == .closed }
}
