/// Why a time zone cannot be used.
public struct TimeZoneError: Error, Sendable, Equatable {
    /// What is wrong.
    public enum Code: String, Sendable, CaseIterable {
        /// Not the name of a zone: `Europe/Rome` is one.
        case badName = "bad_name"
        /// There is no file for the name.
        case unknown
        /// The file cannot be read.
        case unreadable
        /// The file is no TZif file, or is damaged.
        case malformed
    }

    /// What is wrong.
    public let code: Code
    /// One line for a person: what is wrong and what to do.
    public let message: String

    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }
}
