internal import CLinux
internal import EventLoops
internal import Glibc

/// Who the agent runs as, and what that user may do with files.
///
/// `check` is often run by root and the agent never is: then the answer is reckoned from owner and mode. For the own
/// user the kernel is asked.
struct FileAccess: Sendable {
    /// What is to be done with a file or directory.
    struct Purpose: OptionSet, Sendable {
        let rawValue: UInt32
        static let read = Purpose(rawValue: 4)
        static let write = Purpose(rawValue: 2)
        static let execute = Purpose(rawValue: 1)
    }

    /// The user's name, for messages.
    let user: String
    let userID: uid_t
    let groups: Set<gid_t>

    /// The agent's user, or who runs the command, unless that is root and the agent's user exists.
    static func ofAgent(user name: String = "spoolship") -> FileAccess {
        if geteuid() == 0, let entry = getpwnam(name) {
            var count: Int32 = 256
            var list = [gid_t](repeating: 0, count: Int(count))
            let found = getgrouplist(name, entry.pointee.pw_gid, &list, &count)
            return FileAccess(
                user: name, userID: entry.pointee.pw_uid,
                groups: Set(found < 0 ? [entry.pointee.pw_gid] : Array(list.prefix(Int(count)))))
        }
        let own = geteuid()
        let ownName = getpwuid(own).map { String(cString: $0.pointee.pw_name) } ?? "\(own)"
        return FileAccess(user: ownName, userID: own, groups: [getegid()])
    }

    /// Why the user may not; nil when the user may, or there is no such file.
    ///
    /// Looks at every directory on the way: a readable file behind a closed door is not readable.
    func refusal(_ path: String, _ purpose: Purpose) -> String? {
        if userID == geteuid() {
            guard faccessat(AT_FDCWD, path, Int32(purpose.rawValue), AT_EACCESS) != 0, errno != ENOENT else {
                return nil
            }
            let number = errno
            if number == EROFS { return "lies on a file system that is mounted read-only" }
            return "cannot be \(purpose.words) by \(user): \(SystemError.message(number))"
        }
        var directory = ""
        for part in path.split(separator: "/").dropLast() {
            directory += "/\(part)"
            guard let status = FileStatus(directory) else { return nil }
            guard allows(status, directory, .execute) else {
                return "lies in \(directory), which user \(user) may not enter"
            }
        }
        guard let status = FileStatus(path), !allows(status, path, purpose) else { return nil }
        return "cannot be \(purpose.words) by user \(user) (owner \(status.ownerName), mode \(status.shownMode))"
    }

    private func allows(_ status: FileStatus, _ path: String, _ purpose: Purpose) -> Bool {
        if userID == 0 { return true }
        // What an access control list says is not reckoned here: it gets the benefit of the doubt.
        if getxattr(path, "system.posix_acl_access", nil, 0) > 0 { return true }
        let shift: UInt32 =
            status.owner == userID ? 6 : groups.contains(status.group) ? 3 : 0
        return Purpose(rawValue: (status.mode >> shift) & 7).isSuperset(of: purpose)
    }
}

extension FileAccess.Purpose {
    var words: String {
        // A program is run, and nothing else; what is entered is a directory.
        guard self != .execute else { return "run" }
        let words = [(FileAccess.Purpose.read, "read"), (.write, "written"), (.execute, "entered")]
            .filter { contains($0.0) }.map(\.1)
        return words.count < 3 ? words.joined(separator: " and ") : "read, written and entered"
    }
}

/// What the kernel says of a file, links followed.
struct FileStatus: Sendable {
    let mode: UInt32
    let owner: uid_t
    let group: gid_t
    let device: UInt
    let inode: UInt
    let size: Int

    /// Nil when there is none, or it cannot be looked at.
    init?(_ path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        mode = status.st_mode
        owner = status.st_uid
        group = status.st_gid
        device = UInt(status.st_dev)
        inode = UInt(status.st_ino)
        size = Int(status.st_size)
    }

    var isDirectory: Bool { mode & S_IFMT == S_IFDIR }
    var isRegular: Bool { mode & S_IFMT == S_IFREG }
    var isSocket: Bool { mode & S_IFMT == S_IFSOCK }
    var isWritableByOthers: Bool { mode & 0o022 != 0 }
    var isReadableByAll: Bool { mode & 0o004 != 0 }
    var shownMode: String {
        let text = String(mode & 0o7777, radix: 8)
        return String(repeating: "0", count: max(0, 4 - text.count)) + text
    }
    var ownerName: String { getpwuid(owner).map { String(cString: $0.pointee.pw_name) } ?? "\(owner)" }
}
