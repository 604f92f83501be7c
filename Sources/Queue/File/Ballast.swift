internal import EventLoops
internal import Glibc

/// A file that keeps room on the disk: given up when the disk is full, because deleting, too, needs room first.
struct Ballast {
    let path: String
    let size: Int

    /// Whether all of it is there.
    var isWhole: Bool {
        var information = stat()
        guard stat(path, &information) == 0 else { return false }
        // bounded: a file of our own; the sizes are compared only.
        let (length, blocks) = (Int(information.st_size), Int(information.st_blocks))
        return length >= size && blocks >= size / 512
    }

    /// Makes it whole; false if the disk has no room for it. The part that fits is given back.
    func restore() -> Bool {
        if isWhole { return true }
        let flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW
        guard let file = try? Descriptor(checking: open(path, flags, 0o600), "open") else { return false }
        guard posix_fallocate(file.raw, 0, off_t(size)) == 0 else {
            giveUp()
            return false
        }
        // Blocks that were only promised may be refused later.
        return fsync(file.raw) == 0
    }

    /// Gives its room to the database; false if there was none to give.
    @discardableResult
    func giveUp() -> Bool { unlink(path) == 0 }
}
