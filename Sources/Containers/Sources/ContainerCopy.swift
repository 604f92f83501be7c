public import EventLoops

/// A container's document that was found good: verified where it must be, well formed, of the right id.
public struct ContainerCopy: Sendable, Equatable {
    /// Its version; a later one counts more.
    public let version: Int
    /// When it ends; nil for never.
    public let expires: Timestamp?
    /// The share of the machines that it is for, in percent; nil for all.
    public let rollout: Double?
    /// The document's exact bytes: the same version must always have the same.
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
    case none
    /// The default file on this machine.
    case standard = "default"
    /// The copy of the last good fetch.
    case saved
    case network
    /// A draft that rules for a time.
    case preview
}

/// A document and where it comes from.
public struct HeldContainer: Sendable, Equatable {
    package let source: ContainerSource
    package let copy: ContainerCopy
    /// When the network last said that this is the newest; nil for a default file and a draft.
    public var confirmed: Timestamp?
}
