internal import EventLoops
internal import Glibc

/// The events that the agent accepts at present, published for writers in `.spoolship/state` in the spool,
/// which all users can read.
///
/// The first line is one word, `all`, `critical` or `none`; the second gives the reason for a person. Writers
/// may read it before they write, to stop producing events that would be refused. A missing file or an
/// unknown word means `all`, because writing needs no running agent.
public struct SpoolState: Sendable, Equatable {
    /// The accepted events.
    public enum Accepting: String, Sendable, CaseIterable {
        /// Every event.
        case all
        /// Critical events only: the queue is full of critical events, which other events cannot evict.
        case critical
        /// No event: collecting is disabled, or nothing can be stored.
        case none
    }

    package let accepting: Accepting
    /// Why not all events are accepted, one line for a person; empty for `all`.
    public let reason: String

    /// Creates a state with the first line of a reason.
    public init(_ accepting: Accepting, reason: String = "") {
        self.accepting = accepting
        self.reason = accepting == .all ? "" : String(reason.prefix { $0 != "\n" })
    }

    /// Whether an event is accepted.
    public func accepts(critical isCritical: Bool) -> Bool {
        accepting == .all || (accepting == .critical && isCritical)
    }

    /// The state that is published in a spool; `all` if nothing is published or readable.
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
        guard let accepting = lines.first.flatMap({ Accepting(rawValue: String($0)) }) else {
            return SpoolState(.all)
        }
        return SpoolState(accepting, reason: lines.count > 1 ? String(lines[1]) : "")
    }

    /// Publishes the state. The file is replaced by a rename, so readers find the old state or the new one,
    /// never a part.
    ///
    /// The file is not synced: after a power cut the agent publishes the state again.
    /// - Parameter spool: the spool's directory; `.spoolship` is made in it if it is missing.
    /// - Throws: `SpoolError` with code `cannotWrite`.
    public func publish(in spool: String) throws(SpoolError) {
        do throws(SystemError) {
            let directory = try SpoolState.folder(in: spool, makes: true)
            var status = stat()
            // Let writers read and search the directory even if it was created with a strict umask. A
            // directory of another user is left as it is.
            if fstat(directory.raw, &status) == 0, status.st_uid == geteuid(),
                status.st_mode & 0o055 != 0o055,
                fchmod(directory.raw, status.st_mode & 0o7777 | 0o055) != 0
            {
                throw SystemError("fchmod")
            }
            // Write beneath the descriptor, because the path may lead elsewhere by now.
            try WholeFile.replace(
                "\(FileSystem.selfPath(directory.raw))/state",
                with: Array("\(accepting.rawValue)\n\(reason)\n".utf8),
                mode: 0o644, isForAll: true, isDurable: false)
        } catch {
            throw SpoolError(
                .cannotWrite,
                "cannot tell writers what is accepted: make the agent's user the owner of "
                    + "\(spool)/.spoolship",
                cause: error)
        }
    }

    /// Opens `.spoolship` in a spool, without following a link; creates it first if `makes`.
    static func folder(in spool: String, makes: Bool = false) throws(SystemError) -> Descriptor {
        if makes, mkdir("\(spool)/.spoolship", 0o755) != 0, errno != EEXIST { throw SystemError("mkdir") }
        let flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW
        return try Descriptor(checking: open("\(spool)/.spoolship", flags), "open")
    }
}
