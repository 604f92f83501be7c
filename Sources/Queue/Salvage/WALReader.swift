internal import EventLoops
internal import Glibc

/// Finds the process that reads the database and keeps its WAL from being written back.
enum WALReader {
    /// The first other process with a lock on the WAL's index, as `sqlite3 (pid 4711)`; nil if there is none to see.
    ///
    /// Reads `/proc/locks`: asking the kernel by descriptor would, on closing it, take away SQLite's own locks.
    static func find(_ database: String) -> String? {
        FileStatus("\(database)-shm").flatMap(holder)
    }

    /// The first other process with a lock on a file.
    static func holder(of file: FileStatus) -> String? {
        // 1: POSIX  ADVISORY  READ 4711 fe:01:131 123 123
        let locks = text(of: "/proc/locks").split(separator: "\n").map { $0.split(separator: " ") }
            .filter { $0.count >= 6 && $0[5].hasSuffix(":\(file.inode)") && Int32($0[4]) != getpid() }
        // On btrfs a file's status has another device than the list.
        guard let lock = locks.first(where: { $0[5] == file.lockName }) ?? locks.first else { return nil }
        let name = text(of: "/proc/\(lock[4])/comm").filter { $0 != "\n" }
        return "\(name.isEmpty ? "a program" : name) (pid \(lock[4]))"
    }

    /// A small file's text; empty if it cannot be read.
    private static func text(of path: String) -> String {
        String(decoding: (try? WholeFile.bytes(of: path, atMost: 4 << 20)) ?? [], as: UTF8.self)
    }
}
