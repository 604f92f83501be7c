internal import CLinux
internal import EventLoops
internal import Glibc

/// Opens files that are trusted because nobody else can change them: nor put another one, or a link, in their place.
///
/// Each directory in which a name of the path is looked up must belong to root or the user and be writable by nobody else.
/// Further up one with the sticky bit will do, as `/tmp`: nobody else can rename there what is not theirs.
enum TrustedPath {
    /// Why a path is not to be trusted, or what the system says of it.
    struct Refusal: Error {
        /// The errno; nil where the path is not to be trusted.
        var number: Int32?
        /// What is wrong, beginning with the name that it is about.
        var message: String
    }

    /// Follows links that nobody else can change, or refuses all; the system itself never follows one in the last place.
    static func open(
        _ path: String, flags: Int32, user: UInt32, followsLinks: Bool
    ) throws(Refusal) -> Descriptor {
        guard path.hasPrefix("/") else { throw Refusal(number: EINVAL, message: "\(path) is not absolute") }
        var directory = try open("/", in: AT_FDCWD, way, "/")
        // What is left of the way, the next name last.
        var names = Array(path.split(separator: "/").map(String.init).reversed())
        var links = 0
        var place = ""
        while let name = names.popLast() {
            if let target = try link(name, in: directory, at: place) {
                guard followsLinks else { throw Refusal(message: "\(place)/\(name) is a link") }
                links += 1
                guard links <= RealPath.mostLinks else {
                    throw Refusal(number: ELOOP, message: "\(path) leads in a circle")
                }
                try check(directory, place, user: user, mayBeSticky: true)
                // In a directory with the sticky bit others can make links, of their own.
                guard let status = FileStatus(link: name, in: directory.raw) else { throw system("\(place)/\(name)") }
                guard status.belongs(toRootOr: user) else {
                    throw Refusal(message: "\(place)/\(name) belongs to another user")
                }
                names += target.split(separator: "/").map(String.init).reversed()
                if target.hasPrefix("/") {
                    directory = try open("/", in: AT_FDCWD, way, "/")
                    place = ""
                }
                continue
            }
            try check(directory, place, user: user, mayBeSticky: !names.isEmpty)
            guard !names.isEmpty else {
                return try open(name, in: directory.raw, flags | O_NOFOLLOW | O_CLOEXEC, "\(place)/\(name)")
            }
            directory = try open(name, in: directory.raw, way, "\(place)/\(name)")
            place = name == ".." ? String(place[..<(place.lastIndex(of: "/") ?? place.startIndex)]) : "\(place)/\(name)"
        }
        throw Refusal(number: EISDIR, message: "\(path) is a directory")
    }

    private static let way = CLINUX_O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC

    private static func open(
        _ name: String, in directory: Int32, _ flags: Int32, _ place: String
    ) throws(Refusal) -> Descriptor {
        let raw = openat(directory, name, flags)
        guard raw >= 0 else { throw system(place) }
        return Descriptor(raw)
    }

    /// Where a link leads; nil for what is none, or is not there.
    private static func link(
        _ name: String, in directory: borrowing Descriptor, at place: String
    ) throws(Refusal) -> String? {
        if let target = RealPath.target(of: name, in: directory.raw) { return target }
        guard [EINVAL, ENOENT, ENOTDIR].contains(errno) else { throw system("\(place)/\(name)") }
        return nil
    }

    private static func check(
        _ directory: borrowing Descriptor, _ place: String, user: UInt32, mayBeSticky: Bool
    ) throws(Refusal) {
        let name = place.isEmpty ? "/" : place
        guard let status = try? FileStatus(of: directory.raw) else { throw system(name) }
        guard status.belongs(toRootOr: user) else {
            throw Refusal(message: "the directory \(name) belongs to another user")
        }
        guard !status.isWritableByOthers || mayBeSticky && status.mode & 0o1000 != 0 else {
            throw Refusal(message: "the directory \(name) can be written by others (mode \(status.shownMode))")
        }
    }

    private static func system(_ place: String) -> Refusal {
        let number = errno
        return Refusal(number: number, message: "\(place): \(SystemError.message(number).lowercased())")
    }
}
