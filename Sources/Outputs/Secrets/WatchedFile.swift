internal import EventLoops
internal import Glibc

/// A small file that is read again when it changes.
///
/// It looks when it is asked, never by a timer: one `stat` a look. Links are followed, since the configuration is trusted
/// and secrets are often mounted as links.
struct WatchedFile {
    /// What tells one state of a file from another.
    struct Stamp: Equatable {
        var device: UInt64
        var inode: UInt64
        var size: Int64
        var changed: Timestamp
        var modified: Timestamp
    }

    /// Its path.
    let path: String
    /// The most bytes that it may have: what it is read into is memory.
    let limit: Int
    /// The state that `content` is of.
    private(set) var stamp: Stamp?
    /// Its bytes at the last successful reading; empty before.
    private(set) var content: [UInt8] = []

    init(path: String, limit: Int = 1 << 20) {
        self.path = path
        self.limit = limit
    }

    /// Whether the file is another one than that which was read. A file that is gone counts as unchanged: what was read
    /// stays.
    var hasChanged: Bool {
        guard let now = WatchedFile.stamp(of: path) else { return stamp == nil }
        return now != stamp
    }

    /// Reads the file.
    ///
    /// - Throws: `OutputError` with code `unreadable` or `badFile`; what was read before stays.
    mutating func read() throws(OutputError) {
        let raw = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard raw >= 0 else { throw OutputError(.unreadable, "cannot read \(path): \(SystemError.message(errno))") }
        let file = Descriptor(raw)
        var status = stat()
        guard fstat(file.raw, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw OutputError(.badFile, "\(path) is not a regular file")
        }
        // bounded: compared only.
        guard status.st_size <= limit else {
            throw OutputError(.badFile, "\(path) is larger than \(limit) bytes: is it the right file?")
        }
        let bytes: [UInt8]?
        do throws(SystemError) { bytes = try WholeFile.bytes(of: file.raw, atMost: limit) } catch {
            throw OutputError(.unreadable, "cannot read \(path): \(SystemError.message(error.number))")
        }
        guard let bytes else { throw OutputError(.badFile, "\(path) is larger than \(limit) bytes") }
        content = bytes
        // Of the descriptor, before its bytes were read: a change since then is seen at the next look.
        stamp = WatchedFile.stamp(status)
    }

    private static func stamp(of path: String) -> Stamp? {
        var status = stat()
        return stat(path, &status) == 0 ? stamp(status) : nil
    }

    private static func stamp(_ status: stat) -> Stamp {
        Stamp(
            device: UInt64(status.st_dev), inode: UInt64(status.st_ino),
            // bounded: compared only.
            size: Int64(status.st_size),
            // bounded: by the type that they become.
            changed: Timestamp(seconds: status.st_ctim.tv_sec, nanoseconds: status.st_ctim.tv_nsec),
            // bounded: as above.
            modified: Timestamp(seconds: status.st_mtim.tv_sec, nanoseconds: status.st_mtim.tv_nsec))
    }
}
