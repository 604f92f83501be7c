/// `[destination.oauth2]`: the server that issues access tokens, and its client.
public struct OAuth2Settings: Sendable, Equatable {
    package var tokenURL: EndpointURL?
    package var clientID = ""
    package var secret = SecretSetting()
    package var scope: String?
    package var audience: String?
    package var caFile: String?

    package init() {}

    package var missing: [String] {
        [
            ("token_url", tokenURL == nil), ("client_id", clientID.isEmpty),
            ("client_secret_file", secret.source == nil),
        ].filter(\.1).map(\.0)
    }
}
