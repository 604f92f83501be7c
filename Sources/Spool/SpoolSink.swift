// Spool finds the files that apps write, recognises them after renames and restarts, frames their lines,
// hands the lines to a sink (`SpoolSink`), and removes files that are safely queued.
//
// What the module promises:
// * Each complete line is handed over exactly once, in the order of its file, through rotation, kills and
//   restarts.
// * A file is removed only after the commit that covers all of it, and after that commit is durable.
// * Nothing outside the spool is opened, no link is followed, and no `open` blocks (FIFOs, devices).
// * No file changes what becomes of a file of another app or, in `incoming/`, of another user.
//
// Its parts:
// * `Reader/`: `SpoolReader`, the actor, has the order of work and one routing table. The I/O of each job is
//   a type of its own: `Directories`, `Lister`, `SpoolWatch`, `Arrivals`, `AppendReader`, `Departures`,
//   `DropFiles` and others, each of which uses only those before it.
// * `Parts/`: the reader's state, in values without I/O: `Tree` and `Listing` (directories), `Handover` and
//   `Pass` (commits), `Agenda` (timers and retries), `OpenFiles` (descriptors), `Backlog`, `Owners`,
//   `Complaints`. `KernelQueue` shares one inotify instance.
// * `Streams/`: which content a file holds and where reading continues. `Streams` is a value that a model
//   tests; `FileStep` decides when a file is sealed, removed or forgotten.
// * `Drops/`: files that are written once and read whole (`DropTable`, `DropReader`).
// * `Content/`: framing of lines, JSON texts and archives (`BlockReader`, `LineCutter`, `ObjectSplitter`,
//   `PackedLines`).
// * `Files/`: names, identities (`FileID`), traces that are kept in the queue (`FileTrace`), leases, and the
//   system calls (`FileSystem`).
// * `Turns/`: fair shares of the reader's time. `Places/`: patterns of files that are read in place.
//
// Its rules:
// * One loop, *reader*, runs everything here. Parts have no locks; a part never calls the reader or another
//   part, but returns what is to be done.
// * Lines and the position up to which their file was read go into the same commit (`Handover`).
// * Everything below the spool is hostile: names, owners, links, contents and their timing. So each table has
//   a bound, and beyond it the holder with the most entries gives way.
// * A repeated line is bad and a lost line is worse: in doubt a file counts as new.
// * The module knows nothing of SQLite, of JSON members, or of what happens to a line.
//
// Begin with the six steps in docs/ARCHITECTURE.md (the life of a file), then `SpoolReader.swift`, then
// `Streams.swift`. DESIGN.md gives the reasons.

public import Model

/// The origin of lines, for the sink.
public struct SpoolSource: Sendable, Equatable {
    /// The app: the name of its directory; `default` at the top; the name of the file's owner in `incoming/`.
    public var app: String
    /// Path of the file relative to the spool, for people: bytes that are not UTF-8 are replaced.
    public var path: String
    /// Identity of an append file for as long as it exists, across renames and restarts; nil for a drop file.
    public var producer: [UInt8]?
    /// Whether events of this file may call themselves critical when nothing else is configured: false in
    /// `incoming/`.
    public var mayBeCritical: Bool
    /// Whether a writer closed the file between the lines taken before and these. That process may have
    /// ended.
    public var wasClosed: Bool
    /// Identity of the file if the reader removes it after the commit (`mustStay`); empty otherwise.
    public var file: [UInt8] = []

    package init(
        app: String, path: String, producer: [UInt8]?, mayBeCritical: Bool = true, wasClosed: Bool = false
    ) {
        self.app = app
        self.path = path
        self.producer = producer
        self.mayBeCritical = mayBeCritical
        self.wasClosed = wasClosed
    }
}

/// Takes the lines that the spool reads. All calls are made on the reader's loop.
public protocol SpoolSink: AnyObject {
    /// Takes whole lines.
    ///
    /// - Parameters:
    ///   - lines: one or more lines, none longer than `SpoolOptions.maxEventSize`, each ending in LF (a
    ///     sealed last line without one is given one). CR and empty lines are left to the sink. Valid only
    ///     during the call. For a `.json` file: one event, on one line.
    ///   - source: the file.
    ///   - offset: offset of the first byte in the file (uncompressed).
    /// - Returns: bytes that were taken: all, or up to the end of some line (0 included) if the sink wants a
    ///   commit first. The rest is offered again once a commit has begun. So a sink with nothing to commit
    ///   must take at least one line or `park`; otherwise reading would not progress.
    func take(_ lines: UnsafeRawBufferPointer, from source: SpoolSource, at offset: Int64) -> Int

    /// Called when `take` has not taken all lines: whether the rest of this file, and of no other, waits for
    /// something other than a commit.
    ///
    /// - Parameter resume: to be called once, on the loop and after `park` has returned, when the rest is to
    ///   be offered again.
    /// - Returns: true if the file is parked; false if a commit comes first, and `resume` is not used.
    func park(_ resume: @escaping () -> Void) -> Bool

    /// Takes a record of bytes that cannot become an event: too long, cut short, or of a damaged archive. The
    /// record belongs to the next commit.
    func quarantine(_ record: QuarantineRecord)

    /// Makes everything that was taken since the last call durable together with `progress`, all or nothing.
    ///
    /// Calls come in order, and a second one may come while the first is still waiting; with two waiting
    /// nothing is read. The sink must close its part *before it first suspends*: lines that are taken later
    /// belong to the next commit.
    /// - Throws: only if the agent stops or cannot persist any more; reading then ends at the last successful
    ///   commit.
    func commit(_ progress: SpoolProgress) async throws

    /// Returns once everything that was committed before the call survives a power cut. Files are removed
    /// only after this.
    ///
    /// With `durability = "power_loss"` each commit is synced already, and the call may return at once.
    func persist() async throws

    /// Whether something that was taken since the last commit should be durable soon (`SpoolOptions.linger`).
    /// Everything else may wait for more (`SpoolOptions.patience`).
    var isUrgent: Bool { get }

    /// Whether a file must not be removed, because the quarantine could not hold all of its bad lines.
    func mustStay(_ file: [UInt8]) -> Bool

    /// Whether the wall clock can be trusted. While it cannot, no archived file counts as too old.
    func isClockTrusted() -> Bool

    /// Nothing was read for a second or two: memory that only lines need may be given back. Not called for
    /// each pause, and never while a call of `take` is under way.
    func rest()
}

extension SpoolSink {
    /// Keeps its memory.
    public func rest() {}
}
