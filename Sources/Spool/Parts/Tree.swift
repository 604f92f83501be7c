internal import EventLoops

/// The known directories, by path.
///
/// Three rules hold. A known directory is in its parent's `children`, if the parent is known too.
/// `count(of:)` is the number of an app's directories; each app has its own bound. No descriptor outlives its
/// directory, because another directory may have the path when they are used.
///
/// `Tree` opens, watches and lists nothing.
final class Tree {
    private var directories: [FileName: SpoolDirectory] = [:]
    /// Count of directories of each app.
    private var counts: [String: Int] = [:]
    /// Apps with refused directories, because they had too many.
    private var crowded: Set<String> = []
    /// The one directory in the drop box that was reported, and whether the last listing of the drop box
    /// found it. Only one is reported, because any user can make thousands.
    private var nested: (path: FileName, wasSeen: Bool)?
    /// The directories that wait to be listed.
    var listing = Listing()
    /// Links that lead to directories, or may do so later.
    var linked = LinkedDirectories()

    subscript(path: FileName) -> SpoolDirectory? { directories[path] }

    /// The root: the spool, or the directory of a place; nil while it is missing.
    var top: SpoolDirectory? { directories[FileName("")] }

    var all: Dictionary<FileName, SpoolDirectory>.Values { directories.values }

    var count: Int { directories.count }

    func count(of app: String) -> Int { counts[app, default: 0] }

    /// Adds a directory, and links it to its parent.
    func add(_ directory: SpoolDirectory) {
        assert(directories[directory.path] == nil, "a directory takes the path of one that is known")
        directories[directory.path] = directory
        if directory.depth > 0 {
            directories[directory.path.parent]?.children[directory.path] = directory
        }
        counts[directory.app, default: 0] += 1
    }

    /// Removes a directory that is gone, and closes it; its path is free for another directory.
    ///
    /// - Returns: its child directories, which the caller must remove too.
    func remove(_ directory: SpoolDirectory) -> [SpoolDirectory] {
        assert(!directory.isGone, "a directory goes twice")
        directory.isGone = true
        directory.descriptor = nil
        defer { directory.children = [:] }
        listing.forget(directory)
        guard directories.removeValue(forKey: directory.path) != nil else {
            return Array(directory.children.values)
        }
        directories[directory.path.parent]?.children[directory.path] = nil
        let left = counts[directory.app, default: 1] - 1
        counts[directory.app] = left == 0 ? nil : left
        return Array(directory.children.values)
    }

    // MARK: Bounds

    /// Whether an app may have another directory. If not, the refusal is noted for `hasRoomAgain`.
    func hasRoom(for app: String, most: Int) -> Bool {
        guard count(of: app) >= most else { return true }
        crowded.insert(app)
        return false
    }

    /// Whether an app with refused directories has room again. True once, and the caller lists the app's
    /// directories to find the refused ones. This takes an eighth of the bound to become free; otherwise each
    /// removed directory would have all others listed.
    func hasRoomAgain(for app: String, most: Int) -> Bool {
        guard !crowded.isEmpty, count(of: app) < most * 7 / 8 else { return false }
        return crowded.remove(app) != nil
    }

    // MARK: Directories in the drop box

    /// Notes a directory in the drop box, where none is allowed. Returns true if it must be reported, because
    /// no other one is.
    func foundNested(_ path: FileName) -> Bool {
        guard nested == nil || nested?.path == path else { return false }
        nested = (path, true)
        return true
    }

    /// Forgets a directory of the drop box that is gone. True if it was the reported one.
    func forgetNested(_ path: FileName) -> Bool {
        guard nested?.path == path else { return false }
        nested = nil
        return true
    }

    /// The drop box is listed from its beginning.
    func beginDropBoxListing() { nested?.wasSeen = false }

    /// The drop box was listed.
    ///
    /// - Returns: the reported directory, if it was not found.
    func endDropBoxListing() -> FileName? {
        guard let found = nested, !found.wasSeen else { return nil }
        nested = nil
        return found.path
    }
}

