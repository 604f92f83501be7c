package import EventLoops

/// Why the spool cannot be read at all. A problem with one file is a figure and a log line, not an error.
public struct SpoolError: Error, Sendable, Equatable, CustomStringConvertible {
    /// Closed, because each code is a metric label.
    public enum Code: String, Sendable, CaseIterable {
        /// The spool's directory cannot be opened.
        case noDirectory = "no_directory"
        /// The archive is not on the spool's file system, or cannot be opened.
        case noArchive = "no_archive"
        /// A file could not be put into the spool.
        case cannotWrite = "cannot_write"
        /// A file named by hand cannot be read.
        case cannotRead = "cannot_read"
        /// Another agent reads the spool.
        case inUse = "in_use"
    }

    /// The kind of failure, for code and metrics.
    public let code: Code
    /// One line for a person: what is wrong and what to do.
    public let message: String
    package let cause: SystemError?

    init(_ code: Code, _ message: String, cause: SystemError? = nil) {
        self.code = code
        self.message = message
        self.cause = cause
    }

    /// The message, with what the system said.
    public var description: String { cause.map { "\(message) (\($0))" } ?? message }
}
