internal import CLinux
internal import Glibc

/// File leases (F_SETLEASE in fcntl(2)), by which a process can ask the kernel whether another process has a
/// file open for writing.
///
/// While a lease is held, a writer's `open` blocks until it is given back, so it is held for moments only.
enum FileLease {
    /// Asks who has a file open for writing. The lease is held if the answer is `absent`.
    static func ask(_ descriptor: Int32) -> FileFacts.Writers {
        guard clinux_take_lease(descriptor) != 0 else { return .absent }
        switch errno {
        case EAGAIN: return .present
        // Without CAP_LEASE, on file systems without leases, or if a security module forbids them.
        case EACCES, EPERM, EINVAL, EOPNOTSUPP, ENOLCK: return .unknown
        default: return .unanswered
        }
    }

    /// Whether a process may have the file open for writing; false if the kernel cannot be asked. No lease is
    /// held afterwards.
    static func hasWriter(_ descriptor: Int32) -> Bool {
        switch ask(descriptor) {
        case .absent:
            giveBack(descriptor)
            return false
        case .unknown, .notAsked: return false
        // After a temporary error the file is asked again later, like a file with a writer.
        case .present, .unanswered: return true
        }
    }

    /// Whether the lease is still held. A writer that opens the file breaks it.
    static func isHeld(_ descriptor: Int32) -> Bool { clinux_holds_lease(descriptor) == 1 }

    /// Gives the lease back. This fails only if no lease is held.
    static func giveBack(_ descriptor: Int32) { _ = clinux_return_lease(descriptor) }
}
