public import EventLoops

/// Why a time zone cannot be used.
public typealias TimeZoneError = CodedError<TimeZoneErrorCode>

/// The kinds of `TimeZoneError`.
public enum TimeZoneErrorCode: String, Sendable, CaseIterable {
    /// Not the name of a zone: `Europe/Rome` is one.
    case badName = "bad_name"
    /// There is no file for the name.
    case unknown
    /// The file cannot be read.
    case unreadable
    /// The file is not a TZif file, or is damaged.
    case malformed
}
