//  Position: where something is in the configuration. What the module promises is in Settings.swift.

/// A place in a configuration file.
public struct Position: Sendable, Hashable {
    /// The file's path, as it was given.
    public let file: String
    /// The line, from 1.
    public let line: Int
    /// The column, from 1, in Unicode scalars.
    public let column: Int
}

/// Where the value of a setting comes from.
public enum Origin: Sendable, Hashable, CustomStringConvertible {
    /// The default.
    case standard
    /// The default of destinations of this type or format: `type s3`.
    case type(String)
    /// A file.
    case file(Position)
    /// A container, by its id.
    case container(String)

    /// For people: `default`, `default of type s3`, `/etc/spoolship/spoolship.toml:12`, `container GTM-1234`.
    public var description: String {
        switch self {
        case .standard: "default"
        case .type(let name): "default of \(name)"
        case .file(let position): "\(position.file):\(position.line)"
        case .container(let id): "container \(id)"
        }
    }
}
