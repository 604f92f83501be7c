internal import CLinux
internal import EventLoops
internal import Glibc

/// The first user but root who owns something on the path of a file, and so can change where it leads: root opens it with this user's
/// rights, so that no link leads to what the user may not read.
struct PathOwner {
    let user: uid_t
    private let group: gid_t

    /// - Returns: nil where root alone can change it, or this process is not root's anyway.
    /// - Throws: `SystemError` when something on the path is not there.
    init?(of path: String) throws(SystemError) {
        guard geteuid() == 0 else { return nil }
        var place = path.hasPrefix("/") ? "/." : "."
        for part in [Substring()] + path.split(separator: "/") {
            place += part.isEmpty ? "" : "/\(part)"
            guard let status = FileStatus(link: place) else { throw SystemError("open") }
            guard status.owner != 0 else { continue }
            (user, group) = (status.owner, status.group)
            return
        }
        return nil
    }

    /// The file that a path names, if no link leads to it and it has no other name: no user can have made the path lead there.
    static func itself(_ path: String) -> Descriptor? {
        let start = path.hasPrefix("/") ? nil : RealPath.target(of: "/proc/self/cwd")
        let parts = "\(start ?? "")/\(path)".split(separator: "/").filter { $0 != "." }
        guard let file = try? Descriptor(checking: open(path, CLINUX_O_PATH | O_CLOEXEC | O_NOFOLLOW), "open"),
            let status = try? FileStatus(of: file.raw), status.isRegular, status.links == 1,
            RealPath.target(of: "/proc/self/fd/\(file.raw)") == "/" + parts.joined(separator: "/")
        else { return nil }
        return file
    }

    /// Does something with the user's rights; nil where this process may not take them.
    func perform<Value, Failure: Error>(_ body: () throws(Failure) -> Value) throws(Failure) -> Value? {
        var groups = [gid_t](repeating: 0, count: Int(getgroups(0, nil)))
        guard getgroups(Int32(groups.count), &groups) >= 0 else { return nil }
        defer {
            // To become root again is what the saved ids are for.
            precondition(
                seteuid(0) == 0 && setegid(0) == 0 && setgroups(groups.count, groups) == 0, "root's rights are gone")
        }
        guard setgroups(0, nil) == 0, setegid(group) == 0, seteuid(user) == 0 else { return nil }
        return try body()
    }
}
