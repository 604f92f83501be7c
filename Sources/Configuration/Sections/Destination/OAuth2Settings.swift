internal import Model

/// `[destination.oauth2]`: the server that issues access tokens, and the agent's client there. Tokens come
/// from the client credentials grant (RFC 6749, section 4.4).
extension OAuth2Settings: SettingsSection {
    static let entries: [Entry<OAuth2Settings>] =
        [
            .setting(
                // http is judged as for the destination's own url (`allow_plain_http`): the client's secret
                // goes there.
                "token_url", \.tokenURL, optional: .url("https", "http"), "The token endpoint.",
                example: "\"https://login.example.com/oauth2/token\""),
            .setting(
                "client_id", \.clientID, .text().standingForNothing(""), "The client's id.",
                example: "\"spoolship\""),
        ]
        + Entry.secret(
            "client_secret", \.secret.source, file: \.secret.file, credential: \.secret.credential,
            "The client's secret.", example: "main.secret")
        + [
            .setting(
                "scope", \.scope, optional: .text(), "The scope of the token; by default the server chooses.",
                example: "\"events.write\""),
            .setting(
                "audience", \.audience, optional: .text(),
                "The audience of the token, if the server requires one.",
                example: "\"https://events.example.com\""),
            .setting(
                // Separate from the destination's `tls.ca_file`: a login server often has a public
                // certificate when the receiver has a private one.
                "ca_file", \.caFile, optional: .path,
                "The certificates that are trusted at the token endpoint; by default the system's.",
                example: "\"/etc/spoolship/login-ca.pem\""
            ).listedElsewhere(),
        ]
}
