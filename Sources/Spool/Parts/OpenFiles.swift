/// The append files and directories that are held open, and the limits on their number.
///
/// `OpenFiles` opens and closes nothing: it names the descriptors to close, least recently used first. A file
/// stays open if it cannot be opened again or must not be let go: it has no name, it is being removed and
/// holds its file lease, it is being compared with others, or it was used last. So the limit may be exceeded,
/// but only by files of these kinds.
struct OpenFiles {
    /// Most directories that are held open, if the process may open enough descriptors.
    static let mostDirectories = 64
    /// Descriptors reserved for the queue, for requests and for clients of the ports.
    static let reserve = 24
    private static let fewestFiles = 2
    private static let fewestDirectories = 2

    /// Files and directories to close because limits were lowered.
    struct Closing {
        var files: [AppendFile] = []
        var directories: [SpoolDirectory] = []
        /// The new limit on files; nil if it was not lowered.
        var mostFiles: Int?
    }

    /// The configured limit on files (`spool.max_open_files`).
    private let configured: Int
    /// The limit in force; less than `configured` while the process is short of descriptors.
    private(set) var mostFiles: Int
    private(set) var mostDirectories = OpenFiles.mostDirectories
    private var files: [AppendFile] = []
    /// The open directories in the order in which they were opened; the first is closed first.
    private var directories: [SpoolDirectory] = []
    /// Files that were read to their ends, in the order in which they are to be closed, the next one last,
    /// each with its last use. They are found many at once: with a high limit each file that is opened would
    /// otherwise cost a look at thousands.
    private var victims: [(file: AppendFile, lastUse: UInt64)] = []
    /// A file that is being compared with others. Those are opened meanwhile, and must not close this one.
    private var compared: AppendFile?
    /// Whether the process has run out of descriptors, so that the limits are halved for a while.
    private(set) var isShort = false
    /// Count of uses. Each file keeps the count of its last use; the file with the lowest is closed first.
    private var uses: UInt64 = 0
    /// Attempts to open a file that failed because of another process's file lease.
    private(set) var leaseWaits = 0
    /// The lowered limit on files, for people; nil while the configured one is in force.
    private(set) var lowered: SpoolFigures.LoweredLimit?

    /// - Parameter mostFiles: the limit that is configured.
    init(mostFiles: Int) { (configured, self.mostFiles) = (mostFiles, mostFiles) }

    // MARK: Files

    var count: Int { files.count }

    var isFull: Bool { files.count >= mostFiles }

    /// Whether another file may be opened without closing a file with unread lines. If such a file were
    /// deleted while it is closed, its lines would be lost.
    var mayOpenMore: Bool {
        !isFull || files.contains { $0.hasName && !$0.hasUnread && $0.stage == .reading }
    }

    /// Notes a use of a file, whether or not it is open.
    mutating func use(_ file: AppendFile) {
        uses += 1
        file.lastUse = uses
    }

    /// A file was opened.
    ///
    /// - Returns: files to close, so that the limit holds.
    mutating func opened(_ file: AppendFile) -> [AppendFile] {
        assert(!files.contains { $0 === file }, "a file is opened twice")
        use(file)
        files.append(file)
        return excess()
    }

    /// Notes that the reader has closed a file for a reason of its own.
    mutating func closed(_ file: AppendFile) { files.removeAll { $0 === file } }

    /// A file could not be opened because another process holds a file lease.
    mutating func waitedForLease() { leaseWaits += 1 }

    /// A file is compared with others until `endComparison`.
    mutating func compare(_ file: AppendFile) { compared = file }

    mutating func endComparison() { compared = nil }

    /// Nameless files beyond the limit, those with the fewest unread bytes first. They are to be given up:
    /// while reading is held back nothing else bounds their number, because each deleted file keeps its
    /// descriptor.
    func namelessBeyondLimit() -> [AppendFile] {
        let nameless = files.filter { !$0.hasName && $0.stage != .leaving && $0 !== compared }
        return Array(nameless.sorted { $0.unread < $1.unread }.prefix(max(0, nameless.count - mostFiles)))
    }

