internal import EventLoops
internal import Glibc

/// Keeps two agents from reading one spool: each would ship what it finds, and remove it under the other.
///
/// A lock on `.spoolship/lock` in the spool, which only the agent's user may open, so that nobody else can keep an agent
/// from starting. It ends with the value, or with the process.
public final class SpoolLock: Sendable {
    private let file: Descriptor

    /// Takes the spool for this process.
    ///
    /// - Parameter spool: the spool's directory; `.spoolship` is made in it where it is missing.
    /// - Returns: nil where the file cannot be made: what cannot be written there cannot be removed either, and two may
    ///   read it.
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
                .inUse, "another agent reads the spool \(spool); stop it, or name another directory in spool.directory")
        }
        return SpoolLock(file)
    }

    private init(_ file: consuming Descriptor) { self.file = file }

    /// Whether what another agent would lock is what is locked: `.spoolship` may have been removed, or exchanged.
    public func isInPlace(in spool: String) -> Bool {
        guard let folder = try? SpoolState.folder(in: spool), let own = try? FileSystem.status(file),
            let found = try? FileSystem.status(folder.raw, FileName("lock"))
        else { return false }
        return (own.device, own.inode) == (found.device, found.inode)
    }
}
