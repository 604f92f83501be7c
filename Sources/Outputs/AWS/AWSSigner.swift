internal import Digests
internal import EventLoops
internal import Model

/// Signs requests to AWS, with credentials that it keeps good.
final class AWSSigner: RequestAuthorizer {
    private let options: AWSOptions
    private let source: (any AWSCredentialSource)?
    private let tokenService: SecurityTokenService?
    private var given: AWSCredentials?
    private let temporary = Temporary<AWSCredentials>()

    /// - Parameters:
    ///   - session: what AWS's logs call this agent: letters, digits and `+=,.@_-`.
    ///   - connection: how the destination is reached: TLS and proxy hold for the token service as well.
    /// - Throws: `OutputError`: an address that is none.
    init(
        _ options: AWSOptions, session: String, _ connection: HTTPOptions, on loop: EventLoop
    ) throws(OutputError) {
        self.options = options
        let endpoint = options.tokenService ?? "https://sts.\(options.region).amazonaws.com"
        func service() throws(OutputError) -> SecurityTokenService {
            try SecurityTokenService(endpoint, region: options.region, session: session, connection, on: loop)
        }
        tokenService = options.role == nil ? nil : try service()
        switch options.source {
        case .key: source = nil
        case .session(let id, let secret, let token):
            source = nil
            given = AWSCredentials(accessKeyID: id, secret: secret, sessionToken: token)
        case .instance(let endpoint): source = try InstanceMetadata(endpoint: endpoint, on: loop)
        case .container(let url, let token): source = try ContainerCredentials(url: url, token: token, on: loop)
        case .webIdentity(let role, let tokenFile):
            source = WebIdentity(service: try service(), role: role, tokenFile: tokenFile)
        }
    }

    func authorize(
        _ request: inout HTTPRequest, checksum: [UInt8]?, _ now: () -> Timestamp
    ) async throws(CredentialFailure) {
        let credentials =
            source == nil && tokenService == nil
            ? try base() : try await temporary.current(now) { () throws(CredentialFailure) in try await renewed() }
        // Some services ask for it, and none refuses it.
        request.headers.append("x-amz-content-sha256: \(Hexadecimal.text(checksum ?? SHA256.bytes(request.body)))")
        request.headers += credentials.tokenHeaders
        request.signature = credentials.signature(scope: "aws:amz:\(options.region):\(options.service)")
    }

    private func renewed() async throws(CredentialFailure) -> AWSCredentials {
        let base = if let source { try await source.credentials() } else { try base() }
        guard let role = options.role, let tokenService else { return base }
        return try await tokenService.assume(role, with: base)
    }

    private func base() throws(CredentialFailure) -> AWSCredentials {
        guard let given else { throw CredentialFailure(kind: .local, "there are no credentials") }
        return given
    }

    func use(_ secret: Secret?) {
        guard case .key(let id, _) = options.source, let secret else { return }
        given = AWSCredentials(accessKeyID: id, secret: secret)
        temporary.forget()
    }

    func renewRefused(at now: Timestamp) -> Bool {
        temporary.forget()
        // What a person gave cannot be asked for again.
        return source != nil || tokenService != nil
    }
}
