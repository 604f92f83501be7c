internal import EventLoops
internal import Glibc

/// Finds the first directory of a path that this process may not enter, and advises how to allow it.
///
/// A sandbox gives the same error (EACCES) as permissions do, but then no change of permissions helps.
enum ClosedWay {
    /// Facts about the directory.
    struct Door: Equatable {
        var path: String
        /// The user id of its owner: looking up the name may take long.
        var owner: UInt32
        /// As four octal digits.
        var mode: String
        var isForAll: Bool
        /// Whether the directory itself is to be listed, rather than one below it.
        var isListed = false
    }

    /// Advice for a path that was refused with EACCES.
    static func advice(to path: String) -> String {
        let doors = doors(of: path)
        let door = doors.first { faccessat(AT_FDCWD, $0, X_OK, AT_EACCESS) != 0 && errno == EACCES }
        guard let door, let status = FileStatus(door) else {
            return "the agent may not list it: setfacl -m u:spoolship:rx \(path)"
        }
        return advice(
            for: Door(
                path: door, owner: status.owner, mode: status.shownMode,
                isForAll: status.mode & 0o001 != 0, isListed: door == doors.last))
    }

    static func advice(for door: Door) -> String {
        // systemd mounts such a directory over what ProtectHome= and InaccessiblePaths= hide.
        if door.owner == 0, door.mode == "0000" {
            let setting =
                ["/home", "/root", "/run/user"].contains(door.path)
                ? "write ProtectHome=read-only" : "see InaccessiblePaths= and TemporaryFileSystem="
            return "spoolship.service hides \(door.path) from the agent: \(setting) in a drop-in"
                + " (systemctl edit spoolship)"
        }
        if door.isForAll {
            return "all users may enter \(door.path), but the agent is refused:"
                + " by its sandbox, or by a security module (SELinux, AppArmor: journalctl -k)"
        }
        let owner = door.owner == 0 ? "root" : "user id \(door.owner)"
        return "the agent may not enter \(door.path) (owner \(owner), mode \(door.mode)):"
            + " setfacl -m u:spoolship:\(door.isListed ? "rx" : "x") \(door.path)"
    }

    /// The directories on the way, from the root on, and the path itself.
    private static func doors(of path: String) -> [String] {
        var way = ""
        return path.split(separator: "/").map { part in
            way += "/\(part)"
            return way
        }
    }
}
