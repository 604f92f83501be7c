internal import EventLoops
internal import Glibc

/// What this process's user, by now the agent's (`AgentUser`), may do with files. The kernel is asked instead
/// of comparing modes, because access control lists, mounts and security modules also decide.
struct FileAccess: Sendable {
    /// The user's name, for messages.
    let user: String
    /// The user's number, for checks of ownership.
    let userID: uid_t

    /// The access of this process's effective user.
    static var own: FileAccess {
        let own = geteuid()
        return FileAccess(user: FileStatus.name(ofUser: own), userID: own)
    }

    /// Why the user has no access to a path, also if a directory on the way cannot be searched; nil if access
    /// is allowed, and if the file does not exist.
    ///
    /// - Parameter purpose: as access(2) takes it: `R_OK | X_OK`.
    func refusal(_ path: String, _ purpose: Int32) -> String? {
        let readOnly = "is on a file system that is mounted read-only"
        guard faccessat(AT_FDCWD, path, purpose, AT_EACCESS) != 0 else {
            // After an error ext4 still reports itself as writable and refuses each write: faccessat(2)
            // allows what would fail.
            return purpose & W_OK != 0 && WholeFile.isReadOnly(path)
                ? "\(readOnly), or has had an error: unmount it, check it (fsck), and mount it again" : nil
        }
        let number = errno
        if number == ENOENT { return nil }
        if number == EROFS { return readOnly }
        if let door = closedDoor(on: path) { return "is in \(door), which user \(user) may not search" }
        let what = "cannot be \(FileAccess.words(purpose)) by user \(user)"
        guard number == EACCES, let status = FileStatus(path) else {
            return "\(what): \(SystemError.message(number))"
        }
        return "\(what) (owner \(status.ownerName), mode \(status.shownMode))"
    }

    /// The first directory on the way to a path that the user is not allowed to search; nil if all are open.
    /// A message about it helps more than one about the file.
    func closedDoor(on path: String) -> String? {
        var directory = ""
        for part in path.split(separator: "/").dropLast() {
            directory += "/\(part)"
            if faccessat(AT_FDCWD, directory, X_OK, AT_EACCESS) != 0, errno == EACCES { return directory }
        }
        return nil
    }

    /// The access as a word for messages: "read and written".
    private static func words(_ purpose: Int32) -> String {
        // Execute permission alone is asked for programs only; together with others it is about directories.
        guard purpose != X_OK else { return "run" }
        let words = [(R_OK, "read"), (W_OK, "written"), (X_OK, "entered")].filter { purpose & $0.0 != 0 }.map(
            \.1)
        return words.count < 3 ? words.joined(separator: " and ") : "read, written and entered"
    }
}
