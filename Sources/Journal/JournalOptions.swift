package import Model

/// Which journal is read, which of its entries, and which of their fields.
package struct JournalOptions: Sendable, Equatable {
    /// Directory of the journal; nil for the journal of this machine.
    package var directory: String?
    /// Names of units, which may contain `*` and `?`. If empty, all entries are read, also those of no unit.
    package var units: [String] = []
    /// The least severe priority that is read, 0 (emergency) to 7 (debug). An entry without a priority counts
    /// as 6 (informational).
    package var priority = 7
    /// Where reading begins at the first start. The default is `now`, because a journal often reaches back
    /// for months.
    package var since = JournalStart.now
    /// Fields beside the usual ones, by journald's names; `*` for all.
    package var fields: [String] = []
    /// Longest line in bytes. A longer entry is cut in its longest field.
    package var maxEventSize: Int
    /// Bytes of lines that are read for one commit, 1 MiB; the entry that reaches the limit is still whole.
    package var pieceBytes = 1 << 20

    /// Options for all entries of this machine's journal from now on.
    package init(maxEventSize: Int) { self.maxEventSize = maxEventSize }
}
