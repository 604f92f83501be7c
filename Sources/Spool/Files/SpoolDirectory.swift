internal import EventLoops

/// A directory of the spool. Used on the reader's loop only.
final class SpoolDirectory {
    /// Path relative to the spool; empty for the spool itself.
    let path: FileName
    /// Number of levels below the spool.
    let depth: Int
    /// Identity, which differs for another directory that has the same name later.
    let id: FileID
    let inode: UInt64
    /// Links may lead to another file system, where another directory has the same identity: each root of an
    /// ext4 has.
    let device: UInt64
    /// The app of the directory; in `incoming/` the owner of each file determines the app.
    let app: String
    /// Whether the directory is the drop box, into which any user may put files.
    let isIncoming: Bool
    /// Whether users share the directory: the drop box, and directories of a place that anybody may write to.
    /// Then each user's files are compared only with his own.
    let isShared: Bool
    /// The top directory of the spool in the path; empty for the spool itself.
    let top: [UInt8]

    /// The number of the directory's inotify watch; nil while it cannot be watched.
    var watch: Int32?
    /// Whether the directory is polled, because inotify does not report all changes in it.
    var isPolled = false
    /// Open while the directory is used; the reader closes the one that was opened longest ago.
    var descriptor: Descriptor?
    /// The known append files in the directory, by name.
    var files = FileTable<FileName>()
    /// Drop files that may still be being written, with their last status.
    var settling: [FileName: DropStamp] = [:]
    /// Files that were refused because of a second hard link; looked at again when a name is deleted.
    var linked: Set<FileName> = []
    /// The known directories in this one, by path.
    var children: [FileName: SpoolDirectory] = [:]
    /// The open listing with the names that are left; nil while the directory is not being listed.
    var stream: DirectoryStream?
    /// Whether the directory was listed once, or cannot be listed. Copies wait for this, because their
    /// originals may be in it.
    var wasListed = false
    /// Whether the directory waits to be listed or is being listed.
    var isScanQueued = false
    /// Whether the directory must be listed again, because names that came during the listing may have been
    /// missed.
    var isScanStale = false
    /// Whether the directory was removed or moved away.
    var isGone = false

    /// - Parameter place: the place to which the files belong; nil in a spool, where the path names the app.
    init(
        path: FileName, depth: Int, id: FileID, _ inode: UInt64, device: UInt64 = 0,
        of place: ReadPlace? = nil, isOpenToAll: Bool = false
    ) {
        self.path = path
        self.depth = depth
        self.id = id
        self.inode = inode
        self.device = device
        let first = path.bytes.prefix { $0 != UInt8(ascii: "/") }
        app = place?.app ?? (first.isEmpty ? "default" : FileName(first).text)
        top = place?.joinedTops.contains(Array(first)) == true ? [] : Array(first)
        isIncoming = place == nil && app == "incoming"
        isShared = isIncoming || place != nil && isOpenToAll
    }

    /// The holder of a file in this directory with an owner.
    func holder(_ owner: UInt32) -> Holder { Holder(top: top, owner: isShared ? owner : nil) }

    func path(of name: FileName) -> FileName {
        path.bytes.isEmpty ? name : FileName(path.bytes + [UInt8(ascii: "/")] + name.bytes)
    }
}

/// The status of a drop file at the last look, to see whether it is still being written.
struct DropStamp: Equatable {
    var size: Int64 = -1
    var modified = Timestamp(nanoseconds: 0)
    var changed = Timestamp(nanoseconds: 0)
    /// Time since when the file was seen with more than one name; nil if it has one.
    var linkedSince: BootInstant?
    /// Time since when the file is seen like this; nil if that is not known.
    var since: BootInstant?

    static let unknown = DropStamp()

    /// Notes a look at the file; whether it has been the same for a time.
    ///
    /// Looks come at any time, for each close by a writer too, so two that find the same may be close
    /// together.
    mutating func see(_ status: FileStatus, for time: Duration, at now: BootInstant) -> Bool {
        var seen = DropStamp(size: status.size, modified: status.modified, changed: status.changed)
        seen.since = since
        guard self == seen, let since else {
            seen.since = now
            self = seen
            return false
        }
        return now - since >= time
    }
}
