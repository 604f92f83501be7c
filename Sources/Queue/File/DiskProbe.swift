internal import EventLoops
internal import Glibc

/// Asks a file system for room, and gives it back at once.
enum DiskProbe {
    /// Whether so many bytes can be written beside a file.
    static func hasRoom(for bytes: Int, beside path: String) -> Bool {
        let name = "\(path).probe"
        let flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW
        guard let file = try? Descriptor(checking: open(name, flags, 0o600), "open") else { return false }
        unlink(name)
        return posix_fallocate(file.raw, 0, off_t(bytes)) == 0
    }
}
