/// A secret in the form in which it is added to each request, prepared once when the secret is read.
enum Credential: Equatable {
    /// A complete line of the request's head.
    case header(String)
    /// An argument of the address, percent-encoded: `api_secret=…`.
    case argument(String)
}

/// Where a format's receivers expect a token.
package enum TokenPlace: Sendable, Equatable {
    /// In `Authorization`, after this word: `Bearer`, `Splunk`.
    case authorization(scheme: String)
    /// In a header of this name: `App-Secret`.
    case header(String)
    /// In an argument of this name: `api_secret`.
    case argument(String)
}
