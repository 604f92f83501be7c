/// What shows a destination that the agent may write.
enum Credential: Equatable {
    /// A whole line of the request's head.
    case header(String)
    /// An argument of the address, escaped: `api_secret=…`.
    case argument(String)
}

package enum TokenPlace: Sendable, Equatable {
    /// In `Authorization`, behind this word: `Bearer`, `Splunk`.
    case authorization(scheme: String)
    /// In its own header: `App-Secret`.
    case header(String)
    /// In an argument of the address: `api_secret`.
    case argument(String)
}
