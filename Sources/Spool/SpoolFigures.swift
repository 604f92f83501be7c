public import EventLoops
public import Model

/// A problem with one file or directory that a person should fix.
public struct SpoolComplaint: Sendable, Equatable {
    /// The path relative to the spool, as text.
    public var path: String
    /// The user id of the owner.
    public var owner: UInt32
    /// The owner's name, or `uid-N` for one without.
    public var ownerName: String
    /// What is wrong and what to do.
    public var advice: String

    package init(path: String, owner: UInt32, ownerName: String, advice: String) {
        self.path = path
        self.owner = owner
        self.ownerName = ownerName
        self.advice = advice
    }
}

/// Why a file is not opened at all.
public enum SpoolRefusal: String, Sendable, CaseIterable {
    /// A symbolic link.
    case symbolicLink = "symbolic_link"
    /// The file has more than one name (hard link), so it may belong to another user's data.
    case hardLink = "hard_link"
    /// A FIFO, socket or device.
    case notRegular = "not_regular"
    /// Another file system is mounted there.
    case otherFileSystem = "other_file_system"
    /// The directory is deeper than 16 levels.
    case tooDeep = "too_deep"
}

/// The state of reading the spool; a snapshot that can be passed to any thread. Counters count since the
/// start of the reader.
public struct SpoolFigures: Sendable, Equatable {
    /// The identity of the directory that is read.
    public struct Root: Sendable, Equatable {
        /// The path by which the directory was opened.
        public let path: String
        let device: UInt64
        let inode: UInt64

        /// Whether the path still leads to the directory. It may have been moved, replaced, or mounted over.
        public var hasItsName: Bool {
            FileStatus(path).map { $0.inode == inode && $0.device == device } ?? false
        }
    }

    /// The directory that is read; nil before it was opened.
    public var root: Root?
    /// Known directories.
    package var directories = 0
    /// Directories that cannot be watched and are polled every `SpoolOptions.pollInterval`.
    public var polledDirectories = 0
    /// Why directories are polled; nil if none is.
    public var pollReason: String?
    /// Known append files.
    package var appendFiles = 0
    /// Directories with append files that wait because an app or owner has too many.
    public var crowdedDirectories = 0
    /// Append files that are held open.
    package var openFiles = 0
    /// Drop files that were seen and are not read yet. While reading is held back they are counted by
    /// listing; otherwise files in directories that are still being listed are not included.
    public var waitingDropFiles = 0
    /// Readers that have started and not yet listed each directory once: files may wait that nobody has
    /// counted.
    public var unlistedReaders = 0
    /// Bytes that are in files and not yet in the queue, as far as files were examined.
    public var unreadBytes: ByteCount = 0
    /// Time since when the oldest unread byte waits; nil if everything is read.
    public var oldestUnread: Timestamp?
    /// Whether reading waits for commits.
    public var isHeldBack = false
    /// Problems that a person should fix, at most 16.
    public var complaints: [SpoolComplaint] = []
    /// Count of files and directories that the agent may not read or remove, including those not in
    /// `complaints`.
    public var inaccessible = 0
    /// Count of tasks that wait for a retry after a failed system call, by cause.
    public var secondTries: [SpoolObstacle: Int] = [:]
    /// Some of the paths that wait for a retry, as the file system has them.
    public var secondTryPaths: [String] = []
    /// Files that end in the middle of a line and are read up to it, those that wait longest first.
    public var unfinishedLines: [UnfinishedLine] = []
    /// Files that were truncated or removed before they were read, the last of them.
    public var lostFiles: [LostFile] = []
    /// Files that are not read because of their names, at most as many as are remembered.
    public var passedOver = 0
    /// Some names of files that are passed over.
    public var passedOverNames: [String] = []
    /// Files that are never opened, at most as many as are remembered.
    public var refusedFiles = 0
    /// Some names of refused files with the reasons, first those of users and apps with the fewest.
    public var refusedNames: [String] = []
    /// Set when fewer files are held open than the options say, because the process may not open more.
    public var loweredOpenFiles: LoweredLimit?

    /// The beginning of a line at the end of a file, whose rest is not written yet.
    public struct UnfinishedLine: Sendable, Equatable {
        /// The app of the file.
        public var app: String
        /// The whole path.
        public var path: String
        /// When the bytes were seen first.
        public var since: Timestamp
        /// Length of the beginning.
        public var bytes: Int64

        package init(app: String, path: String, since: Timestamp, bytes: Int64) {
            self.app = app
            self.path = path
            self.since = since
            self.bytes = bytes
        }

        /// Most of them that are named.
        static let most = 16
        /// How long a line may lack its end before it is reported: a writer's buffer may hold the rest
        /// for some seconds.
        public static let patience = Duration.seconds(60)
    }

    /// Bytes of a file that disappeared before they were read.
    public struct LostFile: Sendable, Equatable {
        /// How the bytes disappeared.
        public enum Way: Sendable {
            case truncated
            case removed
            /// The agent knows what it had seen of the file when it stopped; there may have been more.
            case removedWhileStopped
            /// The file was written to and compressed by a program whose archives are not read, while the
            /// agent was stopped. The path and the bytes are those of the archive.
            case packedWhileStopped
        }