/// The directories that wait to be listed, and those whose files wait for room.
struct Listing {
    /// Directories that wait to be listed or are being listed, in a queue for each app.
    private var waiting = FairQueue<SpoolDirectory>()
    /// Directories with append files for which there was no room, by the holders of the files. A holder
    /// without directories means that they are being listed again.
    private var crowded: [Holder: [FileName: SpoolDirectory]] = [:]
    /// Count of directories that are being listed.
    private var open = 0
    /// Whether every directory has been listed once since the start.
    private(set) var isFirstDone = false
    /// The patterns of a place that were seen before; nil for a spool.
    var sight: FirstSight?

    /// Whether the reader is still finding files that existed when a pattern was seen for the first time.
    var isSeeing: Bool { sight.map { !$0.isOver } ?? false }

    /// Whether no directory waits to be listed, and no work depends on the end of a listing.
    var isDone: Bool { isFirstDone && waiting.isEmpty && !isSeeing }

    var isIdle: Bool { waiting.isEmpty }

    /// How many directories wait.
    var count: Int { waiting.count }

    /// The used share of the app whose directory is next; nil if no directory waits.
    mutating func least(_ shares: Shares) -> Int64? { waiting.least(shares) }

    /// Queues a directory to be listed. A directory that is being listed is listed once more afterwards,
    /// because new names may be before the position that was reached in it. True if the directory was queued.
    mutating func queue(_ directory: SpoolDirectory) -> Bool {
        guard !directory.isScanQueued else {
            directory.isScanStale = true
            return false
        }
        directory.isScanQueued = true
        waiting.append(directory, to: directory.app)
        return true
    }

    /// The directory whose names are read next.
    ///
    /// - Parameters:
    ///   - most: most directories that are listed at a time; each holds a descriptor.
    ///   - mayList: whether a directory may be listed now; false while its app has enough files waiting.
    mutating func next(
        _ shares: Shares, most: Int, mayList: (SpoolDirectory) -> Bool
    ) -> (line: String, directory: SpoolDirectory)? {
        let hasRoom = open < most
        let next = waiting.popFirst(shares) { _, directory in
            if directory.isGone { return true }
            return hasRoom || directory.stream != nil ? mayList(directory) : false
        }
        return next.map { ($0.line, $0.element) }
    }

    /// Returns a directory that has more names to its line, behind the turns of other apps.
    mutating func putBack(_ directory: SpoolDirectory, to line: String) {
        waiting.putBack(directory, to: line)
    }

    /// A directory was opened to be listed.
    mutating func began(_ stream: DirectoryStream, of directory: SpoolDirectory) {
        assert(directory.stream == nil, "a directory is listed twice at a time")
        directory.stream = stream
        open += 1
    }

    /// A directory cannot be listed now.
    mutating func cannotBegin(_ directory: SpoolDirectory) { directory.isScanQueued = false }

    /// A directory was listed, or the listing failed.
    mutating func ended(_ directory: SpoolDirectory) {
        assert(directory.stream != nil && open > 0, "a listing ends that did not begin")
        directory.stream = nil
        open -= 1
        directory.wasListed = true
        directory.isScanQueued = false
    }

    /// Notes that every directory has been listed. True if this is the first time.
    mutating func endFirst() -> Bool {
        defer { isFirstDone = true }
        return !isFirstDone
    }

    // MARK: Files for which there is no room

    /// Count of directories that wait for room.
    var crowdedCount: Int { crowded.values.reduce(0) { $0 + $1.count } }

    /// Notes a directory with files of a holder that has too many files.
    mutating func crowd(_ holder: Holder, in directory: SpoolDirectory) {
        crowded[holder, default: [:]][directory.path] = directory
    }

    /// Directories to list again, because the holders of their files have room again.
    mutating func takeCrowded(where hasRoom: (Holder) -> Bool) -> [SpoolDirectory] {
        var found: [SpoolDirectory] = []
        for (holder, directories) in crowded where !directories.isEmpty && hasRoom(holder) {
            crowded[holder] = [:]
            found += directories.values
        }
        return found
    }

    /// Holders whose directories were listed again without finding a file without room.
    mutating func takeUncrowded() -> [Holder] {
        let holders = crowded.filter(\.value.isEmpty).map(\.key)
        for holder in holders { crowded[holder] = nil }
        return holders
    }

    /// A directory is gone, and no file in it waits for room.
    mutating func forget(_ directory: SpoolDirectory) {
        for holder in crowded.keys { crowded[holder]?[directory.path] = nil }
    }
}
