/// What a reader has done since the start; published for metrics and `status`.
package struct JournalFigures: Sendable, Equatable {
    /// Entries that became lines.
    package var entries = 0
    /// Entries that were cut to `maxEventSize`.
    package var cut = 0
    /// Number of times that entries were removed from the journal before they were read.
    package var gaps = 0
    /// Files that could not be read when the journal was last opened. The other files are read.
    package var unreadableFiles = 0
    /// Why nothing is read; nil while the journal is read.
    package var problem: JournalError?
}
