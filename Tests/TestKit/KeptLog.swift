public import Logs
internal import Synchronization

/// A log that keeps what is written to it.
public final class KeptLog: LogSink {
    /// What is kept.
    public let level: LogLevel
    private let kept = Mutex<[LogMessage]>([])

    /// A log that keeps messages down to `level`.
    public init(level: LogLevel = .verbose) { self.level = level }

    /// Keeps a message.
    public func write(_ message: LogMessage) { kept.withLock { $0.append(message) } }

    /// All that was written, in order.
    public var messages: [LogMessage] { kept.withLock { $0 } }
}
