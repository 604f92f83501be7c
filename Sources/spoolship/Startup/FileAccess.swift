internal import EventLoops
internal import Glibc

/// What this process's user (the agent's by now, by `AgentUser`) may do with files: the kernel's own answer.
struct FileAccess: Sendable {
    /// The user's name, for messages.
    let user: String
    let userID: uid_t

    static var own: FileAccess {
        let own = geteuid()
        return FileAccess(user: FileStatus.name(ofUser: own), userID: own)
    }

    /// Why the user may not, be it for a closed door on the way; nil when the user may, or there is no such file. `purpose` is as
    /// the kernel takes it: `R_OK | X_OK`.
    func refusal(_ path: String, _ purpose: Int32) -> String? {
        let readOnly = "is on a file system that is mounted read-only"
        guard faccessat(AT_FDCWD, path, purpose, AT_EACCESS) != 0 else {
            return purpose & W_OK != 0 && WholeFile.isReadOnly(path)
                ? "\(readOnly), or has had an error: unmount it, check it (fsck), and mount it again" : nil
        }
        let number = errno
        if number == ENOENT { return nil }
        if number == EROFS { return readOnly }
        if let door = closedDoor(on: path) { return "is in \(door), which user \(user) may not search" }
        let what = "cannot be \(FileAccess.words(purpose)) by user \(user)"
        guard number == EACCES, let status = FileStatus(path) else { return "\(what): \(SystemError.message(number))" }
        return "\(what) (owner \(status.ownerName), mode \(status.shownMode))"
    }

    /// The first directory on the way that the user may not enter.
    func closedDoor(on path: String) -> String? {
        var directory = ""
        for part in path.split(separator: "/").dropLast() {
            directory += "/\(part)"
            if faccessat(AT_FDCWD, directory, X_OK, AT_EACCESS) != 0, errno == EACCES { return directory }
        }
        return nil
    }

    private static func words(_ purpose: Int32) -> String {
        // A program is run, and nothing else; what is entered is a directory.
        guard purpose != X_OK else { return "run" }
        let words = [(R_OK, "read"), (W_OK, "written"), (X_OK, "entered")].filter { purpose & $0.0 != 0 }.map(\.1)
        return words.count < 3 ? words.joined(separator: " and ") : "read, written and entered"
    }
}
