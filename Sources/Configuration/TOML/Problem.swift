/// A mistake in a configuration, or a warning.
public struct Problem: Error, Sendable, Equatable {
    /// The kinds of problems. Closed, for programs and tests.
    public enum Code: String, Sendable, CaseIterable {
        /// A file cannot be read.
        case unreadable
        /// The text is not TOML.
        case syntax
        /// A key that does not exist.
        case unknownKey = "unknown_key"
        /// A value of the wrong kind.
        case wrongType = "wrong_type"
        /// A value that is not allowed.
        case outOfRange = "out_of_range"
        /// Something required is not set.
        case missing
        /// Settings that contradict.
        case conflict
        /// A key of older configurations, which is still read.
        case renamed
        /// A setting that is read and that nobody has to set.
        case retired
        /// What a setting names (a file, a directory, a port) is not as it must be on this machine.
        case environment
    }

    /// Whether the configuration can still be used.
    public enum Severity: String, Sendable {
        /// The configuration cannot be used.
        case error
        /// The configuration can be used, but is probably not meant.
        case warning
        /// The configuration can be used, and nothing is wrong: there is a better way to write it.
        case note
    }

    /// The kind.
    public let code: Code
    /// Whether the problem prevents the use of the configuration.
    public let severity: Severity
    /// What is wrong and what to write instead, in one line.
    public let message: String
    /// Position; nil if it concerns no line.
    public let position: Position?
    /// The line, masked if it may hold a secret; nil if there is no position.
    public let sourceLine: String?

    /// A problem.
    package init(
        _ code: Code, _ message: String, at position: Position? = nil, sourceLine: String? = nil,
        severity: Severity = .error
    ) {
        self.code = code
        self.message = message
        self.position = position
        self.sourceLine = sourceLine
        self.severity = severity
    }

    /// For people, on one line: `file:line:column: message`.
    public var line: String {
        let label = severity == .error ? "" : "\(severity.rawValue): "
        guard let position else { return label + message }
        return "\(position.file):\(position.line):\(position.column): \(label)\(message)"
    }

    /// For people: `line`, the source line, and a caret below the column.
    public var text: String {
        guard let position, let sourceLine else { return line }
        // A line can be very long, and the end of a long line can hold a secret: 160 characters show the
        // mistake.
        let shown = sourceLine.unicodeScalars.prefix(160)
        let indent = shown.prefix(max(0, position.column - 1)).map { $0 == "\t" ? "\t" : " " }.joined()
        return "\(line)\n    \(String(String.UnicodeScalarView(shown)))\n    \(indent)^"
    }
}

/// A configuration that cannot be used.
public struct ConfigurationError: Error, Sendable, Equatable, CustomStringConvertible {
    /// All problems of all files, in the order of files and lines.
    public let problems: [Problem]

    /// Control socket of the agent that runs with this configuration; nil if the files are not TOML.
    public internal(set) var controlSocket: String?

    /// For people: each problem with its line.
    public var description: String { problems.map(\.text).joined(separator: "\n") }

    /// For a log message or a line of `status`: the first mistake, and where to see the others.
    public var summary: String {
        let mistakes = problems.filter { $0.severity == .error }
        guard let first = mistakes.first else { return description }
        guard mistakes.count > 1 else { return first.line }
        return "\(first.line); and \(mistakes.count - 1) more: spoolship check"
    }
}
