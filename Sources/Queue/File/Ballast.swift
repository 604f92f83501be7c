internal import EventLoops
internal import Glibc

/// A file that reserves room on the disk, to be deleted when the disk is full.
///
/// Deleting rows needs room first: a transaction writes changed pages to the WAL. Without the ballast,
/// an agent on a full disk could not record acknowledgements, and would send those events again after a
/// restart.
struct Ballast {
    /// Least size in bytes: enough for some acknowledgements.
    private static let least = 1 << 20

    /// Path of the file, in the state directory.
    let path: String
    /// Size in bytes: `most`, or half of what is free at the start if that is less, so that the ballast
    /// itself never fills a disk.
    let size: Int

    /// - Parameter most: the size in bytes if the disk has room enough.
    init(path: String, most: Int) {
        self.path = path
        var disk = statvfs()
        guard statvfs(String(path[..<(path.lastIndex(of: "/") ?? path.endIndex)]), &disk) == 0 else {
            size = most
            return
        }
        // bounded: the bytes of a file system.
        let room = Int(disk.f_bavail) * Int(disk.f_frsize) + Ballast.bytesOnDisk(path)
        size = max(Ballast.least, min(most, room / 2))
    }

    /// Whether the file has its full size on disk.
    var isWhole: Bool { Ballast.bytesOnDisk(path) >= size }

    /// Bytes that the file occupies. A sparse file has a size and no blocks, so the lesser figure
    /// counts.
    private static func bytesOnDisk(_ path: String) -> Int {
        var information = stat()
        guard stat(path, &information) == 0 else { return 0 }
        // bounded: a file of our own; the sizes are compared only.
        return min(Int(information.st_size), Int(information.st_blocks) * 512)
    }

    /// Brings the file to its full size; returns false if the disk has no room, and then keeps no part
    /// of it.
    func restore() -> Bool {
        if isWhole { return true }
        let flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW
        guard let file = try? Descriptor(checking: open(path, flags, 0o600), "open") else { return false }
        guard posix_fallocate(file.raw, 0, off_t(size)) == 0 else {
            giveUp()
            return false
        }
        // File systems with delayed allocation report some failures only when the blocks are written.
        return fsync(file.raw) == 0
    }

    /// Deletes the file, so that the database can use its room; returns false if there was no file.
    @discardableResult
    func giveUp() -> Bool { unlink(path) == 0 }
}
