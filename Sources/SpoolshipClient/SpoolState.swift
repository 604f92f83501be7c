/// What the agent accepts now. The agent writes it to `.spoolship/state` in the spool: a word on the first
/// line (`all`, `critical` or `none`), the reason on the second.
///
/// Without the file, or with an unknown word, everything is accepted: writing to the spool needs no agent.
public struct SpoolState: Sendable, Equatable {
    /// The accepted priorities.
    public enum Accepting: String, Sendable {
        /// Every event.
        case all
        /// Critical events only.
        case critical
        /// No event.
        case none
    }

    /// The accepted priorities.
    public let accepting: Accepting
    /// Why not all, for a person; empty for `all`.
    public let reason: String

    /// Parses the text of the state file.
    init(text: String) {
        let lines = text.split(separator: "\n", maxSplits: 2, omittingEmptySubsequences: false)
        accepting = lines.first.flatMap { Accepting(rawValue: String($0)) } ?? .all
        reason = accepting != .all && lines.count > 1 ? String(lines[1]) : ""
    }

    /// Reads the state of the spool that a directory is in: of the nearest directory above it that has one.
    /// Apps may have subdirectories, and the agent reads sixteen levels deep. Directories that everybody may
    /// write to are passed over, because anybody could have made the file.
    static func read(directory: String) -> SpoolState {
        var candidate = directory
        for _ in 0...16 {
            if !isOpenToAll(candidate), let text = readSmallFile("\(candidate)/.spoolship/state") {
                return SpoolState(text: text)
            }
            candidate += "/.."
        }
        return SpoolState(text: "")
    }
}
