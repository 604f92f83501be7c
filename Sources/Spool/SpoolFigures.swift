public import EventLoops
public import Model

/// Something about one file or directory that a person should fix.
public struct SpoolComplaint: Sendable, Equatable {
    /// Where, relative to the spool, for people.
    public var path: String
    /// The user id of the owner.
    public var owner: UInt32
    /// The owner's name, or `uid-N` for one without.
    public var ownerName: String
    /// What is wrong and what to do.
    public var advice: String
}

/// Why a file is not opened at all.
public enum SpoolRefusal: String, Sendable, CaseIterable {
    /// A symbolic link.
    case symbolicLink = "symbolic_link"
    /// It has more than one name, so it may be somebody else's.
    case hardLink = "hard_link"
    /// A FIFO, socket or device.
    case notRegular = "not_regular"
    /// It is on another file system.
    case otherFileSystem = "other_file_system"
    /// Directories within directories, deeper than the reader goes.
    case tooDeep = "too_deep"
}

/// The state of reading the spool. A snapshot: read it from any thread, as often as you like.
public struct SpoolFigures: Sendable, Equatable {
    /// Which directory is read, whatever has its name now.
    public struct Root: Sendable, Equatable {
        /// The name by which it was opened.
        public let path: String
        let device: UInt64
        let inode: UInt64

        /// Whether its name still leads to it. Somebody may have moved it, made another, or mounted something over it.
        public var hasItsName: Bool {
            FileStatus(path).map { $0.inode == inode && $0.device == device } ?? false
        }
    }

    /// The spool's directory as it was opened; nil before.
    public var root: Root?
    package var directories = 0
    /// Of them, those that cannot be watched and are looked at every `SpoolOptions.pollInterval`.
    public var polledDirectories = 0
    /// Why directories are polled; nil when none is.
    public var pollReason: String?
    package var appendFiles = 0
    /// Directories with append files that wait because an app or owner has too many.
    public var crowdedDirectories = 0
    package var openFiles = 0
    /// Drop files that were seen and are not read yet; not those in a directory that is still being listed.
    public var waitingDropFiles = 0
    /// Bytes that are in files and not yet in the queue, as far as files were looked at.
    public var unreadBytes: ByteCount = 0
    /// Since when the oldest unread byte has been seen; nil when all is read.
    public var oldestUnread: Timestamp?
    /// Whether reading waits for commits.
    public var isHeldBack = false
    /// What a person should fix, at most sixteen of them.
    public var complaints: [SpoolComplaint] = []
    /// Files and directories that the agent may not read or remove, those not listed in `complaints` included.
    public var inaccessible = 0
    /// What waits for a second try because a system call has failed: files, directories, removals; by why.
    public var secondTries: [SpoolObstacle: Int] = [:]
    /// Files that are passed over because of their names, as far as they are remembered.
    public var passedOver = 0
    /// Some of them, for people.
    public var passedOverNames: [String] = []
    /// Files that are never opened, as far as they are remembered.
    public var refusedFiles = 0
    /// Some of them and why, for people: of whoever has fewest first.
    public var refusedNames: [String] = []
    /// Set when fewer files are held open than the options say, because the process may not open more.
    public var loweredOpenFiles: LoweredLimit?

    /// How many files are held open at most, and how many descriptors the process may have.
    public struct LoweredLimit: Sendable, Equatable {
        package var files: Int
        package var limit: Int
    }

    package var bytesRead: ByteCount = 0
    /// Drop files read to the end.
    public var dropFilesRead = 0
    /// Append files that went when they had been read: rotated away, given up by their writers, or deleted.
    public var appendFilesRead = 0
    package var filesRemoved = 0
    /// Append files that lost their name to another: rotation by rename.
    public var rotations = 0
    /// Append files that became shorter or were rewritten: rotation by copy-and-truncate.
    public var truncations = 0
    /// Bytes that vanished before they could be read.
    public var bytesGivenUp: ByteCount = 0
    /// Lines quarantined here because they were too long.
    public var linesTooLong = 0
    /// Zeros between lines that were passed over: no line begins with them.
    public var zeroBytes: ByteCount = 0
    package var commits = 0
    /// How often the kernel's queue of changes overflowed and everything was listed again.
    public var overflows = 0
    /// How often a file could not be opened because of somebody's file lease, and was tried again later.
    public var leaseWaits = 0
    /// Files not opened, by reason.
    public var refused: [SpoolRefusal: Int] = [:]
    /// Errors of system calls that reading survives, such as a failed unlink; each is logged too.
    public var errors = 0

    package init() {}

    /// The figures of two readers together; the directory is the first one's.
    public func adding(_ other: SpoolFigures) -> SpoolFigures {
        var sum = self
        for place in [
            \SpoolFigures.directories, \.polledDirectories, \.appendFiles, \.crowdedDirectories, \.openFiles,
            \.waitingDropFiles, \.inaccessible, \.passedOver, \.refusedFiles, \.dropFilesRead, \.appendFilesRead,
            \.filesRemoved, \.rotations, \.truncations, \.linesTooLong, \.commits, \.overflows, \.leaseWaits, \.errors,
        ] { sum[keyPath: place] += other[keyPath: place] }
        for place in [\SpoolFigures.unreadBytes, \.bytesRead, \.bytesGivenUp, \.zeroBytes] {
            sum[keyPath: place] += other[keyPath: place]
        }
        sum.oldestUnread = [oldestUnread, other.oldestUnread].compactMap { $0 }.min()
        sum.isHeldBack = isHeldBack || other.isHeldBack
        sum.complaints = Array((complaints + other.complaints).prefix(16))
        sum.refusedNames = Array((refusedNames + other.refusedNames).prefix(8))
        sum.secondTries.merge(other.secondTries, uniquingKeysWith: +)
        sum.refused.merge(other.refused, uniquingKeysWith: +)
        sum.pollReason = pollReason ?? other.pollReason
        sum.loweredOpenFiles = loweredOpenFiles ?? other.loweredOpenFiles
        return sum
    }
}
