internal import EventLoops
internal import Glibc

/// Whether others than root and the agent's administrators can change the configuration.
///
/// The configuration is trusted (it names destinations, tokens and programs), so it must be out of others' reach: a start, a
/// reload and `check` read through here and agree.
enum FileTrust {
    /// What is wrong with the write permissions of an opened file.
    static func problem(file path: String, status: stat) -> Problem? {
        judge(path, status.st_mode, group: status.st_gid, fix: "chmod go-w \(path)")
    }

    /// What is wrong with the permissions to add, rename or remove entries in a directory, or in one above it.
    ///
    /// - Parameter directory: its path; relative ones are taken from the working directory.
    static func problems(directory: String) -> [Problem] {
        guard let resolved = realpath(directory, nil) else { return [] }
        defer { free(resolved) }
        let whole = String(cString: resolved)
        var problems: [Problem] = []
        var path = ""
        let parts = whole.split(separator: "/")
        for (index, part) in ([""] + parts).enumerated() {
            path = index == 0 ? "/" : (path == "/" ? "/\(part)" : "\(path)/\(part)")
            var status = stat()
            // In a sticky directory only owners rename and remove.
            guard stat(path, &status) == 0, status.st_mode & S_ISVTX == 0 else { continue }
            let found = judge(path, status.st_mode, group: status.st_gid, fix: "chmod go-w \(path)")
            // Groups that may write further up are the system's business; the directory itself is ours.
            if let found, found.severity == .error || path == whole { problems.append(found) }
        }
        return problems
    }

    private static func judge(_ path: String, _ mode: mode_t, group: gid_t, fix: String) -> Problem? {
        let forAll = mode & 0o002 != 0
        guard forAll || (mode & 0o020 != 0 && group != 0), !isReadOnly(path) else { return nil }
        let shown = (mode & 0o7777).digits(4, radix: 8)
        let groupName = getgrgid(group).map { String(cString: $0.pointee.gr_name) } ?? "\(group)"
        let who = forAll ? "everybody" : "the group \(groupName)"
        return Problem(
            .environment, "\(path) can be written by \(who) (mode \(shown)), and with it the configuration; run \(fix)",
            severity: forAll ? .error : .warning)
    }

    /// Whether it is on a file system that is mounted read-only, as Kubernetes mounts configuration (mode 0777).
    private static func isReadOnly(_ path: String) -> Bool {
        var fileSystem = statvfs()
        return statvfs(path, &fileSystem) == 0 && fileSystem.f_flag & UInt(ST_RDONLY) != 0
    }
}
