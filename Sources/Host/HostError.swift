public import EventLoops

/// A failure to learn about the machine.
public typealias HostError = CodedError<HostErrorCode>

/// The kinds of `HostError`.
public enum HostErrorCode: String, Sendable, CaseIterable {
    /// The country database, or the library that reads it, cannot be used.
    case countryDatabase = "country_database"
    /// The install id can be neither read nor written.
    case installID = "install_id"
}
