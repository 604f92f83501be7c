internal import EventLoops
internal import Model

/// Problems with paths that are reported to people, each once until it is resolved: paths that somebody must
/// fix, paths that are never opened, names that are not read, and files with zeros.
///
/// Paths are plain names here; complaints know neither directories nor files. Each table is bounded by holder
/// (`HeldPaths`), so that one user's bad files do not hide those of another.
struct Complaints {
    /// Most paths of each table.
    static let most = HeldPaths<SpoolComplaint>.most

    /// Paths that a person has to fix, for example their permissions.
    private var unresolved = HeldPaths<SpoolComplaint>()
    /// Paths that are never opened: links, FIFOs and the like.
    private var refusals = HeldPaths<SpoolRefusal>()
    /// Files that are not read because of their names.
    private var passedOver = HeldPaths<Void>()
    /// Files in which zeros were found and logged; emptied when full, which may repeat a message.
    private var withZeros: Set<FileName> = []
    /// Time of the last message about a file that was rewritten and is sent again.
    private var lastRepeat: BootInstant?
    /// Files that were not opened since the start, by reason.
    private(set) var refused: [SpoolRefusal: Int] = [:]
    /// Errors of system calls since the start, after which reading continued.
    private(set) var errors = 0

    // MARK: What a person has to fix

    var isEmpty: Bool { unresolved.isEmpty }

    /// Whether a further complaint only fits if it replaces one of a holder with more complaints.
    var isFull: Bool { unresolved.count >= Complaints.most }

    subscript(path: FileName) -> SpoolComplaint? { unresolved[path] }

    func hasAny(below path: FileName) -> Bool { !unresolved.paths(below: path).isEmpty }

    /// Adds a complaint. True if it is new and must be logged; false if the path has one already, or if there
    /// is no room.
    mutating func add(_ complaint: SpoolComplaint, at path: FileName, of owner: UInt32?) -> Bool {
        guard unresolved[path] == nil else { return false }
        return unresolved.add(complaint, at: path, of: owner)
    }

    mutating func resolve(_ path: FileName) { unresolved.remove(path) }

    // MARK: What is never opened

    /// Whether there are no refusals and no complaints. Then a path that is reached need not be looked up,
    /// which spares building its name.
    var isQuiet: Bool { unresolved.isEmpty && refusals.isEmpty }

    func isRefused(_ path: FileName) -> Bool { refusals[path] != nil }

    /// Adds a refusal and counts it. True if it is new and must be logged.
    mutating func refuse(_ reason: SpoolRefusal, at path: FileName, of owner: UInt32?) -> Bool {
        guard refusals[path] == nil, refusals.add(reason, at: path, of: owner) else { return false }
        refused[reason, default: 0] += 1
        return true
    }

    mutating func readmit(_ path: FileName) { refusals.remove(path) }

    // MARK: Names of no kind that is read

    mutating func passOver(_ path: FileName) {
        if passedOver[path] == nil {
            _ = passedOver.add((), at: path, of: nil)
        }
    }

    // MARK: Errors

    /// Counts a system call that failed, after which reading continues.
    mutating func failed() { errors += 1 }

    // MARK: Zeros

    /// Notes that a file holds zeros. True if that is new and must be logged.
    mutating func foundZeros(in path: FileName) -> Bool {
        if withZeros.count >= Complaints.most {
            withZeros.removeAll()
        }
        return withZeros.insert(path).inserted
    }

    // MARK: Files that were rewritten

    /// Whether a rewritten file that is sent again may be logged: at most one an hour, because a program that
    /// rewrites its log does so all the time.
    func mayReportRepeat(_ now: BootInstant) -> Bool { lastRepeat.map { now - $0 >= .seconds(3600) } ?? true }

    mutating func repeatReported(_ now: BootInstant) { lastRepeat = now }

    // MARK: What happens to paths

    /// Resolves the complaint and the refusal of a path that was opened or is gone.
    mutating func reached(_ path: FileName) {
        unresolved.remove(path)
        refusals.remove(path)
    }

    /// Forgets what was said about a name that is gone. A complaint about its file stays: the file may have
    /// another name by now.
    mutating func nameGone(_ path: @autoclosure () -> FileName) {
        guard !passedOver.isEmpty || !refusals.isEmpty else { return }
        let path = path()
        passedOver.remove(path)
        refusals.remove(path)
    }

    /// A directory is gone, with all names in it.
    mutating func directoryGone(_ path: FileName) {
        passedOver.removeAll(below: path)
        refusals.removeAll(below: path)
    }

    /// Shows complaints again, because they may contain the name of the user that was found.
    mutating func ownerNamed() { unresolved.touch() }

    // MARK: For `status`

    /// Some of the complaints, and the number of all; nil if nothing has changed since the last call.
    mutating func takeUnresolved(atMost most: Int) -> (shown: [SpoolComplaint], count: Int)? {
        unresolved.takeChanged(atMost: most).map { ($0.map(\.value), unresolved.count) }
    }

    /// As above, for refusals.
    mutating func takeRefusals(atMost most: Int) -> (
        shown: [(path: FileName, reason: SpoolRefusal)], count: Int
    )? {
        refusals.takeChanged(atMost: most).map { ($0.map { ($0.path, $0.value) }, refusals.count) }
    }

    /// As above, for files that are not read because of their names.
    mutating func takePassedOver(atMost most: Int) -> (shown: [FileName], count: Int)? {
        passedOver.takeChanged(atMost: most).map { ($0.map(\.path), passedOver.count) }
    }
}
