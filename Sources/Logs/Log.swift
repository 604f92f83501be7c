//  Logs: the agent's own messages. One line each, a verb phrase and fields.
//  Promise: never event content, never a secret; writing never blocks; repeated messages collapse with a count.
//  It does not know who writes.

/// How much a message matters; the settings `error` to `verbose`.
public enum LogLevel: Int, Sendable, CaseIterable, Comparable {
    /// Something failed that a person should fix.
    case error
    /// Something is wrong, and the agent copes.
    case warning
    /// A change of state: start, stop, reload, rotation.
    case info
    /// What the agent does, step by step.
    case debug
    /// Every request and file.
    case verbose

    /// The word in settings and commands.
    public var name: String { LogLevel.names[rawValue] }

    private static let names = ["error", "warning", "info", "debug", "verbose"]

    /// The level of that name; nil for any other word.
    public init?(name: some StringProtocol) {
        guard let found = LogLevel.allCases.first(where: { $0.name == name }) else { return nil }
        self = found
    }

    /// Whether the left one is the more serious.
    public static func < (left: LogLevel, right: LogLevel) -> Bool { left.rawValue < right.rawValue }
}

/// One message: a verb phrase, and fields that locate it.
public struct LogMessage: Sendable, Equatable {
    package let level: LogLevel
    /// A verb phrase that never varies: `delivery failed`.
    public let text: String
    /// What varies: keys in snake_case, values as text.
    public let fields: [(key: String, value: String)]

    /// Whether level, text and all fields are the same.
    public static func == (left: LogMessage, right: LogMessage) -> Bool {
        left.level == right.level && left.text == right.text
            && left.fields.elementsEqual(right.fields) { $0.key == $1.key && $0.value == $1.value }
    }
}

/// Where messages go. The agent's writes to standard error; tests keep them.
public protocol LogSink: Sendable {
    /// The gravest to the least grave level that is written.
    var level: LogLevel { get }
    /// Takes a message; never blocks. From any thread.
    func write(_ message: LogMessage)
}

/// Takes the messages of the code.
public struct Log: Sendable {
    package let sink: any LogSink

    /// A log that writes to a sink.
    public init(_ sink: any LogSink) { self.sink = sink }

    /// Something failed that a person should fix; the fields say what to do.
    public func error(_ text: StaticString, _ fields: KeyValuePairs<String, any CustomStringConvertible> = [:]) {
        write(.error, text, fields)
    }

    /// Something is wrong, and the agent copes.
    public func warning(_ text: StaticString, _ fields: KeyValuePairs<String, any CustomStringConvertible> = [:]) {
        write(.warning, text, fields)
    }

    /// A change of state.
    public func info(_ text: StaticString, _ fields: KeyValuePairs<String, any CustomStringConvertible> = [:]) {
        write(.info, text, fields)
    }

    /// What the agent does, step by step.
    public func debug(
        _ text: StaticString, _ fields: @autoclosure () -> KeyValuePairs<String, any CustomStringConvertible> = [:]
    ) {
        guard sink.level >= .debug else { return }
        write(.debug, text, fields())
    }

    private func write(
        _ level: LogLevel, _ text: StaticString, _ fields: KeyValuePairs<String, any CustomStringConvertible>
    ) {
        guard sink.level >= level else { return }
        let fields = fields.map { (key: $0.key, value: $0.value.description) }
        sink.write(LogMessage(level: level, text: "\(text)", fields: fields))
    }
}
