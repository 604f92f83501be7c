internal import Digests
internal import EventLoops
internal import Model

/// A bearer token of an OAuth 2 token endpoint (RFC 6750), with its lifetime.
struct AccessToken: Expiring, Equatable {
    /// The token. Never in a message.
    var text: Secret
    /// Lifetime from the time of the request, at most a year; nil if the endpoint names none.
    var lifetime: Duration?

    /// The lifetime does not depend on the time of day: the endpoint gives it in seconds.
    func lifetime(from now: Timestamp) -> Duration? { lifetime }

    /// The last fifth of the lifetime, so that a token of any lifetime leaves time for several attempts to
    /// renew it.
    func margin(of lifetime: Duration) -> Duration { lifetime / 5 }

    /// Reads the answer of a token endpoint (RFC 6749, section 5.1).
    ///
    /// - Returns: nil if the answer has no bearer token of 1 to 32,768 printable ASCII characters without
    ///   blanks: the token becomes a part of a header line.
    init?(answer: [UInt8]) {
        guard let answer = JSONSlice(answer[...]), let token = answer["access_token"]?.string,
            (1...32_768).contains(token.utf8.count), token.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }),
            AccessToken.isBearer(answer["token_type"])
        else { return nil }
        text = Secret(token)
        lifetime = answer["expires_in"]?.integer.map { .seconds(min(max($0, 0), 365 * 86_400)) }
    }

    /// Whether a `token_type` means a bearer token. RFC 6749, section 5.1, requires the member; a server
    /// that leaves it out issues bearer tokens.
    private static func isBearer(_ type: JSONSlice?) -> Bool {
        guard let type else { return true }
        return type.string?.lowercased() == "bearer"
    }
}

/// Obtains access tokens by the client credentials grant or with a signed assertion, and adds them to
/// requests as bearer tokens.
///
/// Source: RFC 6749, sections 4.4 (grant) and 2.3.1 (client password); RFC 7523, section 2.1 (assertion);
/// RFC 6750, section 2.1 (header).
final class OAuth2Client: RequestAuthorizer {
    private let settings: OAuth2Settings
    private let service: CredentialService
    /// The client's secret; nil before the output has read it.
    private var secret: Secret?
    /// Signs assertions; nil for the client credentials grant.
    private var signer: AssertionSigner?
    /// The current token; renewed before it expires.
    private let temporary = Temporary<AccessToken>()

    /// - Parameter connection: how the destination is reached; its proxy is used for the token endpoint
    ///   too.
    /// - Throws: `OutputError` if the address of the token endpoint is not valid.
    init(_ settings: OAuth2Settings, _ connection: HTTPOptions, on loop: EventLoop) throws(OutputError) {
        self.settings = settings
        service = try CredentialService(
            "the token endpoint", connection.beside(settings.tokenURL, caFile: settings.caFile), on: loop)
    }

    func authorize(
        _ request: inout HTTPRequest, checksum: [UInt8]?, _ time: any TimeSource
    ) async throws(CredentialFailure) {
        let given = try await token(time)
        request.headers.append("Authorization: Bearer \(given.value.text.revealed)")
        request.credential = given.number
    }

    /// A token that is valid now, from memory or from the endpoint; throws the reason if it cannot be
    /// obtained.
    func token(_ time: any TimeSource) async throws(CredentialFailure) -> Temporary<AccessToken>.Given {
        try await temporary.current(time) { () throws(CredentialFailure) in
            switch settings.grant {
            case .clientCredentials: try await askAsClient()
            case .jwtBearer: try await askWithAssertion(at: time.wallTime)
            }
        }
    }

    /// Name of the client, which Kafka's brokers get beside the token.
    var name: String { settings.clientID.isEmpty ? signer?.issuer ?? "" : settings.clientID }

    /// Requests a token. Id and secret are percent-encoded before Base64, as RFC 6749, section 2.3.1,
    /// requires.
    private func askAsClient() async throws(CredentialFailure) -> AccessToken {
        guard let secret else { throw CredentialFailure(kind: .local, "there is no client secret") }
        let user = "\(settings.clientID.percentEncoded):\(secret.revealed.percentEncoded)"
        var form = [(name: "grant_type", value: "client_credentials")]
        if let scope = settings.scope {
            form.append(("scope", scope))
        }
        if let audience = settings.audience {
            form.append(("audience", audience))
        }
        return try await ask(form, ["Authorization: Basic \(Base64.encode(Array(user.utf8)))"])
    }

    /// Requests a token with an assertion, which the key signs anew each time. Google reads the scope in the
    /// assertion, other servers in the request.
    private func askWithAssertion(at now: Timestamp) async throws(CredentialFailure) -> AccessToken {
        guard let assertion = signer?.assertion(at: now) else {
            throw CredentialFailure(kind: .local, "no credentials: the assertion could not be signed")
        }
        var form = [
            (name: "grant_type", value: "urn:ietf:params:oauth:grant-type:jwt-bearer"),
            ("assertion", assertion),
        ]
        if let scope = settings.scope {
            form.append(("scope", scope))
        }
        return try await ask(form, [])
    }

    private func ask(
        _ form: [(name: String, value: String)], _ headers: [String]
    ) async throws(CredentialFailure) -> AccessToken {
        try await service.ask(
            "a bearer token", .post, "", headers + ["Accept: application/json"], form: form,
            words: OAuth2Client.error, read: AccessToken.init(answer:))
    }

    /// The error that an answer names, if it is one of RFC 6749, section 5.2; nil for other words, which
    /// may quote the request.
    private static func error(_ body: [UInt8]) -> String? {
        let known = [
            "invalid_client", "invalid_grant", "invalid_request", "invalid_scope", "unauthorized_client",
            "unsupported_grant_type",
        ]
        return JSONSlice(body[...])?["error"]?.string.flatMap { known.contains($0) ? $0 : nil }
    }

    func use(_ secret: Secret?) throws(OutputError) {
        if settings.grant == .jwtBearer, let secret {
            signer = try AssertionSigner(secret, settings)
        }
        self.secret = secret
        temporary.forget()
    }

    func dropIssued() { temporary.renewNext() }

    func renewRefused(_ request: HTTPRequest, isOver: Bool, at now: BootInstant) -> Bool {
        renewRefused(request.credential, isOver: isOver, at: now)
    }

    /// Drops a token by its number, for Kafka, which has no requests; see `Temporary.renewRefused`.
    func renewRefused(_ number: Int?, isOver: Bool = false, at now: BootInstant) -> Bool {
        temporary.renewRefused(number, isOver: isOver, at: now)
    }
}
