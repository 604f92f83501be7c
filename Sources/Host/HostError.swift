/// What can go wrong when the machine is asked about itself.
public struct HostError: Error, Sendable, Equatable {
    /// What went wrong.
    public enum Code: String, Sendable, CaseIterable {
        /// The country database, or the library that reads it, cannot be used.
        case countryDatabase = "country_database"
        /// The install id can be neither read nor written.
        case installID = "install_id"
    }

    /// What went wrong.
    public let code: Code
    /// One line for a person: what is wrong and what to do.
    public let message: String

    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }
}
