internal import EventLoops
internal import Glibc

/// Finds the process that reads the database and thereby keeps its WAL from being written back, so that
/// a log message can name it.
enum WALReader {
    /// The first other process with a lock on the WAL's index, such as `sqlite3 (pid 4711)`; nil if
    /// there is no such process, or it is not visible.
    ///
    /// It reads `/proc/locks` (proc(5)). Asking with F_GETLK would need a descriptor of the file, and
    /// closing any descriptor of a file releases all POSIX locks of the process on it, SQLite's
    /// included (fcntl(2)).
    static func find(_ database: String) -> String? {
        FileStatus("\(database)-shm").flatMap(holder)
    }

    /// The first other process with a lock on a file.
    static func holder(of file: FileStatus) -> String? {
        // A line is `1: POSIX  ADVISORY  READ 4711 fe:01:131 123 123`: the fifth field is the process
        // id, the sixth device and inode.
        let locks = text(of: "/proc/locks").split(separator: "\n").map { $0.split(separator: " ") }
            .filter { $0.count >= 6 && $0[5].hasSuffix(":\(file.inode)") && Int32($0[4]) != getpid() }
        // On btrfs stat(2) reports another device than /proc/locks, so a match of the inode alone is
        // accepted.
        guard let lock = locks.first(where: { $0[5] == file.lockName }) ?? locks.first else { return nil }
        let name = text(of: "/proc/\(lock[4])/comm").filter { $0 != "\n" }
        return "\(name.isEmpty ? "a program" : name) (pid \(lock[4]))"
    }

    /// Text of a small file; empty if it cannot be read.
    private static func text(of path: String) -> String {
        String(decoding: (try? WholeFile.bytes(of: path, atMost: 4 << 20)) ?? [], as: UTF8.self)
    }
}
