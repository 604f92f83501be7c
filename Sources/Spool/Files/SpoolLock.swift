internal import EventLoops
internal import Glibc

/// Keeps two agents from reading one spool, where both would ship the same events and remove files under each
/// other.
///
/// A lock (flock(2)) on `.spoolship/lock` in the spool. Only the agent's user may open the file, so that no
/// other user can keep an agent from starting. The lock ends with the value or the process.
public final class SpoolLock: Sendable {
    private let file: Descriptor

    /// Takes the spool for this process.
    ///
    /// - Parameter spool: the spool's directory; `.spoolship` is made in it if it is missing.
    /// - Returns: nil if the file cannot be created. In a spool that the agent cannot write to, it cannot
    ///   remove files either, so two agents may read it.
    /// - Throws: `SpoolError` with code `inUse` while another agent has it.
    public static func take(_ spool: String) throws(SpoolError) -> SpoolLock? {
        let file: Descriptor
        do throws(SystemError) {
            let folder = try SpoolState.folder(in: spool, makes: true)
            let flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
            file = try Descriptor(checking: openat(folder.raw, "lock", flags, 0o600), "openat")
        } catch {
            return nil
        }
        guard flock(file.raw, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK else {
            throw SpoolError(
                .inUse,
                "another agent reads the spool \(spool); stop it, or name another directory in "
                    + "spool.directory"
            )
        }
        return SpoolLock(file)
    }

    private init(_ file: consuming Descriptor) { self.file = file }

    /// Whether the locked file is still the one that another agent would lock: `.spoolship` may have been
    /// removed or replaced.
    public func isInPlace(in spool: String) -> Bool {
        guard let folder = try? SpoolState.folder(in: spool), let own = try? FileSystem.status(file),
            let found = try? FileSystem.status(folder.raw, FileName("lock"))
        else { return false }
        return (own.device, own.inode) == (found.device, found.inode)
    }
}
