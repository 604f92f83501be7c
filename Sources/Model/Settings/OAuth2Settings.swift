/// `[destination.oauth2]`: the server that issues access tokens, and the client's credentials.
public struct OAuth2Settings: Sendable, Equatable {
    package var tokenURL: EndpointURL?
    package var clientID = ""
    package var secret = SecretSetting()
    package var scope: String?
    package var audience: String?
    /// Certificates that are trusted for the token server, in PEM; nil trusts those of the system.
    package var caFile: String?

    package init() {}

    /// Keys of the section that are required and not set.
    package var missing: [String] {
        [
            ("token_url", tokenURL == nil), ("client_id", clientID.isEmpty),
            ("client_secret", secret.source == nil),
        ].filter(\.1).map(\.0)
    }
}
