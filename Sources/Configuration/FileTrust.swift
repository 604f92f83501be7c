internal import EventLoops
internal import Glibc

/// Whether users other than root and the agent's administrators can change the configuration.
///
/// The configuration names destinations, tokens and programs, so it must be out of others' reach. A start, a
/// reload and `check` all read through here, so they agree.
enum FileTrust {
    /// What is wrong with the permissions to add, rename or remove entries in a directory, or in one above
    /// it. A relative path is taken from the working directory.
    static func problems(directory: String) -> [Problem] {
        guard let whole = RealPath.ofExisting(directory) else { return [] }
        var problems: [Problem] = []
        let parts = whole.split(separator: "/")
        for count in 0...parts.count {
            let path = "/" + parts.prefix(count).joined(separator: "/")
            // In a sticky directory only owners rename and remove.
            guard let status = FileStatus(path), status.mode & S_ISVTX == 0 else { continue }
            // Directories further up that a group may write are the system's choice: only others' access is
            // reported there.
            if let found = problem(path, status), found.severity == .error || path == whole {
                problems.append(found)
            }
        }
        return problems
    }

    /// What is wrong with the write permissions of an opened file, or of a directory; nil if nothing is. A
    /// group may write if it is root's; for another group it is a warning.
    static func problem(_ path: String, _ status: FileStatus) -> Problem? {
        let forAll = status.mode & 0o002 != 0
        guard forAll || (status.mode & 0o020 != 0 && status.group != 0), !isReadOnly(path) else { return nil }
        let who = forAll ? "everybody" : "the group \(status.groupName)"
        return Problem(
            .environment,
            "\(path) can be written by \(who) (mode \(status.shownMode)), and with it the configuration; "
                + "run chmod go-w \(path)",
            severity: forAll ? .error : .warning)
    }

    /// Whether a path is on a read-only file system. Kubernetes mounts configuration so, with mode 0777.
    private static func isReadOnly(_ path: String) -> Bool {
        var fileSystem = statvfs()
        return statvfs(path, &fileSystem) == 0 && fileSystem.f_flag & UInt(ST_RDONLY) != 0
    }
}
