internal import CLinux
package import Glibc

/// The status of a file: the members of stat(2) that the agent uses, with types that cannot overflow.
package struct FileStatus: Sendable, Equatable {
    package let device: UInt64
    package let inode: UInt64
    /// Size in bytes, at least 0; holes count. A file's owner can set it to 2^63-1, so sums use
    /// `ByteCount`.
    package let size: Int64
    package let links: UInt64
    package let owner: UInt32
    package let group: UInt32
    package let mode: UInt32
    /// When the content was last changed. The owner can set any time (utimensat(2)); times outside the
    /// range of nanoseconds become the nearest end of it.
    package let modified: Timestamp
    /// When content or status was last changed, by the kernel's clock; owners cannot set it.
    package let changed: Timestamp

    package init(_ status: stat) {
        device = UInt64(status.st_dev)
        inode = UInt64(status.st_ino)
        // bounded: here it gets its type.
        size = max(0, Int64(status.st_size))
        links = UInt64(status.st_nlink)
        owner = status.st_uid
        group = status.st_gid
        mode = status.st_mode
        // bounded: by the type that they become.
        modified = Timestamp(seconds: status.st_mtim.tv_sec, nanoseconds: status.st_mtim.tv_nsec)
        // bounded: by the type that they become.
        changed = Timestamp(seconds: status.st_ctim.tv_sec, nanoseconds: status.st_ctim.tv_nsec)
    }

    /// The status of an open file.
    package init(of descriptor: Int32) throws(SystemError) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw SystemError("fstat") }
        self.init(status)
    }

    /// The status of what a path leads to, following links; nil if that cannot be determined, and
    /// `errno` says why.
    package init?(_ path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        self.init(status)
    }

    /// The status of a name, without following it if it is a link.
    package init?(link name: String, in directory: Int32 = AT_FDCWD) {
        var status = stat()
        guard fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else { return nil }
        self.init(status)
    }

    package var isRegular: Bool { mode & S_IFMT == S_IFREG }
    package var isDirectory: Bool { mode & S_IFMT == S_IFDIR }
    package var isLink: Bool { mode & S_IFMT == S_IFLNK }
    package var isSocket: Bool { mode & S_IFMT == S_IFSOCK }
    /// Whether the group or others may write.
    package var isWritableByOthers: Bool { mode & 0o022 != 0 }
    /// Permissions as four octal digits.
    package var shownMode: String { (mode & 0o7777).digits(4, radix: 8) }
    package var ownerName: String { FileStatus.name(ofUser: owner) }
    /// The group's name, or its number if it has none.
    package var groupName: String {
        getgrgid(group).map { String(cString: $0.pointee.gr_name) } ?? "\(group)"
    }

    /// A user's name, or the number if the user has no name.
    package static func name(ofUser user: UInt32) -> String { nameIfAny(ofUser: user) ?? "\(user)" }

    /// A user's name; nil if the user has none. From any thread. It asks the system's name services,
    /// which may use the network, and waits for them.
    package static func nameIfAny(ofUser user: UInt32) -> String? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 4096) { buffer in
            var entry = passwd()
            var found = UnsafeMutablePointer<passwd>?.none
            guard let base = buffer.baseAddress, getpwuid_r(user, &entry, base, buffer.count, &found) == 0,
                found != nil
            else { return nil }
            return entry.pw_name.map { String(cString: $0) }
        }
    }

    /// Whether root or the given user owns the file.
    package func belongs(toRootOr user: UInt32) -> Bool { owner == 0 || owner == user }

    /// The file as `/proc/locks` names it: `fe:00:262146`.
    package var lockName: String {
        // The bits of a device number as in glibc's `major` and `minor` (makedev(3)).
        let major = device >> 8 & 0xFFF | device >> 32 & ~0xFFF
        let minor = device & 0xFF | device >> 12 & ~0xFF
        return "\(major.digits(2, radix: 16)):\(minor.digits(2, radix: 16)):\(inode)"
    }
}

/// Free space of a file system.
package struct FileSystemRoom: Sendable {
    /// Bytes that an unprivileged process can still write.
    package let freeBytes: Int
    /// Number of files that can still be created; nil if the file system has no such limit.
    package let freeInodes: Int?

    /// The space in the file system of a path; nil if it cannot be determined.
    package init?(_ path: String) {
        var found = statvfs()
        guard statvfs(path, &found) == 0 else { return nil }
        // bounded: what is too much for 64 bits is enough.
        let (bytes, isTooMuch) = UInt64(found.f_bavail).multipliedReportingOverflow(
            // bounded: as above.
            by: UInt64(found.f_frsize))
        freeBytes = isTooMuch ? .max : Int(clamping: bytes)
        freeInodes = found.f_files > 0 ? Int(clamping: UInt64(found.f_favail)) : nil
    }
}
