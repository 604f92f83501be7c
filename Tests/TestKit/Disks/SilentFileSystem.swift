public import Glibc

/// A file system that never answers, as that of a server that is gone, mounted for as long as this lives.
public final class SilentFileSystem {
    /// Whether this process may mount one.
    public static let isPossible = access("/dev/fuse", R_OK | W_OK) == 0 && getuid() == 0

    private let path: String
    private var connection: Int32

    /// - Parameters:
    ///   - path: a directory or a regular file to mount it over.
    ///   - user: who provides it, by the kernel's table of mounts.
    public init?(over path: String, user: uid_t = 0) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        self.path = path
        connection = open("/dev/fuse", O_RDWR | O_CLOEXEC)
        let kind = String(status.st_mode & S_IFMT, radix: 8)
        let options = "fd=\(connection),rootmode=\(kind),user_id=\(user),group_id=\(user),allow_other"
        guard connection >= 0, mount("silent", path, "fuse", UInt(MS_NOSUID | MS_NODEV), options) == 0 else {
            return nil
        }
    }

    /// Ends it: whoever waits for an answer gets an error.
    public func end() {
        guard connection >= 0 else { return }
        close(connection)
        connection = -1
        umount2(path, Int32(MNT_DETACH))
    }

    deinit { end() }
}
