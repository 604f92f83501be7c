public import Model

extension DestinationSettings {
    /// Every secret that a destination may have besides its headers, by its setting: who checks secrets, or takes them out of a
    /// text, goes by this list. Where each is kept; nil: it has none.
    public var secrets: [(setting: String, source: SecretSource?)] {
        [
            ("token", token.source), ("password", password.source), ("oauth2.client_secret", oauth2.secret.source),
            ("aws.secret_access_key", aws.secret.source), ("s3.secret_access_key", s3.aws.secret.source),
            ("nats.nkey", nats.nkey.source), ("nats.credentials", nats.credentials.source),
        ]
    }
}
