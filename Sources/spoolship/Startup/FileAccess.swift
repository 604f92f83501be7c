internal import EventLoops
internal import Glibc

/// What this process's user (the agent's by now, by `AgentUser`) may do with files: the kernel's own answer.
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

    static var own: FileAccess {
        let own = geteuid()
        return FileAccess(user: FileStatus.name(ofUser: own), userID: own)
    }

    /// Why the user may not, be it for a closed door on the way; nil when the user may, or there is no such file.
    func refusal(_ path: String, _ purpose: Purpose) -> String? {
        guard faccessat(AT_FDCWD, path, Int32(purpose.rawValue), AT_EACCESS) != 0, errno != ENOENT else { return nil }
        let number = errno
        if number == EROFS { return "is on a file system that is mounted read-only" }
        if let door = closedDoor(on: path) { return "is in \(door), which user \(user) may not search" }
        guard number == EACCES, let status = FileStatus(path) else {
            return "cannot be \(purpose.words) by user \(user): \(SystemError.message(number))"
        }
        return "cannot be \(purpose.words) by user \(user) (owner \(status.ownerName), mode \(status.shownMode))"
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
