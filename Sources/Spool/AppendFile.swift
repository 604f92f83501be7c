internal import EventLoops

/// An append file and how far it has been read. Touched by its reader only.
final class AppendFile {
    let id: FileID
    /// Where it was last seen.
    var directory: SpoolDirectory
    /// The name it was last seen under.
    var name: FileName
    /// The user id of its owner.
    var owner: UInt32 = 0
    /// Whether it is still there under that name.
    var hasName = true
    /// Whether it has been renamed since it was first seen, or was found under a rotated name.
    var isRotated = false
    /// Open while it is being read; must not be let go once it has lost its name.
    var descriptor: Descriptor?
    /// When the descriptor was last needed, as a count of uses.
    var lastUse: UInt64 = 0

    /// The place before which all was taken by the sink.
    var taken: Mark
    /// The offset before which all is durable.
    var committed: Int64
    /// What is kept to know the file again.
    var trace: FileTrace
    /// How many bytes after `taken` are known to hold no line feed.
    var scanned: Int64 = 0
    /// The size when it was last looked at.
    var size: Int64
    /// When its content was changed, as its file system said when it was last looked at; nanoseconds since 1970.
    var modified: Int64 = 0
    /// Whether it may be a copy of a file that was read, made by rotation; it is not read before that is known.
    var isCopySuspect = false
    /// Whether its last line counts as whole although it has no LF.
    var isSealed = false

    /// Whether it waits to be read.
    var isReady = false
    /// Whether the next commit has something to say about it.
    var isDirty = false
    /// When it was last seen to change.
    var lastChange: BootInstant
    /// When it was first seen.
    let firstSeen: BootInstant
    /// Since when there are bytes to read; nil when there are none.
    var unreadSince: Timestamp?
    /// When it is to be checked next; nil when no check is on the agenda.
    var checkAt: BootInstant?
    /// Whether a writer has closed it since the last change.
    var closedAfterChange = false
    /// Whether a writer had closed it before the last change.
    var closedBeforeChange = false
    /// Whether it is about to be removed.
    var isLeaving = false
    /// When it may be.
    var leavesAt = BootInstant(nanoseconds: 0)

    init(_ id: FileID, in directory: SpoolDirectory, name: FileName, size: Int64, now: BootInstant) {
        self.id = id
        self.directory = directory
        self.name = name
        self.size = size
        lastChange = now
        firstSeen = now
        taken = .start
        committed = 0
        trace = FileTrace()
    }

    /// The path relative to the spool.
    var path: FileName { directory.path(of: name.claimed ?? name) }

    /// Whether there are bytes that were not taken.
    var hasUnread: Bool { taken.offset < size }

    /// Bytes that are in the file and not in the queue.
    var unread: Int64 { max(0, size - committed) }
}
