internal import CLinux
package import Glibc

package struct FileStatus: Sendable, Equatable {
    package let device: UInt64
    package let inode: UInt64
    /// In bytes, from 0; holes count. Sums of them are `ByteCount`s.
    package let size: Int64
    package let links: UInt64
    package let owner: UInt32
    package let group: UInt32
    package let mode: UInt32
    /// When its content was changed last, as anyone may set it; what nanoseconds do not hold becomes the end of the range.
    package let modified: Timestamp
    /// When anything about it was changed last, as the kernel knows.
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

    package init(of descriptor: Int32) throws(SystemError) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw SystemError("fstat") }
        self.init(status)
    }

    /// Of what a path leads to, links followed; nil, and errno says why, when there is none, or it cannot be looked at.
    package init?(_ path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        self.init(status)
    }

    /// The same of a name that may be a link, which is not followed.
    package init?(link name: String, in directory: Int32 = AT_FDCWD) {
        var status = stat()
        guard fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0 else { return nil }
        self.init(status)
    }

    package var isRegular: Bool { mode & S_IFMT == S_IFREG }
    package var isDirectory: Bool { mode & S_IFMT == S_IFDIR }
    package var isLink: Bool { mode & S_IFMT == S_IFLNK }
    package var isSocket: Bool { mode & S_IFMT == S_IFSOCK }
    package var isWritableByOthers: Bool { mode & 0o022 != 0 }
    package var shownMode: String { (mode & 0o7777).digits(4, radix: 8) }
    package var ownerName: String { FileStatus.name(ofUser: owner) }
    /// The group's name; the number of one without.
    package var groupName: String { getgrgid(group).map { String(cString: $0.pointee.gr_name) } ?? "\(group)" }

    /// A user's name; the number of one without.
    package static func name(ofUser user: UInt32) -> String { nameIfAny(ofUser: user) ?? "\(user)" }

    /// A user's name, from any thread: asks all services of the system, and waits for them.
    package static func nameIfAny(ofUser user: UInt32) -> String? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 4096) { buffer in
            var (entry, found) = (passwd(), UnsafeMutablePointer<passwd>?.none)
            guard let base = buffer.baseAddress, getpwuid_r(user, &entry, base, buffer.count, &found) == 0, found != nil
            else { return nil }
            return entry.pw_name.map { String(cString: $0) }
        }
    }

    package func belongs(toRootOr user: UInt32) -> Bool { owner == 0 || owner == user }

    /// How the kernel names a file in its list of locks: `fe:00:262146`.
    package var lockName: String {
        // As glibc's `major` and `minor` take a device apart.
        let major = device >> 8 & 0xFFF | device >> 32 & ~0xFFF
        let minor = device & 0xFF | device >> 12 & ~0xFF
        return "\(major.digits(2, radix: 16)):\(minor.digits(2, radix: 16)):\(inode)"
    }
}

package struct FileSystemRoom: Sendable {
    package let freeBytes: Int
    /// Nil where the file system counts none.
    package let freeInodes: Int?

    /// In the file system that a path is in; nil when that cannot be looked at.
    package init?(_ path: String) {
        var found = statvfs()
        guard statvfs(path, &found) == 0 else { return nil }
        // bounded: what is too much for 64 bits is enough.
        let (bytes, isTooMuch) = UInt64(found.f_bavail).multipliedReportingOverflow(by: UInt64(found.f_frsize))
        freeBytes = isTooMuch ? .max : Int(clamping: bytes)
        freeInodes = found.f_files > 0 ? Int(clamping: UInt64(found.f_favail)) : nil
    }
}
