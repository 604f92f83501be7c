public import EventLoops

/// Resources that all readers of one loop share: the buffer for blocks, and the inotify instance for files
/// that are read in place, which others on the loop may use (`watchNames`). The spool has an instance of its
/// own, so that an overflow of its event queue does not make other readers list everything again.
///
/// To be used on the loop's thread only; readers hold it as a `LoopBound`.
public final class SharedReading {
    let buffer = ReadBuffer()
    let places: KernelQueue
    /// The mount whose files are read on this loop; nil on the loop that reads disks of this machine only.
    private let mount: DistantMount?
    /// Called when the path of a place leads to a mount that another loop has to read, with whether the
    /// place was read here until then; nil if the readers of this loop read whatever they find.
    private let moved: (@Sendable (ReadPlace, DistantMount, Bool) -> Void)?

    /// For readers that live on this loop.
    ///
    /// - Parameters:
    ///   - mount: the mount whose files are read on it, besides those of this machine's disks.
    ///   - moved: called when the path of a place leads to another mount that may never answer, which is not
    ///     read then; with whether the place was read until then.
    public init(
        on loop: EventLoop, of mount: DistantMount? = nil,
        moved: (@Sendable (ReadPlace, DistantMount, Bool) -> Void)? = nil
    ) {
        places = KernelQueue(on: loop)
        self.mount = mount
        self.moved = moved
    }

    /// The mount whose files are read on this loop, by its number.
    var ownMounts: [String] { mount.map { [$0.number] } ?? [] }

    /// Whether a place whose path leads into a mount is left to the loop of that mount. Only the loop that
    /// reads disks of this machine leaves it before it is known where the path ends.
    func leaves(_ place: ReadPlace, to mount: Mount, wasRead: Bool) -> Bool {
        guard let moved, self.mount == nil else { return false }
        moved(place, DistantMount(mount), wasRead)
        return true
    }

    /// Whether a directory of a place is read on this loop. If not, its mount is reported.
    func mayRead(_ directory: borrowing Descriptor, of place: ReadPlace, wasRead: Bool) -> Bool {
        guard let moved else { return true }
        let found = Mount(of: directory.raw)
        guard !found.isLocal, DistantMount(found) != mount else { return true }
        moved(place, DistantMount(found), wasRead)
        return false
    }
}
