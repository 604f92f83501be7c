internal import EventLoops
internal import Glibc

/// A file that keeps room on the disk: given up when the disk is full, because deleting, too, needs room first.
struct Ballast {
    /// The least that is worth keeping, in bytes: room for some acknowledgements.
    static let least = 1 << 20

    let path: String
    /// What it has where there is room enough, in bytes.
    let size: Int

    /// What it has, in bytes.
    var held: Int {
        var information = stat()
        guard stat(path, &information) == 0 else { return 0 }
        // bounded: a file of our own; the sizes are compared only.
        return min(Int(information.st_size), Int(information.st_blocks) * 512)
    }

    /// Makes it as large as it may be: on a small disk, or one that is nearly full, half of what is free.
    ///
    /// - Returns: whether that is worth keeping; if not, the disk is full.
    func restore() -> Bool {
        let held = held
        guard held < size else { return true }
        let flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW
        var disk = statvfs()
        guard let file = try? Descriptor(checking: open(path, flags, 0o600), "open"), fstatvfs(file.raw, &disk) == 0
        else { return false }
        // bounded: the bytes of a file system.
        let wanted = max(held, min(size, (Int(disk.f_bavail) * Int(disk.f_frsize) + held) / 2))
        guard wanted >= Ballast.least, posix_fallocate(file.raw, 0, off_t(wanted)) == 0 else {
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
