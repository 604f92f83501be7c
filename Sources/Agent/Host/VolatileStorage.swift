internal import CLinux
internal import Glibc

/// File systems in memory: what is on them is gone after a reboot.
package enum VolatileStorage {
    /// Name of the file system of a path if it is in memory, such as `tmpfs`; otherwise nil. Also nil below
    /// /tmp: newer systems have it in memory, and a queue there is only a trial.
    ///
    /// Source: statfs(2), the list of types.
    package static func name(of path: String) -> String? {
        var kind = statfs()
        guard !path.hasPrefix("/tmp/"), statfs(path, &kind) == 0 else { return nil }
        return switch UInt32(truncatingIfNeeded: kind.f_type) {
        case 0x0102_1994: "tmpfs"
        case 0x8584_58F6: "ramfs"
        default: nil
        }
    }

    /// What to say about a state directory on such a file system.
    package static func warning(_ stateDirectory: String, on fileSystem: String) -> String {
        "\(stateDirectory) is on \(fileSystem): a reboot loses what waits in the queue,"
            + " and how far files were read; put it on a disk"
    }
}