        /// The whole path.
        public var path: String
        /// How many bytes are known to be lost; of an archive that is not read, its size.
        public var bytes: Int64
        /// When the loss was reported.
        public var at: Timestamp
        /// How the bytes disappeared.
        public var way: Way

        package init(path: String, bytes: Int64, at: Timestamp, way: Way) {
            self.path = path
            self.bytes = bytes
            self.at = at
            self.way = way
        }

        /// Most of them that are named.
        package static let most = 8
        /// How long a loss is named.
        public static let memory = Duration.seconds(86_400)
    }

    /// The lowered limit on open files, and the descriptors that the process may have.
    public struct LoweredLimit: Sendable, Equatable {
        package var files: Int
        package var limit: Int
    }

    /// Bytes that the sink has taken.
    package var bytesRead: ByteCount = 0
    /// Drop files read to the end.
    public var dropFilesRead = 0
    /// Append files that are gone after they were read: rotated away, abandoned by their writers, or deleted.
    public var appendFilesRead = 0
    /// Files that the agent has removed or archived.
    package var filesRemoved = 0
    /// Append files that lost their name to another: rotation by rename.
    public var rotations = 0
    /// Append files that became shorter or were rewritten: rotation by copy-and-truncate.
    public var truncations = 0
    /// Bytes that disappeared before they could be read.
    public var bytesGivenUp: ByteCount = 0
    /// Lines quarantined here because they were too long.
    public var linesTooLong = 0
    /// Last lines without LF of rotated or deleted files that counted as complete after a long silence,
    /// although no writer was seen to close the file.
    public var unclosedLines = 0
    /// Zero bytes between lines that were skipped.
    public var zeroBytes: ByteCount = 0
    /// Successful commits.
    package var commits = 0
    /// Overflows of the kernel's event queue, after each of which everything was listed again.
    public var overflows = 0
    /// Attempts to open a file that failed because of another process's file lease; each is repeated later.
    public var leaseWaits = 0
    /// Files not opened, by reason.
    public var refused: [SpoolRefusal: Int] = [:]
    /// Errors of system calls that reading survives, such as a failed unlink; each is logged too.
    public var errors = 0

    package init() {}

    /// What was counted since the start, without what is so at the moment.
    public var counters: SpoolFigures {
        var counters = SpoolFigures()
        for figure in SpoolFigures.counts { counters[keyPath: figure] = self[keyPath: figure] }
        for figure in SpoolFigures.countedBytes { counters[keyPath: figure] = self[keyPath: figure] }
        counters.refused = refused
        return counters
    }

    private static var counts: [WritableKeyPath<SpoolFigures, Int>] {
        [
            \.dropFilesRead, \.appendFilesRead, \.filesRemoved, \.rotations, \.truncations, \.linesTooLong,
            \.unclosedLines, \.commits, \.overflows, \.leaseWaits, \.errors,
        ]
    }

    private static var countedBytes: [WritableKeyPath<SpoolFigures, ByteCount>] {
        [\.bytesRead, \.bytesGivenUp, \.zeroBytes]
    }

    /// The figures of two readers together; the directory is the first one's.
    public func adding(_ other: SpoolFigures) -> SpoolFigures {
        var sum = self
        for figure in [
            \SpoolFigures.directories, \.unlistedReaders, \.polledDirectories, \.appendFiles,
            \.crowdedDirectories, \.openFiles,
            \.waitingDropFiles, \.inaccessible, \.passedOver, \.refusedFiles, \.dropFilesRead,
            \.appendFilesRead,
            \.filesRemoved, \.rotations, \.truncations, \.linesTooLong, \.unclosedLines, \.commits,
            \.overflows,
            \.leaseWaits, \.errors,
        ] { sum[keyPath: figure] += other[keyPath: figure] }
        for figure in [\SpoolFigures.unreadBytes, \.bytesRead, \.bytesGivenUp, \.zeroBytes] {
            sum[keyPath: figure] += other[keyPath: figure]
        }
        sum.oldestUnread = [oldestUnread, other.oldestUnread].compactMap { $0 }.min()
        sum.isHeldBack = isHeldBack || other.isHeldBack
        sum.complaints = Array((complaints + other.complaints).prefix(16))
        sum.refusedNames = Array((refusedNames + other.refusedNames).prefix(8))
        sum.secondTries.merge(other.secondTries, uniquingKeysWith: +)
        sum.secondTryPaths = Array((secondTryPaths + other.secondTryPaths).prefix(SecondTries.mostNamed))
        sum.unfinishedLines = Array(
            (unfinishedLines + other.unfinishedLines).sorted { $0.since < $1.since }
                .prefix(UnfinishedLine.most))
        sum.lostFiles = (lostFiles + other.lostFiles).sorted { $0.at < $1.at }.suffix(LostFile.most)
        sum.refused.merge(other.refused, uniquingKeysWith: +)
        sum.pollReason = pollReason ?? other.pollReason
        sum.loweredOpenFiles = loweredOpenFiles ?? other.loweredOpenFiles
        return sum
    }
}
