/// The state of reading a journal.
package struct JournalFigures: Sendable, Equatable {
    /// Entries that became lines, since the start.
    package var entries = 0
    package var cut = 0
    /// How often entries were removed before they were read.
    package var gaps = 0
    /// Files of it that cannot be read, as of its last opening; those that can are.
    package var unreadableFiles = 0
    /// Why nothing is read; nil: it is.
    package var problem: JournalError?
}
