internal import EventLoops
internal import Glibc

/// The directory that is read: the descriptor beneath which everything is opened (openat2(2)), and checks
/// whether the directory still exists.
final class SpoolRoot {
    /// Number of checks whether the spool exists, after a directory in it was removed.
    private static let mostChecks = 10

    var descriptor: Descriptor
    /// The path and the number of the directory, for people and to see whether the path leads elsewhere by
    /// now; nil until it was asked for.
    var identity: SpoolFigures.Root?
    /// Whether other machines or a user-space file system may change the directory unnoticed by inotify; then
    /// it is polled too.
    var isRemote = false
    /// True while a path lookup on a possibly hung file system is pending; no second one is begun meanwhile.
    var isAwaited = false
    /// Checks that are still to be made; 0 if none is planned.
    private var checksLeft = 0

    init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }

    var raw: Int32 { descriptor.raw }

    /// A directory in the root was removed, perhaps with the root itself. The kernel does not report the
    /// removal of the root while its descriptor is open, so it is checked. Returns true if the
    /// caller must schedule a check.
    func planChecks() -> Bool {
        defer { checksLeft = SpoolRoot.mostChecks }
        return checksLeft == 0
    }

    /// Notes the result of a check. Returns true if the caller must schedule another one.
    func checked(isThere: Bool) -> Bool {
        checksLeft = isThere ? checksLeft - 1 : 0
        return checksLeft > 0
    }

    /// Opens the spool, and checks that openat2 works.
    static func open(_ path: String) throws(SpoolError) -> Descriptor {
        do throws(SystemError) {
            let root = try FileSystem.openRoot(path)
            _ = try FileSystem.openDirectory(root.raw, FileName("."))
            return root
        } catch {
            // Without openat2 an agent would start, look healthy and read nothing, so the start fails.
            let message =
                switch error.number {
                case ENOSYS:
                    "openat2 is not available: it needs Linux 5.6,"
                        + " and no sandbox that forbids it (RestrictSUIDSGID= does)"
                case ENOENT, ENOTDIR: "cannot open the spool \(path): create it, or set spool.directory"
                default: "cannot open the spool \(path): \(SystemError.message(error.number))"
                }
            throw SpoolError(.noDirectory, message, cause: error)
        }
    }
}
