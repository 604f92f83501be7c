/// A server that issues access tokens, and how the agent proves there who it is: `[destination.oauth2]`.
public struct OAuth2Settings: Sendable, Equatable {
    /// How a token is asked for.
    package enum Grant: String, Sendable, CaseIterable {
        /// With the id and the secret of a client (RFC 6749, section 4.4).
        case clientCredentials = "client_credentials"
        /// With an assertion that the agent signs (RFC 7523), as for service accounts of Google.
        case jwtBearer = "jwt_bearer"
    }

    /// The grant that an older configuration names; nil if it follows from the secret.
    private var namedGrant: Grant?
    package var grant: Grant {
        get { namedGrant ?? (privateKey.source == nil ? .clientCredentials : .jwtBearer) }
        // The default says nothing: a section in which only it is written counts as not set.
        set { namedGrant = newValue == .clientCredentials ? nil : newValue }
    }
    package var tokenURL: EndpointURL?
    /// The client, or who signs an assertion (`iss`); empty takes the account of the service account's file.
    package var clientID = ""
    package var secret = SecretSetting()
    /// The key that signs assertions: PEM, or a service account's file of Google.
    package var privateKey = SecretSetting()
    /// Id of the key (`kid`); nil takes that of the service account's file, if there is one.
    package var keyID: String?
    /// For whom a token is asked for (`sub`); nil leaves the claim out.
    package var subject: String?
    package var scope: String?
    package var audience: String?
    /// Certificates that are trusted for the token server, in PEM; nil trusts those of the system.
    package var caFile: String?

    package init() {}

    /// Where the grant's secret is kept; nil if it is not set.
    package var proof: SecretSource? { grant == .jwtBearer ? privateKey.source : secret.source }

    /// Keys of the section that are required and not set.
    package var missing: [String] {
        let wanted =
            switch grant {
            case .clientCredentials:
                [("client_id", clientID.isEmpty), ("client_secret", secret.source == nil)]
            case .jwtBearer: [("private_key", privateKey.source == nil)]
            }
        return ([("token_url", tokenURL == nil)] + wanted).filter(\.1).map(\.0)
    }

    /// Keys that are set although only the other grant uses them.
    package var useless: [String] {
        let set =
            switch grant {
            case .clientCredentials:
                [
                    ("private_key", privateKey.source != nil || keyID != nil),
                    ("client_id.subject", subject != nil),
                ]
            case .jwtBearer: [("client_secret", secret.source != nil)]
            }
        return set.filter(\.1).map(\.0)
    }
}
