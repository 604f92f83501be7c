/// What the agent accepts now, as it says in `.spoolship/state` in the spool: one word on the first line (`all`, `critical`
/// or `none`), the reason on the second.
///
/// No file, or a word that is not known, means `all`: writing to the spool needs no agent.
public struct SpoolState: Sendable, Equatable {
    /// What is accepted.
    public enum Accepting: String, Sendable {
        /// Every event.
        case all
        /// Critical events only.
        case critical
        /// No event.
        case none
    }

    /// What is accepted.
    public let accepting: Accepting
    /// Why not all, for a person; empty for `all`.
    public let reason: String

    init(text: String) {
        let lines = text.split(separator: "\n", maxSplits: 2, omittingEmptySubsequences: false)
        accepting = lines.first.flatMap { Accepting(rawValue: String($0)) } ?? .all
        reason = accepting != .all && lines.count > 1 ? String(lines[1]) : ""
    }

    /// Reads the state of the spool that a directory is in: the nearest one above it that has one. An app may have
    /// directories in its own; the agent reads sixteen deep. Where anybody may write, the agent says nothing.
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
