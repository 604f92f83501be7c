//  Containers: remotely managed values, rules, macros and tags: their documents, where they come from, what they do.
//
//  It promises that a document in force was checked as a whole, that what it costs in time and memory is bounded whatever
//  it says, and that it can set and call nothing that the configuration does not let it.
//  It knows nothing of the queue and of how documents travel (it is given a fetcher).

/// Why a document or a container cannot be used. The old one stays in force.
public struct ContainerError: Error, Sendable, Equatable, CustomStringConvertible {
    /// Closed, because each code is a metric label.
    public enum Code: String, Sendable, CaseIterable {
        /// Not JSON, or not UTF-8.
        case notJSON = "not_json"
        /// JSON that is no container: an unknown member, a wrong type, a name that nothing has.
        case form
        /// Beyond a limit of size, count or depth.
        case limit
        /// A regular expression that cannot be used.
        case expression
        /// Not signed, or not by a key that is trusted.
        case signature
        /// A version that may not follow the one in force.
        case version
        /// A document of another container.
        case id
        case expired
        /// A file that cannot be read, or is nobody's that is trusted.
        case file
    }

    /// The kind of failure, for code and metrics.
    public let code: Code

    /// Where in the document, as `rules.music.conditions[0]`; empty for the document as a whole.
    public let path: String

    /// One line for a person: what is wrong and what to do. It may quote names of the document, never events or secrets.
    public let message: String

    package init(_ code: Code, at path: String = "", _ message: String) {
        self.code = code
        self.path = path
        self.message = message
    }

    /// Where and what, in one line.
    public var description: String { path.isEmpty ? message : "\(path): \(message)" }
}
