//  Configuration: TOML text becomes typed settings. One table (the `entries` of each section) is the single source for
//  parsing, defaults, ranges, help, `check --print`, the shipped file and the comparison at reload.
//  Promise: every mistake of every file is found at once, and each says where it is and what to write instead; a text
//  becomes settings as a whole or not at all. It does not know who uses a setting.

/// A place in a configuration file.
public struct Position: Sendable, Hashable {
    /// The file's path, as it was given.
    public let file: String
    /// The line, from 1.
    public let line: Int
    /// The column, from 1, in Unicode scalars.
    public let column: Int
}

/// Where a setting's value comes from.
public enum Origin: Sendable, Hashable, CustomStringConvertible {
    /// Nobody set it.
    case standard
    /// Nobody set it, and destinations of this type or format have their own default: `type s3`.
    case type(String)
    case file(Position)
    case container(String)

    /// For a person: `default`, `default of type s3`, `/etc/spoolship/spoolship.toml:12`, `container GTM-1234`.
    public var description: String {
        switch self {
        case .standard: "default"
        case .type(let name): "default of \(name)"
        case .file(let position): "\(position.file):\(position.line)"
        case .container(let id): "container \(id)"
        }
    }
}
