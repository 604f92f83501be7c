internal import CLinux
public import EventLoops
internal import Glibc

/// Reports names that appear in one directory. It shares the inotify instance of the files that are read in
/// place, because a user has only 128 of them (`fs.inotify.max_user_instances`).
///
/// To be used on the loop's thread only.
public final class NameWatch {
    private let member: KernelQueue.Member

    fileprivate init(_ member: KernelQueue.Member) { self.member = member }

    /// Ends the watch.
    public func stop() { member.leave() }
}

extension SharedReading {
    /// Watches a directory for names that are made, moved there, or closed by a writer.
    ///
    /// Reports may be late by the time for which readers let changes gather.
    ///
    /// - Parameter appeared: called on the loop with each name; with nil if any name may have appeared,
    ///   because reports were lost or the directory is gone.
    public func watchNames(
        in directory: String, _ appeared: @escaping (_ name: String?) -> Void
    ) throws(SystemError) -> NameWatch {
        // A watch belongs to the inode. Without IN_MASK_ADD a reader of this directory would miss changes.
        let mask = UInt32(IN_CREATE | IN_MOVED_TO | IN_CLOSE_WRITE | IN_ONLYDIR) | UInt32(IN_MASK_ADD)
        let inbox = NameInbox()
        let member = try places.join(isPatient: true) { inbox.report(to: appeared) }
        inbox.member = member
        do {
            _ = try member.watch(directory, mask)
        } catch {
            member.leave()
            throw error
        }
        return NameWatch(member)
    }
}

/// Takes the changes out of the inbox of a member, and reports their names.
private final class NameInbox {
    weak var member: KernelQueue.Member?

    func report(to appeared: (String?) -> Void) {
        guard let bytes = member?.takeChanges() else { return }
        bytes.withUnsafeBytes { bytes in
            var changes = KernelWatch.changes(in: bytes)
            while let change = changes.next() {
                switch change.kind {
                case .created, .movedHere, .closedByWriter: appeared(change.name.text)
                case .overflow, .watchEnded: appeared(nil)
                default: break
                }
            }
        }
    }
}
