internal import EventLoops
internal import Model

/// Measures the backlog in the spool while reading is held back by a full queue. Without it the figures would
/// stand still while the spool grows.
///
/// A *census* counts drop files by listing directories. A *look* asks append files for their sizes, because
/// inotify reports that a file has changed but not how long it is. Both run in slices and take a bounded part
/// of the time. `Backlog` says when the next one is due and what comes next in it; the reader lists and
/// opens, and reports what it found.
struct Backlog {
    /// Drop files that were counted.
    struct Drops: Equatable {
        var files = 0
        var bytes: ByteCount = 0
        /// When the oldest of them got its content or its name.
        var oldest: Timestamp?

        mutating func add(size: Int64, changed: Timestamp, _ now: Timestamp) {
            files += 1
            bytes += ByteCount(size)
            oldest = min(oldest ?? now, changed)
        }
    }

    /// How a slice of a census or of a look ended.
    enum Slice: Equatable {
        /// There is more to count, at once.
        case goOn
        /// The census is complete; the next one is due after this time.
        case done(next: Duration)
    }

    /// How long reading must be held back before a census begins, and the shortest time between two.
    static let censusInterval = Duration.seconds(2)
    /// A census takes at most a fiftieth of the time.
    private static let censusShare = 50
    /// Looking at the sizes of waiting files takes at most a twentieth of the time: 100,000 files are looked
    /// at every few seconds.
    private static let sizesShare = 20
    /// Names or files looked at before other work gets its turn.
    static let slice = 256
    /// Shortest time between two releases of freed memory, and least number of bytes read in between: a
    /// release costs milliseconds.
    private static let releaseInterval = Duration.seconds(10)
    private static let releaseBytes: Int64 = 16 << 20

    /// The drop files that the last census counted, less those read since.
    private(set) var drops = Drops()
    /// The census under way; nil between two.
    private var census: Census?
    /// Whether a census is on the agenda or under way; otherwise each slice of work would plan another one.
    private var isCensusPlanned = false
    /// The pass over the sizes of waiting files that is under way; nil between two passes.
    private var look: Look?
    /// Whether such a pass is on the agenda or under way; otherwise each slice of work would plan another
    /// one.
    private var isLookPlanned = false
    /// Time of the last release of memory, and the bytes that were read until then.
    private var released = (time: BootInstant(nanoseconds: 0), read: ByteCount(0))

    /// A census under way.
    private struct Census {
        /// Directories that are still to be listed, taken from the end.
        var directories: [SpoolDirectory]
        /// The directory that is being listed, kept open between two slices.
        var stream: (directory: SpoolDirectory, stream: DirectoryStream)?
        let began: BootInstant
        var drops = Drops()
    }

    /// A pass over the sizes of waiting files.
    private struct Look {
        /// Files whose size is still to be looked at, last one first.
        var files: [AppendFile]
        let began: BootInstant
    }

    // MARK: Plans

    /// Returns true if the caller must put a census on the agenda.
    mutating func planCensus() -> Bool {
        defer { isCensusPlanned = true }
        return !isCensusPlanned
    }

    /// Returns true if the caller must put a pass over sizes on the agenda.
    mutating func planLook() -> Bool {
        defer { isLookPlanned = true }
        return !isLookPlanned
    }

    // MARK: A census

    /// Whether a census is under way: its count is not whole yet.
    var isCounting: Bool { census != nil }

    /// Begins a census of these directories, or continues the one that is under way.
    mutating func beginCensus(_ directories: @autoclosure () -> [SpoolDirectory], _ now: BootInstant) {
        if census == nil {
            census = Census(directories: directories(), began: now)
        }
    }

    /// The directory that is being listed; nil if the next one must be opened.
    var listed: (directory: SpoolDirectory, stream: DirectoryStream)? { census?.stream }

    /// The directory to open next; nil if all were listed.
    mutating func nextDirectory() -> SpoolDirectory? { census?.directories.popLast() }

    mutating func began(_ stream: DirectoryStream, of directory: SpoolDirectory) {
        census?.stream = (directory, stream)
    }

    mutating func endedListing() { census?.stream = nil }

    /// A drop file waits.
    mutating func counted(size: Int64, changed: Timestamp, _ now: Timestamp) {
        census?.drops.add(size: size, changed: changed, now)
    }

    /// A slice of the census has ended.
    ///
    /// - Parameter isWhole: whether all directories were listed: then its count takes the place of the last
    ///   one's.
    mutating func endSlice(isWhole: Bool, _ now: BootInstant) -> Slice {
        guard isWhole, let census else { return .goOn }
        drops = census.drops
        self.census = nil
        return .done(next: max(Backlog.censusInterval, (now - census.began) * Backlog.censusShare))
    }

    /// Reading continues: no census is wanted.
    mutating func endCensus() {
        isCensusPlanned = false
        census = nil
    }

    /// Subtracts a drop file that was read. A new file may not have been counted, so the count stops at 0.
    mutating func read(size: Int64) {
        drops.bytes -= ByteCount(size)
        drops.files = max(0, drops.files - 1)
    }

    /// Resets the count: no drop file is left.
    mutating func forget() { drops = Drops() }

    // MARK: A look at sizes

    /// The next slice of files whose size is looked at. The first slice of a look notes all waiting files.
    mutating func filesToAsk(_ waiting: @autoclosure () -> [AppendFile], _ now: BootInstant) -> [AppendFile] {
        if look == nil {
            look = Look(files: waiting(), began: now)
        }
        guard let count = look?.files.count else { return [] }
        let next = Array((look?.files.suffix(Backlog.slice) ?? []).reversed())
        look?.files.removeLast(min(count, Backlog.slice))
        return next
    }

    /// A slice of the look has ended.
    ///
    /// - Parameter interval: shortest time between two looks.
    mutating func endLookSlice(_ now: BootInstant, interval: Duration) -> Slice {
        guard let look, look.files.isEmpty else { return .goOn }
        self.look = nil
        return .done(next: max(interval, (now - look.began) * Backlog.sizesShare))
    }

    /// Ends the look, because reading continues.
    mutating func endLook() {
        isLookPlanned = false
        look = nil
    }

    // MARK: Memory

    /// Whether freed memory is to be returned to the system now (malloc_trim). Lines of all lengths from
    /// thousands of files fragment the heap: after twenty minutes under a hostile user malloc held 39 MB, of
    /// which 14 were in use.
    ///
    /// - Parameter read: bytes that were read since the start.
    mutating func releasesMemory(_ now: BootInstant, read: ByteCount) -> Bool {
        guard now - released.time >= Backlog.releaseInterval,
            (read - released.read).value >= Backlog.releaseBytes
        else {
            return false
        }
        released = (now, read)
        return true
    }
}
