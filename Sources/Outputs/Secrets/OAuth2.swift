internal import Digests
internal import EventLoops
internal import Model

struct AccessToken: Expiring, Equatable {
    var text: Secret
    var lifetime: Duration?

    /// Its life began when it was asked for, if not later.
    func lifetime(from now: Timestamp) -> Duration? { lifetime }

    /// Any lifetime leaves time for a few tries.
    func margin(of lifetime: Duration) -> Duration { lifetime / 5 }

    /// - Returns: nil when the answer holds no bearer token.
    init?(answer: [UInt8]) {
        guard let answer = JSONSlice(answer[...]), let token = answer["access_token"]?.string,
            (1...32_768).contains(token.utf8.count), token.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }),
            answer["token_type"]?.string?.lowercased() == "bearer"
        else { return nil }
        text = Secret(token)
        lifetime = answer["expires_in"]?.integer.map { .seconds(min(max($0, 0), 365 * 86_400)) }
    }
}

/// Asks for access tokens by the client credentials grant, and sends them along.
///
/// Source: RFC 6749, sections 4.4 and 2.3.1.
final class OAuth2Client: RequestAuthorizer {
    private let settings: OAuth2Settings
    private let service: CredentialService
    private var secret: Secret?
    private let temporary = Temporary<AccessToken>()

    /// - Parameter connection: how the destination is reached: its proxy holds for the token endpoint too.
    /// - Throws: `OutputError`: the address is none.
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

    /// A token that is good now; throws why there is none.
    func token(_ time: any TimeSource) async throws(CredentialFailure) -> Temporary<AccessToken>.Given {
        try await temporary.current(time) { () throws(CredentialFailure) in try await ask() }
    }

    private func ask() async throws(CredentialFailure) -> AccessToken {
        guard let secret else { throw CredentialFailure(kind: .local, "there is no client secret") }
        let user = "\(settings.clientID.percentEncoded):\(secret.revealed.percentEncoded)"
        var form = [(name: "grant_type", value: "client_credentials")]
        if let scope = settings.scope { form.append(("scope", scope)) }
        if let audience = settings.audience { form.append(("audience", audience)) }
        return try await service.ask(
            "a bearer token", .post, "",
            ["Authorization: Basic \(Base64.encode(Array(user.utf8)))", "Accept: application/json"], form: form,
            words: OAuth2Client.error, read: AccessToken.init(answer:))
    }

    /// The errors that a token endpoint may name. Source: RFC 6749, section 5.2.
    private static func error(_ body: [UInt8]) -> String? {
        let known = [
            "invalid_client", "invalid_grant", "invalid_request", "invalid_scope", "unauthorized_client",
            "unsupported_grant_type",
        ]
        return JSONSlice(body[...])?["error"]?.string.flatMap { known.contains($0) ? $0 : nil }
    }

    func use(_ secret: Secret?) {
        self.secret = secret
        temporary.forget()
    }

    func renewRefused(_ request: HTTPRequest, isOver: Bool, at now: BootInstant) -> Bool {
        renewRefused(request.credential, isOver: isOver, at: now)
    }

    func renewRefused(_ number: Int?, isOver: Bool = false, at now: BootInstant) -> Bool {
        temporary.renewRefused(number, isOver: isOver, at: now)
    }
}
