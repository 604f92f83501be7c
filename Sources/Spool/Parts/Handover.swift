internal import EventLoops
internal import Model

/// Guards the exact hand-over (the first invariant of docs/ARCHITECTURE.md): the lines of a file and the
/// position up to which they were read go into the same commit.
///
/// Bytes that the sink takes are counted in the open `pass`, which also holds the positions of files. A
/// commit closes the pass, and a closed pass never changes: the next line belongs to the next pass. At most
/// two commits are under way; then nothing is offered to the sink, so that the backlog stays in files and not
/// in memory (backpressure).
///
/// `Handover` knows neither the sink nor the loop: it says what to do next (`Step`), and the reader reports
/// the result.
struct Handover {
    /// What follows a slice of work.
    enum Step: Equatable {
        /// More work.
        case work
        /// A commit.
        case commit
        /// No work is left. If lines are held, a commit is due now or later (`dripDue`).
        case quiet(holdsLines: Bool)
    }

    /// When a commit is due.
    struct Limits {
        /// Bytes taken after which a commit is due.
        var bytes: Int
        /// Shortest time between commits that are not due by their size.
        var linger: Duration
        /// The same while nothing urgent is held; nil: `linger`.
        var patience: Duration?
        /// Most drop files in a commit: their records are written and the files removed in one piece of work.
        static let files = 512
        /// Most positions of files in a commit.
        static let checkpoints = 2_048
        /// Longest time that lines wait while reading continues and finds no more lines.
        static let wait = Duration.milliseconds(100)
    }

    /// Most commits under way.
    static let mostUnderWay = 2

    /// Changes to files that the next commit will make durable.
    var pass = Pass()
    /// Commits that have begun and not ended; at most `mostUnderWay`.
    private(set) var underWay = 0
    /// The pass whose lines the sink has not closed yet. Nothing is offered meanwhile: those lines would
    /// enter this commit without their positions.
    private var closing: ClosedPass?
    /// Whether the sink wants a commit before it takes more.
    private var isWanted = false
    /// Whether the sink has parked the rest of the file that was offered last.
    private(set) var isParked = false
    /// Count of files that the sink has parked, because they wait for something other than a commit.
    private(set) var parked = 0
    /// When the last commit began.
    private(set) var last = BootInstant(nanoseconds: 0)
    private(set) var counts = Counts()
    private let limits: Limits

    /// What the sink has taken since the start.
    struct Counts: Equatable {
        var bytes: ByteCount = 0
        /// Commits that succeeded.
        var commits = 0
        /// Lines and events that exceeded the limit and were quarantined.
        var tooLong = 0
    }

    init(_ limits: Limits) { self.limits = limits }

    // MARK: Whether anything may be offered

    /// Whether the sink has not closed its part of the last commit yet.
    var isClosing: Bool { closing != nil }

    /// Whether reading waits for a commit to end.
    var isFull: Bool { underWay >= Handover.mostUnderWay }

    /// Whether reading has waited for commits for at least this time.
    func isHeldBack(_ now: BootInstant, longerThan wait: Duration) -> Bool {
        isFull || underWay > 0 && now - last >= wait
    }

    // MARK: What the sink takes

    /// Another file's lines are offered next.
    mutating func beginFile() { isParked = false }

    /// The sink has taken lines.
    mutating func took(_ bytes: Int) {
        assert(bytes >= 0 && !isClosing, "lines enter a commit that is closed")
        pass.bytes += bytes
        counts.bytes += ByteCount(Int64(bytes))
    }

    /// The sink has taken a quarantine record.
    ///
    /// - Parameters:
    ///   - bytes: its size; many small records are a large commit too.
    ///   - isTooLong: whether the record is of a line or an event that exceeds the limit.
    mutating func quarantined(_ bytes: Int, isTooLong: Bool) {
        assert(!isClosing, "a quarantine record enters a commit that is closed")
        if isTooLong {
            counts.tooLong += 1
        }
        pass.hasQuarantine = true
        pass.bytes += 256 + bytes
    }

    /// The sink has taken less than all, and wants a commit first, or has parked the rest of the file.
    mutating func refused(isParked: Bool) {
        self.isParked = isParked
        if isParked {
            parked += 1
        } else {
            isWanted = true
        }
    }

    /// The sink wants the lines again that it has parked.
    mutating func resumed() {
        assert(parked > 0, "a file is resumed that was not parked")
        parked -= 1
    }

    // MARK: Commits

    /// Requests a commit although nothing was read.
    mutating func want() { isWanted = true }

    var isEmpty: Bool { pass.isEmpty && !isWanted }

    /// Whether the next thing to do is a commit.
    var isDue: Bool {
        isWanted || pass.bytes >= limits.bytes || pass.done.count >= Limits.files
            || pass.checkpointCount >= Limits.checkpoints
    }

    /// What follows a slice of work.
    ///
    /// - Parameter isQuiet: whether there is no more work.
    func next(_ now: BootInstant, isQuiet: Bool) -> Step {
        if isDue { return .commit }
        if isQuiet { return .quiet(holdsLines: !pass.isEmpty && underWay == 0) }
        // Reading may continue for hours without finding more lines.
        let isLate = underWay == 0 && !pass.isEmpty && now - last >= max(Limits.wait, limits.linger)
        return isLate ? .commit : .work
    }

    /// Time at which a small commit is due: some time after the last one, so that lines that come one by one
    /// share commits.
    func dripDue(isUrgent: Bool) -> BootInstant {
        last + (isUrgent ? limits.linger : limits.patience ?? limits.linger)
    }

    /// Closes the pass and begins a commit. `closed` must follow, with the pass in its final form.
    mutating func beginCommit(_ now: BootInstant) -> Pass {
        assert(!isClosing && !isFull, "a commit begins while nothing may be committed")
        assert(pass.isConsistent, "a commit writes and deletes the same checkpoint")
        defer { pass = Pass() }
        isWanted = false
        underWay += 1
        last = now
        return pass
    }

    /// Keeps the closed pass until the task of its commit begins (`takeClosed`).
    mutating func closed(_ pass: ClosedPass) {
        assert(closing == nil && underWay > 0, "a pass is closed twice")
        closing = pass
    }

    /// The sink closes its part now: what it takes from here on belongs to the next commit.
    mutating func takeClosed() -> ClosedPass? {
        assert(closing == nil || underWay > 0, "a closed pass has no commit")
        defer { closing = nil }
        return closing
    }

    /// A commit has ended, successfully or not.
    mutating func endCommit(isDurable: Bool) {
        assert(underWay > 0, "a commit ends that did not begin")
        underWay -= 1
        if isDurable {
            counts.commits += 1
        }
    }

    /// Discards the open pass because a commit has failed for good: the next start reads its lines again.
    mutating func giveUp() {
        pass = Pass()
        isWanted = false
    }
}
