package import EventLoops
package import Glibc

/// The process at the other end of a Unix socket, as the kernel identifies it.
package struct PeerCredentials: Sendable {
    let processID: Int32
    let userID: UInt32
    /// The effective group and the supplementary groups.
    let groups: [UInt32]
}

/// Makes and connects Unix sockets (unix(7)).
package enum UnixSocket {
    /// Longest path in bytes: `sun_path` has 108 with the zero at its end.
    package static let longestPath = 107

    /// Connects to a socket; nil with `errno` set if that fails.
    ///
    /// - Parameter waits: whether to wait until a busy server accepts; must be false on a loop.
    package static func connect(to path: String, waits: Bool = true) -> Descriptor? {
        let type = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | (waits ? 0 : SOCK_NONBLOCK.rawValue)
        let raw = socket(AF_UNIX, Int32(type), 0)
        guard raw >= 0 else { return nil }
        let descriptor = Descriptor(raw)
        let result = withAddress(path.utf8) { Glibc.connect(raw, $0, $1) }
        guard result == 0 else {
            // Closing the descriptor would overwrite `errno`.
            let reason = errno
            _ = consume descriptor
            errno = reason
            return nil
        }
        return descriptor
    }

    /// Makes a listening socket at a path with mode 0660 and the given group.
    ///
    /// The socket is made under a temporary name, listens and has its mode before it is renamed: it is
    /// never visible with other permissions, and never refuses connections. A socket that no process
    /// listens on is replaced; one that answers, and anything that is not a socket, stays.
    static func listen(at path: String, group: UInt32?) throws(ControlError) -> Descriptor {
        guard path.utf8.count + 12 <= longestPath else {
            throw ControlError(
                .badAddress,
                "control.socket is longer than \(longestPath - 12) bytes: \(path); choose a shorter path")
        }
        try makeRoom(at: path)
        let raw = socket(
            AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
        guard raw >= 0 else { throw ControlError(.system, "no socket: \(SystemError.message(errno))") }
        let descriptor = Descriptor(raw)
        let temporary = "\(path).\(getpid())"
        // A leftover of an earlier process with the same id, if any.
        unlink(temporary)
        // On Linux the mode of an unbound socket becomes the mode of the file that `bind` makes.
        guard fchmod(raw, 0o600) == 0, withAddress(temporary.utf8, { bind(raw, $0, $1) }) == 0 else {
            throw ControlError(
                errno == EACCES ? .notPermitted : .system,
                "the control socket \(path) cannot be made: \(SystemError.message(errno))")
        }
        // If the group is right already, nothing is asked for: a sandbox may forbid chown altogether.
        if let group, FileStatus(link: temporary)?.group != group, chown(temporary, uid_t.max, group) != 0 {
            let reason = errno
            unlink(temporary)
            throw ControlError(
                .notPermitted,
                "the control socket cannot be given to group \(group): \(SystemError.message(reason)); "
                    + "make the agent's user a member of it, or set control.socket.group")
        }
        guard chmod(temporary, 0o660) == 0, Glibc.listen(raw, 128) == 0, rename(temporary, path) == 0 else {
            let reason = errno
            unlink(temporary)
            throw ControlError(
                .system, "the control socket \(path) cannot be made: \(SystemError.message(reason))")
        }
        return descriptor
    }

    /// Checks that the path is free, or holds a socket that no process answers.
    private static func makeRoom(at path: String) throws(ControlError) {
        guard let status = FileStatus(link: path) else {
            guard errno != ENOENT else { return }
            throw ControlError(
                errno == EACCES ? .notPermitted : .badAddress,
                "the control socket \(path) cannot be made: \(SystemError.message(errno)); "
                    + "its directory must exist and be writable, or set control.socket")
        }
        guard status.isSocket else {
            throw ControlError(
                .badAddress, "\(path) exists and is not a socket: remove it yourself, or set control.socket")
        }
        if connect(to: path) != nil || errno == EAGAIN {
            throw ControlError(
                .addressInUse,
                "another agent answers at \(path): stop it, or set control.socket to another path")
        }
        // Not asked at all: this says nothing about the socket.
        if errno == EMFILE {
            throw ControlError(
                .system,
                "the control socket \(path) cannot be made: \(SystemError.message(EMFILE))")
        }
        guard errno == ECONNREFUSED || errno == ENOENT else {
            throw ControlError(
                .notPermitted,
                "\(path) is another user's socket (\(SystemError.message(errno))): remove it yourself")
        }
    }

    /// `SO_PEERGROUPS` of asm-generic/socket.h, since Linux 4.13; glibc's headers may lack it.
    private static let peerGroups: Int32 = 59

    /// The process at the other end; nil if this is not a Unix socket.
    static func peer(of descriptor: Int32) -> PeerCredentials? {
        // `struct ucred` of unix(7): pid, uid, gid.
        var credentials: (Int32, UInt32, UInt32) = (0, 0, 0)
        var size = socklen_t(MemoryLayout<(Int32, UInt32, UInt32)>.size)
        var domain: Int32 = 0
        var domainSize = socklen_t(MemoryLayout<Int32>.size)
        guard getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &domain, &domainSize) == 0, domain == AF_UNIX,
            getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0
        else { return nil }
        var groupsSize: socklen_t = 0
        // Without a buffer the kernel returns the size that it needs.
        _ = getsockopt(descriptor, SOL_SOCKET, peerGroups, nil, &groupsSize)
        var groups = [UInt32](repeating: 0, count: min(65_536, Int(groupsSize) / 4))
        groupsSize = socklen_t(groups.count * 4)
        let known = getsockopt(descriptor, SOL_SOCKET, peerGroups, &groups, &groupsSize) == 0
        return PeerCredentials(
            processID: credentials.0, userID: credentials.1,
            groups: [credentials.2] + (known ? groups.prefix(Int(groupsSize) / 4) : []))
    }

    /// Passes the address of a path, or of an abstract name, which begins with a zero byte.
    package static func withAddress<Result>(
        _ name: some Collection<UInt8>, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
    ) -> Result {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name.prefix(longestPath)) }
        let size = MemoryLayout<sa_family_t>.size + min(name.count, longestPath)
        return withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(size)) }
        }
    }
}
