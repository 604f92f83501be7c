internal import CLinux
internal import EventLoops
internal import Glibc

/// The users but root who can change where a path leads: they own a directory, a link or the file on the way.
///
/// Root opens a file with the rights of each of these users, all of which must allow it. Otherwise a user's
/// link would show root's command what the user may not read, such as another user's file.
///
/// Source: path_resolution(7), credentials(7).
struct PathOwners {
    /// User ids, ascending; empty if root alone decides where the path leads, or if this process is not
    /// root's.
    let users: [uid_t]
    private let path: String

    /// - Throws: `SystemError` if the path leads to nothing, or through more links than the kernel follows.
    init(of path: String) throws(SystemError) {
        self.path = path
        guard geteuid() == 0 else {
            users = []
            return
        }
        var walk = PathWalk()
        try walk.follow(path)
        users = walk.owners.subtracting([0]).sorted()
    }

    /// The users' names, for messages: `ann and bob`.
    var names: String { users.map { FileStatus.name(ofUser: $0) }.joined(separator: " and ") }

    /// Opens the file for reading, with the rights of each user in turn; they must be led to the same file.
    ///
    /// - Throws: `SystemError`: what the kernel says to one of the users. EPERM if this process cannot take
    ///   their rights, ESTALE if the path led elsewhere from one moment to the next.
    func open() throws(SystemError) -> Descriptor {
        precondition(
            !users.isEmpty, "root alone owns \(path): there are no users whose rights could be taken")
        let file = try open(as: users[0])
        let status = try FileStatus(of: file.raw)
        for user in users.dropFirst() {
            let again = try open(as: user)
            let other = try FileStatus(of: again.raw)
            guard (other.device, other.inode) == (status.device, status.inode) else {
                throw SystemError("open", number: ESTALE)
            }
        }
        return file
    }

    private func open(as user: uid_t) throws(SystemError) -> Descriptor {
        try UserRights(of: user).perform { () throws(SystemError) in
            try Descriptor(checking: Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), "open")
        }
    }

    /// The file that a path names, if no link leads to it and it has no other name: no user can have made the
    /// path lead there.
    static func itself(_ path: String) -> Descriptor? {
        let start = path.hasPrefix("/") ? nil : RealPath.target(of: "/proc/self/cwd")
        let parts = "\(start ?? "")/\(path)".split(separator: "/").filter { $0 != "." }
        guard
            let file = try? Descriptor(
                checking: Glibc.open(path, CLINUX_O_PATH | O_CLOEXEC | O_NOFOLLOW), "open"),
            let status = try? FileStatus(of: file.raw), status.isRegular, status.links == 1,
            RealPath.target(of: "/proc/self/fd/\(file.raw)") == "/" + parts.joined(separator: "/")
        else { return nil }
        return file
    }
}

/// Follows a path as the kernel does, link by link, and notes who owns what is met.
///
/// Each step is taken from the descriptor of the step before, so what was looked at is what was passed
/// through.
private struct PathWalk {
    /// User ids of the owners of all directories, links and files on the way.
    private(set) var owners: Set<uid_t> = []
    /// Number of links followed. The kernel gives up after 40 with ELOOP, and a loop of links would never
    /// end.
    private var links = 0

    /// Names in /proc that lead to open files are followed by the kernel, not by their text.
    private static let magicOfProc = 0x9FA0

    mutating func follow(_ path: String) throws(SystemError) {
        var directory = try start(path)
        // The next name is the last.
        var names = PathWalk.names(of: path)
        while let name = names.popLast() {
            let entry = try PathWalk.open(name, in: directory.raw, O_NOFOLLOW)
            let status = try note(entry)
            guard status.isLink else {
                directory = entry
                continue
            }
            links += 1
            guard links <= RealPath.mostLinks else { throw SystemError("open", number: ELOOP) }
            if isInProc(entry) {
                directory = try PathWalk.open(name, in: directory.raw, 0)
                try note(directory)
                continue
            }
            guard let target = RealPath.target(of: "", in: entry.raw) else { throw SystemError("readlink") }
            if target.hasPrefix("/") {
                directory = try start(target)
            }
            names += PathWalk.names(of: target)
        }
    }

    private mutating func start(_ path: String) throws(SystemError) -> Descriptor {
        let directory = try PathWalk.open(path.hasPrefix("/") ? "/" : ".", in: AT_FDCWD, 0)
        try note(directory)
        return directory
    }

    @discardableResult
    private mutating func note(_ file: borrowing Descriptor) throws(SystemError) -> FileStatus {
        let status = try FileStatus(of: file.raw)
        owners.insert(status.owner)
        return status
    }

    private func isInProc(_ file: borrowing Descriptor) -> Bool {
        var kind = statfs()
        return fstatfs(file.raw, &kind) == 0 && Int(kind.f_type) == PathWalk.magicOfProc
    }

    /// The names of a path, the last one first.
    private static func names(of path: String) -> [String] {
        path.split(separator: "/").map(String.init).reversed()
    }

    private static func open(
        _ name: String, in directory: Int32, _ flags: Int32
    ) throws(SystemError) -> Descriptor {
        try Descriptor(checking: openat(directory, name, CLINUX_O_PATH | O_CLOEXEC | flags), "open")
    }
}

/// What a user may do: the user's id, primary group and other groups, which root takes for a moment.
private struct UserRights {
    private let user: uid_t
    private let group: gid_t
    private let groups: [gid_t]

    /// The group of a user whom no service of the system knows: one that owns nothing. A group of the file or
    /// of its directory would let the user read what only that group may.
    private static let groupOfUnknown: gid_t = 65_534

    init(of user: uid_t) {
        self.user = user
        guard let entry = getpwuid(user), let name = entry.pointee.pw_name else {
            group = UserRights.groupOfUnknown
            groups = []
            return
        }
        group = entry.pointee.pw_gid
        var count: Int32 = 64
        var found = [gid_t](repeating: 0, count: Int(count))
        // It writes into `count` how many there are; a second call has room for them.
        if getgrouplist(name, group, &found, &count) < 0 {
            found = [gid_t](repeating: 0, count: Int(count))
            if getgrouplist(name, group, &found, &count) < 0 {
                count = 0
            }
        }
        groups = Array(found.prefix(Int(count)))
    }

    /// Does something with these rights, and is root again afterwards.
    ///
    /// - Throws: what `body` throws; `SystemError` EPERM if this process may not take the rights.
    func perform<Value: ~Copyable>(_ body: () throws(SystemError) -> Value) throws(SystemError) -> Value {
        var own = [gid_t](repeating: 0, count: max(0, Int(getgroups(0, nil))))
        guard getgroups(Int32(own.count), &own) >= 0 else { throw SystemError("getgroups") }
        defer {
            // To become root again is what the saved ids are for.
            precondition(
                seteuid(0) == 0 && setegid(0) == 0 && setgroups(own.count, own) == 0, "root's rights are gone"
            )
        }
        guard setgroups(groups.count, groups) == 0, setegid(group) == 0, seteuid(user) == 0 else {
            throw SystemError("seteuid", number: EPERM)
        }
        return try body()
    }
}
