//  Spool: finds the files that apps write, knows them again, frames their lines, hands them on, and removes what is
//  safely queued.
//  Promise: every whole line is handed over once, in its file's order; a file is removed only after the commit that
//  covers all of it; nothing outside the spool is opened, no link is followed, no open blocks.
//  It knows nothing of SQLite, of JSON members, or of what happens to a line.

public import Model

/// Where lines come from, for the sink.
public struct SpoolSource: Sendable, Equatable {
    /// The app: the name of its directory; `default` at the top; the name of the file's owner in `incoming/`.
    public var app: String
    /// The file relative to the spool, for people: bytes that are not UTF-8 are replaced.
    public var path: String
    /// Names an append file for as long as it lives, across renames and restarts; nil for a drop file.
    public var producer: [UInt8]?
    /// Whether events of this file may call themselves critical when nothing else is configured: false in `incoming/`.
    public var mayBeCritical: Bool
    /// Whether a writer closed the file between the lines taken before and these: the process may be gone since.
    public var wasClosed: Bool
    /// Names the file while it is the reader's to remove; empty otherwise.
    public var file: [UInt8] = []

    package init(app: String, path: String, producer: [UInt8]?, mayBeCritical: Bool = true, wasClosed: Bool = false) {
        (self.app, self.path, self.producer) = (app, path, producer)
        (self.mayBeCritical, self.wasClosed) = (mayBeCritical, wasClosed)
    }
}

/// Takes what the spool reads, on the reader's loop.
public protocol SpoolSink: AnyObject {
    /// Takes whole lines.
    ///
    /// - Parameters:
    ///   - lines: one line or many, none longer than `SpoolOptions.maxEventSize`, each ending in LF (a sealed last line that had none is
    ///     given one); CR and empty lines are left to the taker. Valid only during the call. Of a `.json` file: one event, on one line.
    ///   - source: the file.
    ///   - offset: where the first byte is in the file (uncompressed).
    /// - Returns: how many bytes were taken: all, or up to the end of some line (0 included) when the taker wants a commit first. The rest is
    ///   offered again once one has begun, so a taker that has nothing to commit takes at least one line, or `park`s.
    func take(_ lines: UnsafeRawBufferPointer, from source: SpoolSource, at offset: Int64) -> Int

    /// Asked when `take` has taken less than all: whether the rest of the file, and no other, waits for something else than a commit.
    ///
    /// - Parameter resume: to be called once, on the loop, never before this returns, when the rest is to be offered again.
    /// - Returns: false, and `resume` is forgotten, when a commit comes first.
    func park(_ resume: @escaping () -> Void) -> Bool

    /// Takes what cannot become an event: too long, cut short, a broken archive. It belongs to the next commit.
    func quarantine(_ record: QuarantineRecord)

    /// Makes all that was taken since the call before durable, together with `progress`, all or nothing.
    ///
    /// Called in order, and a second time while the first is still waiting; with two waiting nothing is read. So the taker closes what it
    /// holds *before it first suspends*: what is taken later belongs to the next commit.
    /// - Throws: only when the agent stops or cannot persist any more; reading then ends at the last successful commit.
    func commit(_ progress: SpoolProgress) async throws

    /// Returns when what was committed before the call survives a power cut: files are removed only then.
    ///
    /// With `durability = "power_loss"` a commit is that already, and so the default returns at once.
    func persist() async throws

    /// Asked before a file is removed: whether it has to stay, because what was quarantined of it could not all be kept.
    func mustStay(_ file: [UInt8]) -> Bool

    /// Whether the time of day can be trusted: until it can, no archived file is too old.
    func isClockTrusted() -> Bool
}
