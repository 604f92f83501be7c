public import EventLoops

/// The state of reading a journal.
public struct JournalFigures: Sendable, Equatable {
    /// Entries that became lines, since the start.
    public var entries = 0
    /// Entries that the filter left out.
    public var passedOver = 0
    package var cut = 0
    /// How often entries were removed before they were read.
    public var gaps = 0
    /// journald's files, and those that cannot be read.
    public var files = 0
    /// Files that cannot be read.
    public var unreadableFiles = 0
    /// When journald took the last entry that was looked at; nil: none yet.
    public var lastEntry: Timestamp?
    /// Why nothing is read; nil: it is.
    public var problem: JournalError?
}
