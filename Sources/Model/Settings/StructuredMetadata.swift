/// What Loki stores with each line without indexing it.
package enum StructuredMetadata: Sendable, Hashable {
    case none
    /// The ids of the event and its session, and the level.
    case ids
    /// The ids, and the values of members, given as names or paths with dots.
    case members([String])

    /// Most members. Loki accepts 128 values an entry by default.
    package static let mostMembers = 64

    /// The members to send; empty unless they are named.
    package var members: [String] { if case .members(let members) = self { members } else { [] } }
}
