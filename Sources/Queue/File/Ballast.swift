internal import EventLoops
internal import Glibc

/// A file that keeps room on the disk: given up when the disk is full, because deleting, too, needs room first.
struct Ballast {
    /// The least that it has, in bytes: room for some acknowledgements.
    private static let least = 1 << 20

    let path: String
    /// In bytes: half of what is free at the start, where that is less than it may have.
    let size: Int

    /// - Parameter most: what it has where there is room enough, in bytes.
    init(path: String, most: Int) {
        self.path = path
        var disk = statvfs()
        guard statvfs(String(path[..<(path.lastIndex(of: "/") ?? path.endIndex)]), &disk) == 0 else {
            size = most
            return
        }
        // bounded: the bytes of a file system.
        let room = Int(disk.f_bavail) * Int(disk.f_frsize) + Ballast.held(path)
        size = max(Ballast.least, min(most, room / 2))
    }

    var isWhole: Bool { Ballast.held(path) >= size }

    private static func held(_ path: String) -> Int {
        var information = stat()
        guard stat(path, &information) == 0 else { return 0 }
        // bounded: a file of our own; the sizes are compared only.
        return min(Int(information.st_size), Int(information.st_blocks) * 512)
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
