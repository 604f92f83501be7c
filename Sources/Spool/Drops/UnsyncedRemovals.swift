internal import Model

/// Done records of files that were removed. A power cut may undo a removal until the directory is synced.
///
/// The records stay in the queue until then; otherwise a file that comes back would be read again. Entries
/// are records and not file identities, because another file may have the identity by now.
struct UnsyncedRemovals {
    /// Records whose directory is not synced yet, by its path.
    private var waiting: [FileName: (directory: SpoolDirectory, records: [DoneRecord])] = [:]
    /// Whether a sync is on the agenda. Otherwise each removal would plan another one.
    private var isSyncPlanned = false

    /// Adds the record of a file that was removed from a directory.
    mutating func add(_ record: DoneRecord, in directory: SpoolDirectory) {
        waiting[directory.path, default: (directory, [])].records.append(record)
    }

    /// Returns true if the caller must put a sync on the agenda.
    mutating func planSync() -> Bool {
        guard !isSyncPlanned, !waiting.isEmpty else { return false }
        isSyncPlanned = true
        return true
    }

    /// Takes the records of one directory, to sync it.
    mutating func takeNext() -> (directory: SpoolDirectory, records: [DoneRecord])? {
        isSyncPlanned = false
        return waiting.popFirst()?.value
    }

    /// Puts back the records of a directory that could not be synced. The caller plans the retry.
    mutating func putBack(_ records: [DoneRecord], of directory: SpoolDirectory) {
        waiting[directory.path, default: (directory, [])].records += records
    }
}
