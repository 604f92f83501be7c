internal import CCrashDisk

/// A spool directory that forgets names that were not synced, on one timeline with `CrashDisk`.
///
/// It takes over this process's own calls: the reader and the writers run as they are. One for the process: its tests
/// run inside `CrashDisk.exclusively`.
public enum CrashSpool {
    /// Begins: after so many operations, the disk's included, the machine stands still.
    ///
    /// - Parameters:
    ///   - directory: the spool.
    ///   - aside: a directory on the same file system, outside of the spool.
    public static func begin(_ directory: String, aside: String, freezingAfter operations: Int) {
        crashspool_begin(directory, aside, UInt64(operations))
    }

    /// Makes the machine stand still now, if it does not yet.
    public static func freeze() { crashspool_freeze() }

    /// Whether the machine stands still: each call on the spool fails, and changes nothing.
    public static var isFrozen: Bool { crashspool_frozen() != 0 }

    /// How many operations the disk had done when the machine came to stand still.
    public static var diskOperations: Int { Int(crashspool_place()) }

    /// Says that a writer made a file.
    public static func made(_ path: String) { crashspool_made(path) }

    /// Renames as a writer does; false when the machine stands still, or there is such a name.
    public static func rename(_ old: String, to new: String) -> Bool { crashspool_rename(old, new) == 0 }

    /// Makes the directory what a cut leaves; gives how many changes were undone.
    @discardableResult
    public static func cut(_ what: CrashDisk.Cut, seed: UInt64) -> Int {
        Int(crashspool_cut(seed, what == .process ? 1 : 0))
    }
}
