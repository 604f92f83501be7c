/// Finds the country of an address, as a MaxMind database does.
public protocol CountryLookup: AnyObject {
    /// The country of an address in its usual text, of either version.
    ///
    /// - Returns: nil when it is not known, or the text is no address.
    func country(of address: String) -> CountryCode?
}
