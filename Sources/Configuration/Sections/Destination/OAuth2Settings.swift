internal import Model

/// `[destination.oauth2]`: the server that issues access tokens, and the agent's client or key there.
extension OAuth2Settings: SettingsSection {
    static let entries: [Entry<OAuth2Settings>] =
        [
            .pair(
                // http is judged as for the destination's own url (`allow_plain_http`): the client's secret
                // goes there. The CA is separate from the destination's `tls.ca_file`: a login server often
                // has a public certificate when the receiver has a private one.
                "token_url",
                .init("address", \.tokenURL, optional: EndpointURL.settingType("https", "http")),
                .init("ca_file", \.caFile, optional: .path),
                "The token endpoint, and the certificates that are trusted there; by default the system's.",
                example: "\"https://login.example.com/oauth2/token\""),
            .setting("ca_file", \.caFile, optional: .path, "Now token_url.ca_file.")
                .renamed(to: "token_url.ca_file"),
            .setting(
                "grant", \.grant, .choice,
                "client_credentials or jwt_bearer."
            ).retired("with private_key it is jwt_bearer, with client_secret client_credentials"),
            .pair(
                "client_id", .init("id", \.clientID, .text().standingForNothing("")),
                .init("subject", \.subject, optional: .text()),
                "The client's id, or who signs the assertion (iss), by default the account of the account's"
                    + " file; and for whom the token is asked for (sub), by default nobody, as Google"
                    + " expects.",
                example: "\"spoolship\""),
            .setting("issuer", \.clientID, .text(), "Now client_id.").renamed(to: "client_id"),
        ]
        + Entry.secret(
            "client_secret", \.secret.source, file: \.secret.file, credential: \.secret.credential,
            "The client's secret (RFC 6749, client credentials).", example: "main.secret")
        + [
            .pair(
                "private_key", .init("key", \.privateKey.source, optional: .secretFile),
                .init("id", \.keyID, optional: .text()),
                "Instead of it the RSA key that signs assertions (RFC 7523, RS256): a PEM file without"
                    + " a password, or the JSON file of a Google service account; and its id (kid), by"
                    + " default that of the account's file.",
                example: "\"file:/etc/spoolship/account.json\""),
            .setting("key_id", \.keyID, optional: .text(), "Now private_key.id.")
                .renamed(to: "private_key.id"),
            .setting("subject", \.subject, optional: .text(), "Now client_id.subject.")
                .renamed(to: "client_id.subject"),
            .setting(
                "scope", \.scope, optional: .text(), "The scope of the token; by default the server chooses.",
                example: "\"events.write\""),
            .setting(
                "audience", \.audience, optional: .text(),
                "The audience of the token, if the server requires one; that of the assertion is by default"
                    + " the token endpoint.",
                example: "\"https://events.example.com\""),
        ]
}
