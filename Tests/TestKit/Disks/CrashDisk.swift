internal import CCrashDisk
internal import Synchronization

/// A disk in memory under SQLite that forgets unsynced writes: `QueueOptions.vfs` takes its `name`.
///
/// One for the process and one connection at a time: its tests run inside `exclusively`.
public enum CrashDisk {
    private static let users = Mutex<(isTaken: Bool, waiting: [CheckedContinuation<Void, Never>])>(
        (false, []))

    /// Runs a test's part that uses the disk while no other does.
    public static func exclusively<Value>(_ body: () async throws -> Value) async rethrows -> Value {
        await withCheckedContinuation { continuation in
            let isFree = users.withLock { users in
                defer { users.isTaken = true }
                if users.isTaken { users.waiting.append(continuation) }
                return !users.isTaken
            }
            if isFree { continuation.resume() }
        }
        defer {
            let next = users.withLock { users in
                users.isTaken = !users.waiting.isEmpty
                return users.isTaken ? users.waiting.removeFirst() : nil
            }
            next?.resume()
        }
        return try await body()
    }

    /// The VFS's name.
    public static let name = "crashdisk"

    /// Empties the disk.
    public static func reset() { crashdisk_reset() }

    /// Counts operations from here on: each write, truncation, sync and deletion is one.
    public static func record() { crashdisk_record() }

    /// How many operations were counted.
    public static var operations: Int { Int(crashdisk_operations()) }

    /// What dies.
    public enum Cut: Sendable {
        /// The machine: of what was not synced anything may be missing, torn or there.
        case power
        /// The process: the system keeps what was written.
        case process
    }

    /// Makes the disk what a cut after so many operations leaves; the seed chooses among the possible.
    public static func cut(_ what: Cut, after operations: Int, seed: UInt64) {
        crashdisk_cut(UInt64(operations), seed, what == .process ? 1 : 0)
    }

    /// From now on each write fails with that `errno`; 0 ends it.
    public static func fail(_ error: Int32) { crashdisk_fail(error) }
}
