/// Something wrong with a configuration.
public struct Problem: Error, Sendable, Equatable {
    /// Closed, for code and tests.
    public enum Code: String, Sendable, CaseIterable {
        case unreadable
        /// The text is not TOML.
        case syntax
        case unknownKey = "unknown_key"
        case wrongType = "wrong_type"
        case outOfRange = "out_of_range"
        case missing
        case conflict
        /// What a setting names is not as it must be: a file, a directory, a port of this machine.
        case environment
    }

    /// Whether the configuration can still be used.
    public enum Severity: String, Sendable {
        case error
        /// It can; a person should look.
        case warning
    }

    /// The kind of mistake.
    public let code: Code
    /// Whether it stops the configuration from being used.
    public let severity: Severity
    /// What is wrong and what to write instead, in one line.
    public let message: String
    /// Where; nil when it is in no line.
    public let position: Position?
    /// The line it is in, where there is one.
    public let sourceLine: String?

    package init(
        _ code: Code, _ message: String, at position: Position? = nil, sourceLine: String? = nil,
        severity: Severity = .error
    ) {
        (self.code, self.message, self.position) = (code, message, position)
        (self.sourceLine, self.severity) = (sourceLine, severity)
    }

    /// For a person: `file:line:column: message`, the source line, and a caret below the place.
    public var text: String {
        let label = severity == .warning ? "warning: " : ""
        guard let position else { return label + message }
        var text = "\(position.file):\(position.line):\(position.column): \(label)\(message)"
        guard let sourceLine else { return text }
        // A line may hold a secret or be endless: what follows the place is not needed to find it.
        let shown = sourceLine.unicodeScalars.prefix(160)
        let indent = shown.prefix(max(0, position.column - 1)).map { $0 == "\t" ? "\t" : " " }.joined()
        text += "\n    \(String(String.UnicodeScalarView(shown)))\n    \(indent)^"
        return text
    }
}

/// A configuration that cannot be used.
public struct ConfigurationError: Error, Sendable, Equatable, CustomStringConvertible {
    /// All mistakes of all files, in the order of files and lines.
    public let problems: [Problem]

    /// Where the agent with this configuration is asked; nil where the files cannot even be read.
    public internal(set) var controlSocket: String?

    /// For a person: each mistake with its line.
    public var description: String { problems.map(\.text).joined(separator: "\n") }
}
