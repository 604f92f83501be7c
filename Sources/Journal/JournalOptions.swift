package import Model

/// Which entries of which journal are read, and what of them.
package struct JournalOptions: Sendable, Equatable {
    /// The directory of the journal; nil for this machine's own.
    package var directory: String?
    /// Names of units, each may have `*` and `?`; empty: all entries, those of no unit included.
    package var units: [String] = []
    /// The least severe priority that is read, 0 (emergency) to 7 (debug). An entry without one counts as 6 (information).
    package var priority = 7
    package var since = JournalStart.now
    /// Fields beside the usual ones, by journald's names; `*` for all.
    package var fields: [String] = []
    /// The longest line, in bytes: an entry that is longer is cut in its longest field.
    package var maxEventSize: Int
    /// How many bytes of lines are read for one commit, an entry excepted.
    package var pieceBytes = 1 << 20

    package init(maxEventSize: Int) { self.maxEventSize = maxEventSize }
}
