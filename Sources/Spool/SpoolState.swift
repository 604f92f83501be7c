internal import EventLoops
internal import Glibc

/// What the agent accepts now, for writers: in `.spoolship/state` in the spool, readable by all (ac08).
///
/// The first line is one word, `all`, `critical` or `none`; the second says why, for a person. Writers may read it
/// before they write; a missing file, or an unknown word, means `all`, because writing needs no agent.
public struct SpoolState: Sendable, Equatable {
    /// What is accepted.
    public enum Accepting: String, Sendable, CaseIterable {
        /// Every event.
        case all
        /// Critical events only: the queue is full of such.
        case critical
        /// No event: collecting is disabled, or nothing can be stored.
        case none
    }

    package let accepting: Accepting
    /// Why not all, for a person: one line; empty for `all`.
    public let reason: String

    /// A state; of the reason only the first line counts.
    public init(_ accepting: Accepting, reason: String = "") {
        self.accepting = accepting
        self.reason = accepting == .all ? "" : String(reason.prefix { $0 != "\n" })
    }

    /// Whether an event that is critical, or is not, is accepted.
    public func accepts(critical isCritical: Bool) -> Bool {
        accepting == .all || (accepting == .critical && isCritical)
    }

    /// What a spool says; everything is accepted where it says nothing.
    ///
    /// - Parameter spool: the spool's directory.
    public static func read(in spool: String) -> SpoolState {
        let flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW
        guard let directory = try? folder(in: spool),
            let file = try? Descriptor(checking: openat(directory.raw, "state", flags), "openat")
        else { return SpoolState(.all) }
        var bytes = [UInt8](repeating: 0, count: 1024)
        let count = Glibc.read(file.raw, &bytes, bytes.count)
        let lines = String(decoding: bytes[..<max(0, count)], as: UTF8.self)
            .split(separator: "\n", maxSplits: 2, omittingEmptySubsequences: false)
        guard let accepting = lines.first.flatMap({ Accepting(rawValue: String($0)) }) else { return SpoolState(.all) }
        return SpoolState(accepting, reason: lines.count > 1 ? String(lines[1]) : "")
    }

    /// Tells writers, replacing what was told before: whoever reads finds the old state or the new one.
    ///
    /// Not synced: after a power cut the agent tells it again.
    /// - Parameter spool: the spool's directory; `.spoolship` is made in it where it is missing.
    /// - Throws: `SpoolError` with code `cannotWrite`.
    public func publish(in spool: String) throws(SpoolError) {
        do throws(SystemError) {
            let directory = try SpoolState.folder(in: spool, makes: true)
            var status = stat()
            // Writers may look into it, whatever the umask took away when it was made. Another user's stays as it is.
            if fstat(directory.raw, &status) == 0, status.st_uid == geteuid(), status.st_mode & 0o055 != 0o055,
                fchmod(directory.raw, status.st_mode & 0o7777 | 0o055) != 0
            {
                throw SystemError("fchmod")
            }
            // In the directory that was looked at, whatever has its name by now.
            try WholeFile.replace(
                "\(FileSystem.selfPath(directory.raw))/state", with: Array("\(accepting.rawValue)\n\(reason)\n".utf8),
                mode: 0o644, isForAll: true, isDurable: false)
        } catch {
            throw SpoolError(
                .cannotWrite,
                "cannot tell writers what is accepted: make the agent's user the owner of \(spool)/.spoolship",
                cause: error)
        }
    }

    static func folder(in spool: String, makes: Bool = false) throws(SystemError) -> Descriptor {
        if makes, mkdir("\(spool)/.spoolship", 0o755) != 0, errno != EEXIST { throw SystemError("mkdir") }
        let flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW
        return try Descriptor(checking: open("\(spool)/.spoolship", flags), "open")
    }
}