    /// Removes and returns all files, for closing them at the reader's stop.
    mutating func takeAll() -> [AppendFile] {
        defer {
            files = []
            victims = []
        }
        return files
    }

    /// Takes out files to close until the limit holds, or until no other file may be closed.
    private mutating func excess() -> [AppendFile] {
        var closing: [AppendFile] = []
        while files.count > mostFiles, let index = victim() {
            files.swapAt(index, files.count - 1)
            closing.append(files.removeLast())
        }
        let isWithin = files.count <= mostFiles || !files.contains { mayClose($0) }
        assert(isWithin, "more open files than the limit")
        return closing
    }

    /// The file to close next. Files that are read to the end come first, because nothing is lost if they are
    /// deleted while they are closed.
    private mutating func victim() -> Int? {
        if let known = nextKnownVictim() { return known }
        let closable = files.filter { mayClose($0) }
        let read = closable.filter { !$0.hasUnread }.sorted { $0.lastUse < $1.lastUse }
        guard let next = read.first ?? closable.min(by: { $0.lastUse < $1.lastUse }) else { return nil }
        victims = read.dropFirst().prefix(mostFiles / 8).reversed().map { ($0, $0.lastUse) }
        return index(of: next)
    }

    /// The next of the files that were found before, unless it was used since or must stay open now.
    private mutating func nextKnownVictim() -> Int? {
        while let (file, lastUse) = victims.popLast() {
            guard file.lastUse == lastUse, !file.hasUnread, mayClose(file) else { continue }
            if let index = index(of: file) { return index }
        }
        return nil
    }

    private func index(of file: AppendFile) -> Int? { files.firstIndex { $0 === file } }

    /// Whether a file can be opened again and is not needed now.
    private func mayClose(_ file: AppendFile) -> Bool {
        file.lastUse != uses && file !== compared && file.hasName && file.stage != .leaving
    }

    // MARK: Directories

    /// A directory was opened.
    ///
    /// - Returns: directories to close.
    mutating func opened(_ directory: SpoolDirectory) -> [SpoolDirectory] {
        directories.append(directory)
        return excessDirectories()
    }

    mutating func closed(_ directory: SpoolDirectory) { directories.removeAll { $0 === directory } }

    /// Takes out directories to close until the limit holds.
    private mutating func excessDirectories() -> [SpoolDirectory] {
        let count = max(0, directories.count - mostDirectories)
        defer { directories.removeFirst(count) }
        return Array(directories.prefix(count))
    }

    // MARK: Limits

    /// Sets the limits at the start and after a shortage: the configured ones, or less if the process has
    /// fewer descriptors left.
    ///
    /// - Parameters:
    ///   - limit: descriptors that the process may have (RLIMIT_NOFILE).
    ///   - open: descriptors that the process has open.
    mutating func fit(limit: Int, open: Int) -> Closing {
        isShort = false
        lowered = nil
        mostFiles = configured
        mostDirectories = OpenFiles.mostDirectories
        let room = limit - open - OpenFiles.reserve
        guard room < mostFiles + mostDirectories + OpenFiles.reserve else { return Closing() }
        return lower(files: room / 2, directories: room / 4, limit)
    }

    /// Halves the number of open files and directories, because the process has no descriptors left.
    ///
    /// - Parameter limit: as for `fit`.
    mutating func shed(limit: Int) -> Closing {
        isShort = true
        return lower(
            files: min(mostFiles, files.count) / 2, directories: min(mostDirectories, directories.count) / 2,
            limit)
    }

    /// Lowers the limits, but not below the fewest files and directories that are needed to read at all.
    private mutating func lower(files count: Int, directories directoryCount: Int, _ limit: Int) -> Closing {
        var closing = Closing()
        mostDirectories = min(mostDirectories, max(OpenFiles.fewestDirectories, directoryCount))
        closing.directories = excessDirectories()
        let count = min(mostFiles, max(OpenFiles.fewestFiles, count))
        guard count < mostFiles else { return closing }
        mostFiles = count
        closing.files = excess()
        closing.mostFiles = count
        lowered = .init(files: count, limit: limit)
        return closing
    }
}
