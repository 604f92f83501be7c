public import EventLoops

/// A document that was checked: signed if it must be, well formed, of the right id.
public struct ContainerCopy: Sendable, Equatable {
    /// Version; a higher one replaces a lower one.
    public let version: Int
    /// Expiry date; nil for never.
    public let expires: Timestamp?
    /// Share of the machines that the document is for, in percent; nil for all.
    public let rollout: Double?
    /// The exact bytes of the document. A version must always have the same bytes.
    public let content: [UInt8]

    package init(version: Int, expires: Timestamp?, rollout: Double? = nil, content: [UInt8]) {
        self.version = version
        self.rollout = rollout
        self.expires = expires
        self.content = content
    }
}

/// Where the document in force comes from.
package enum ContainerSource: String, Sendable, CaseIterable {
    /// No document is in force.
    case none
    /// The default file on this machine.
    case standard = "default"
    /// The copy of the last good fetch, from the agent's database.
    case saved
    /// A fetch of this process.
    case network
    /// A draft that is in force for a time.
    case preview
}

/// A document, and where it comes from.
public struct HeldContainer: Sendable, Equatable {
    /// The source of the document.
    package let source: ContainerSource
    /// The document.
    package let copy: ContainerCopy
    /// Time at which the server last said that this is the newest; nil for a default file and for a draft.
    public var confirmed: Timestamp?
}
