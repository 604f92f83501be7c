// Logs: the agent's own messages, each on one line: a phrase that never varies, and fields.
//
// What the module promises:
// * Writing never blocks, whatever reads standard error. Lines that do not fit into a bounded buffer are
//   counted, and the count is logged.
// * A message that repeats is counted instead of written, and the count is written within a minute: a fault
//   cannot fill the log, and nothing disappears without a number.
// * A value of a field, wherever it comes from, can neither begin a line nor look like another field.
//
// What the callers promise: event content and secrets never go into a message or a field.
//
// Its parts:
// * `Log` (this file) is what code logs to; `LogSink` is where messages go, `LogMessage` one message.
// * `StandardErrorLog` is the agent's sink. It combines the three below, and belongs to no loop:
//   thread-safe.
// * `MessageCollapser` decides what is written now and what is counted: a pure value.
// * `LogFormatter` turns a message into a line: a pure value.
// * `LogPipe` writes lines to a descriptor without blocking.
//
// The module does not know who logs. Begin with `StandardErrorLog.write`.

/// How severe a message is; the words of the setting `agent.log.level`.
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

    /// Whether the left level is the more severe one.
    public static func < (left: LogLevel, right: LogLevel) -> Bool { left.rawValue < right.rawValue }
}

/// A message: a phrase, and fields that say where and why.
public struct LogMessage: Sendable, Equatable {
    /// How severe the message is.
    package let level: LogLevel
    /// The phrase, which never varies, so that the log can be searched for it: `delivery failed`.
    public let text: String
    /// Whatever varies: keys in snake_case, values as text.
    public let fields: [(key: String, value: String)]

    /// Whether level, text and all fields are the same.
    public static func == (left: LogMessage, right: LogMessage) -> Bool {
        left.level == right.level && left.text == right.text
            && left.fields.elementsEqual(right.fields) { $0.key == $1.key && $0.value == $1.value }
    }
}

/// Where messages go: standard error in the agent, a list in tests.
public protocol LogSink: Sendable {
    /// The least severe level that is written; more severe ones are written too.
    var level: LogLevel { get }
    /// Takes a message. Thread-safe; never blocks.
    func write(_ message: LogMessage)
}

/// What code logs to. Phrases are `StaticString`, so that no value can get into one.
public struct Log: Sendable {
    package let sink: any LogSink

    /// A log that writes to a sink.
    public init(_ sink: any LogSink) { self.sink = sink }

    /// Something failed that a person should fix; the fields say what to do.
    public func error(
        _ text: StaticString, _ fields: KeyValuePairs<String, any CustomStringConvertible> = [:]
    ) {
        write(.error, text, fields)
    }

    /// Something is wrong, and the agent copes.
    public func warning(
        _ text: StaticString, _ fields: KeyValuePairs<String, any CustomStringConvertible> = [:]
    ) {
        write(.warning, text, fields)
    }

    /// A change of state.
    public func info(_ text: StaticString, _ fields: KeyValuePairs<String, any CustomStringConvertible> = [:])
    {
        write(.info, text, fields)
    }

    /// What the agent does, step by step. The fields are not computed unless the level is written.
    public func debug(
        _ text: StaticString,
        _ fields: @autoclosure () -> KeyValuePairs<String, any CustomStringConvertible> = [:]
    ) {
        guard sink.level >= .debug else { return }
        write(.debug, text, fields())
    }

    /// Passes a message on if its level is written.
    private func write(
        _ level: LogLevel, _ text: StaticString, _ fields: KeyValuePairs<String, any CustomStringConvertible>
    ) {
        guard sink.level >= level else { return }
        let fields = fields.map { (key: $0.key, value: $0.value.description) }
        sink.write(LogMessage(level: level, text: "\(text)", fields: fields))
    }
}
