public import Model

/// A failure of the queue.
public struct QueueError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The kind of failure. Closed, because each code is a metric label.
    public enum Code: String, Sendable, CaseIterable {
        /// A command was started on a state directory without a queue.
        case missing
        /// Another process owns the state directory.
        case locked
        /// The database was written by a newer version of the program.
        case newerSchema = "newer_schema"
        /// The file is a database of another program.
        case foreign
        /// SQLite finds the database damaged.
        case corrupt
        /// The file system has no room.
        case diskFull = "disk_full"
        /// The queue has no room for dead letters that must be sent again.
        case full
        /// The database has reached its maximum size (`max_page_count`).
        case fileFull = "file_full"
        /// The file system cannot be written.
        case readOnly = "read_only"
        /// The database or its WAL was removed or replaced while open, or its path can no longer be
        /// looked at.
        case moved
        /// The process may not open the state directory or the database.
        case noPermission = "no_permission"
        /// The storage cap is below what is stored.
        case capBelowStored = "cap_below_stored"
        /// An option or argument that makes no sense, such as a batch of zero events.
        case misuse
        /// The store was closed.
        case closed
        /// Any other failure to read or write.
        case io
    }

    /// The kind of failure.
    public let code: Code
    /// One line for a person: what is wrong and what to do. Never event content.
    public let message: String
    /// Whether the content of the file is inconsistent, rather than the system having reported an
    /// error. Only damage starts a salvage; a salvage after EIO or ENOSPC would replace a good file.
    let isDamage: Bool

    /// - Parameter isDamage: by default true for `corrupt` only.
    package init(_ code: Code, _ message: String, isDamage: Bool? = nil) {
        self.code = code
        self.message = message
        self.isDamage = isDamage ?? (code == .corrupt)
    }

    /// The message.
    public var description: String { message }
}

extension QueueError: StoreFailure {
    /// The code as metrics show it.
    public var word: String { code.rawValue }
    /// Whether the store was closed.
    public var isClosed: Bool { code == .closed }
}
