internal import CLinux
internal import EventLoops
internal import Glibc

/// Opens files that only root and one user can change or replace.
///
/// Each directory in which a name of the path is looked up must belong to root or the user, and be writable
/// by no other user. A directory further up may have the sticky bit instead, as `/tmp`: there others cannot
/// rename entries that are not theirs. Names are looked up one by one with openat(2), so that what was
/// checked is what is opened.
enum TrustedPath {
    /// Why a path is not trusted, or an error of the system.
    struct Refusal: Error {
        /// The errno; nil if the path is not trusted.
        var number: Int32?
        /// What is wrong, beginning with the path that it concerns.
        var message: String
    }

    /// Opens a file. Symbolic links are refused, or followed if only trusted users can change them. The last
    /// name is opened with O_NOFOLLOW in any case.
    static func open(
        _ path: String, flags: Int32, user: UInt32, followsLinks: Bool
    ) throws(Refusal) -> Descriptor {
        guard path.hasPrefix("/") else { throw Refusal(number: EINVAL, message: "\(path) is not absolute") }
        var directory = try open("/", in: AT_FDCWD, way, "/")
        // Names that are left to look up, the next one last.
        var names = Array(path.split(separator: "/").map(String.init).reversed())
        var links = 0
        // Path of `directory`, for messages.
        var directoryPath = ""
        while let name = names.popLast() {
            if let target = try link(name, in: directory, at: directoryPath) {
                guard followsLinks else { throw Refusal(message: "\(directoryPath)/\(name) is a link") }
                links += 1
                guard links <= RealPath.mostLinks else {
                    throw Refusal(number: ELOOP, message: "\(path) leads in a circle")
                }
                try check(directory, directoryPath, user: user, mayBeSticky: true)
                // In a directory with the sticky bit other users can make links, but only links of their own.
                guard let status = FileStatus(link: name, in: directory.raw) else {
                    throw system("\(directoryPath)/\(name)")
                }
                guard status.belongs(toRootOr: user) else {
                    throw Refusal(message: "\(directoryPath)/\(name) belongs to another user")
                }
                names += target.split(separator: "/").map(String.init).reversed()
                if target.hasPrefix("/") {
                    directory = try open("/", in: AT_FDCWD, way, "/")
                    directoryPath = ""
                }
                continue
            }
            try check(directory, directoryPath, user: user, mayBeSticky: !names.isEmpty)
            guard !names.isEmpty else {
                return try open(
                    name, in: directory.raw, flags | O_NOFOLLOW | O_CLOEXEC, "\(directoryPath)/\(name)")
            }
            directory = try open(name, in: directory.raw, way, "\(directoryPath)/\(name)")
            directoryPath =
                name == ".."
                ? String(directoryPath[..<(directoryPath.lastIndex(of: "/") ?? directoryPath.startIndex)])
                : "\(directoryPath)/\(name)"
        }
        throw Refusal(number: EISDIR, message: "\(path) is a directory")
    }

    /// Flags for directories on the path.
    private static let way = CLINUX_O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC

    /// Opens a name in a directory.
    private static func open(
        _ name: String, in directory: Int32, _ flags: Int32, _ path: String
    ) throws(Refusal) -> Descriptor {
        let raw = openat(directory, name, flags)
        guard raw >= 0 else { throw system(path) }
        return Descriptor(raw)
    }

    /// Target of a symbolic link; nil if the name is not a link, or does not exist.
    private static func link(
        _ name: String, in directory: borrowing Descriptor, at directoryPath: String
    ) throws(Refusal) -> String? {
        if let target = RealPath.target(of: name, in: directory.raw) { return target }
        guard [EINVAL, ENOENT, ENOTDIR].contains(errno) else { throw system("\(directoryPath)/\(name)") }
        return nil
    }

    /// Checks that other users can neither add, rename nor remove names in a directory.
    private static func check(
        _ directory: borrowing Descriptor, _ directoryPath: String, user: UInt32, mayBeSticky: Bool
    ) throws(Refusal) {
        let name = directoryPath.isEmpty ? "/" : directoryPath
        guard let status = try? FileStatus(of: directory.raw) else { throw system(name) }
        guard status.belongs(toRootOr: user) else {
            throw Refusal(message: "the directory \(name) belongs to another user")
        }
        guard !status.isWritableByOthers || mayBeSticky && status.mode & 0o1000 != 0 else {
            throw Refusal(
                message: "the directory \(name) can be written by others (mode \(status.shownMode))")
        }
    }

    /// The refusal for the current errno.
    private static func system(_ path: String) -> Refusal {
        let number = errno
        return Refusal(number: number, message: "\(path): \(SystemError.clause(number))")
    }
}
