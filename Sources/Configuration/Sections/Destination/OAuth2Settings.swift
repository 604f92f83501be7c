internal import Model

extension OAuth2Settings: SettingsSection {
    static let entries: [Entry<OAuth2Settings>] =
        [
            .setting(
                "token_url", \.tokenURL, optional: .url("https", "http"), "The token endpoint.",
                example: "\"https://login.example.com/oauth2/token\""),
            .setting("client_id", \.clientID, .text().standingForNothing(""), "Who asks.", example: "\"spoolship\""),
        ]
        + Entry.secret(
            "client_secret", inline: (\.secret.inline, "The client's secret. Better: client_secret_file."),
            file: \.secret.file, credential: \.secret.credential, "the client's secret", example: ("…", "main.secret"))
        + [
            .setting(
                "scope", \.scope, optional: .text(), "What the token is for; by default what the server chooses.",
                example: "\"events.write\""),
            .setting(
                "audience", \.audience, optional: .text(), "Whom the token is for, where the server asks for it.",
                example: "\"https://events.example.com\""),
            .setting(
                "ca_file", \.caFile, optional: .path,
                "The certificates that are trusted at the token endpoint; by default the system's.",
                example: "\"/etc/spoolship/login-ca.pem\""),
        ]
}
