internal import EventLoops

/// A directory of the spool. Touched by its reader only.
final class SpoolDirectory {
    /// Relative to the spool; empty for the spool itself.
    let path: FileName
    /// How far below the spool it is.
    let depth: Int
    /// What tells it from another one that has its name later.
    let id: FileID
    let inode: UInt64
    /// The app whose directory it is; in `incoming/` the file's owner decides.
    let app: String
    /// Whether it is the drop box where anyone may put files.
    let isIncoming: Bool
    /// Whether users share it, so that each one's files are judged by themselves: the drop box, and what anybody may write to.
    let isShared: Bool
    /// The top directory of the spool that it is, or is in; empty for the spool itself.
    let top: [UInt8]

    /// The kernel's number of our watch; nil while it cannot be watched.
    var watch: Int32?
    /// Whether it is looked at from time to time, because not all that happens in it is reported.
    var isPolled = false
    /// Open while it is used; the reader closes those that were not used for long.
    var descriptor: Descriptor?
    var files = FileTable<FileName>()
    /// Drop files that are still being written, as far as one can tell, and what they looked like.
    var settling: [FileName: DropStamp] = [:]
    /// Files that were refused because they had more than one name; looked at again when a name goes.
    var linked: Set<FileName> = []
    /// The directories in it that are known, by their paths.
    var children: [FileName: SpoolDirectory] = [:]
    /// While it is being listed: what is left of its names.
    var stream: DirectoryStream?
    /// Whether it has been listed, so that what is in it is known, or cannot be.
    var wasListed = false
    var isScanQueued = false
    /// Whether something came while it was being listed that listing may have missed.
    var isScanStale = false
    /// Whether it was removed or moved away.
    var isGone = false

    /// - Parameter place: whose files are in it, where its path does not say it.
    init(
        path: FileName, depth: Int, id: FileID, _ inode: UInt64, of place: ReadPlace? = nil, isOpenToAll: Bool = false
    ) {
        self.path = path
        self.depth = depth
        self.id = id
        self.inode = inode
        let first = path.bytes.prefix { $0 != UInt8(ascii: "/") }
        app = place?.app ?? (first.isEmpty ? "default" : FileName(first).text)
        top = place?.joinedTops.contains(Array(first)) == true ? [] : Array(first)
        isIncoming = place == nil && app == "incoming"
        isShared = isIncoming || place != nil && isOpenToAll
    }

    /// Whose a file of a user in it is.
    func holder(_ owner: UInt32) -> Holder { Holder(top: top, owner: isShared ? owner : nil) }

    func path(of name: FileName) -> FileName {
        path.bytes.isEmpty ? name : FileName(path.bytes + [UInt8(ascii: "/")] + name.bytes)
    }
}

/// What a drop file looked like, to see whether it is still being written.
struct DropStamp: Equatable {
    var size: Int64 = -1
    var modified = Timestamp(nanoseconds: 0)
    var changed = Timestamp(nanoseconds: 0)
    /// Since when it has been seen with more than one name; nil if it has one.
    var linkedSince: BootInstant?

    static let unknown = DropStamp()
}
