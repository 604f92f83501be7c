internal import Digests
internal import EventLoops
internal import Glibc
internal import Model

/// Signs requests to AWS, with credentials that it keeps good.
final class AWSSigner: RequestAuthorizer {
    private let settings: AWSSettings
    private let scope: String
    /// Fetches credentials that end; nil where they are given.
    private let source: (() async throws(CredentialFailure) -> AWSCredentials)?
    private let tokenService: SecurityTokenService?
    private var given: AWSCredentials?
    private let temporary = Temporary<AWSCredentials>()

    /// - Parameters:
    ///   - installID: what AWS's logs call this agent.
    ///   - connection: how the destination is reached: its proxy and authorities hold for the token service too.
    /// - Throws: `OutputError`: an address that is none, an environment that lacks what the settings expect there.
    ///
    /// Source: AWS SDKs and Tools Reference Guide, "Environment variables list".
    init(
        _ settings: AWSSettings, service: String, installID: String?, _ connection: HTTPOptions, on loop: EventLoop,
        environment variable: (String) -> String? = AWSSigner.variable
    ) throws(OutputError) {
        self.settings = settings
        scope = "aws:amz:\(settings.region):\(service)"
        func require(_ name: String) throws(OutputError) -> String {
            if let value = variable(name) { return value }
            throw OutputError(
                .invalidSetting,
                "credentials = \"\(settings.credentials.rawValue)\", and \(name) is not in the agent's environment")
        }
        var tokenService: SecurityTokenService?
        if settings.assumeRole != nil || settings.credentials == .webIdentity {
            let endpoint = variable("AWS_ENDPOINT_URL_STS") ?? "https://sts.\(settings.region).amazonaws.com"
            tokenService = try SecurityTokenService(
                endpoint, region: settings.region, session: installID.map { "spoolship-\($0)" } ?? "spoolship",
                connection, on: loop)
        }
        self.tokenService = tokenService
        switch settings.credentials {
        case .key: source = nil
        case .environment:
            source = nil
            given = AWSCredentials(
                accessKeyID: try require("AWS_ACCESS_KEY_ID"), secret: Secret(try require("AWS_SECRET_ACCESS_KEY")),
                sessionToken: variable("AWS_SESSION_TOKEN").map { Secret($0) })
        case .instance:
            let endpoint = variable("AWS_EC2_METADATA_SERVICE_ENDPOINT") ?? "http://169.254.169.254"
            source = try InstanceMetadata(endpoint: endpoint, on: loop).credentials
        case .container:
            let token =
                variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE").map { SecretSource.file($0) }
                ?? variable("AWS_CONTAINER_AUTHORIZATION_TOKEN").map { .inline(Secret($0)) }
            let near = variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI").map { "http://169.254.170.2\($0)" }
            let url = if let near { near } else { try require("AWS_CONTAINER_CREDENTIALS_FULL_URI") }
            source = try ContainerCredentials(url: url, token: token, on: loop).credentials
        case .webIdentity:
            let (role, file) = (try require("AWS_ROLE_ARN"), try require("AWS_WEB_IDENTITY_TOKEN_FILE"))
            source = tokenService.map { service in
                { () async throws(CredentialFailure) in try await service.exchange(tokenOf: file, for: role) }
            }
        }
    }

    /// A variable of the agent's environment; nil when it is not set or empty.
    static func variable(_ name: String) -> String? {
        getenv(name).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
    }

    func authorize(
        _ request: inout HTTPRequest, checksum: [UInt8]?, _ time: any TimeSource
    ) async throws(CredentialFailure) {
        let credentials: AWSCredentials
        if source != nil || tokenService != nil {
            let given = try await temporary.current(time) { () throws(CredentialFailure) in try await renewed() }
            (credentials, request.credential) = (given.value, given.number)
        } else {
            credentials = try base()
        }
        // Some services ask for it, and none refuses it.
        request.headers.append("x-amz-content-sha256: \(Hexadecimal.text(checksum ?? SHA256.bytes(request.body)))")
        request.headers += credentials.tokenHeaders
        request.signature = credentials.signature(scope: scope)
    }

    private func renewed() async throws(CredentialFailure) -> AWSCredentials {
        let base = if let source { try await source() } else { try base() }
        guard let role = settings.assumeRole, let tokenService else { return base }
        return try await tokenService.assume(role, externalID: settings.externalID, with: base)
    }

    private func base() throws(CredentialFailure) -> AWSCredentials {
        guard let given else { throw CredentialFailure(kind: .local, "there are no credentials") }
        return given
    }

    func use(_ secret: Secret?) {
        guard settings.credentials == .key, let secret else { return }
        given = AWSCredentials(accessKeyID: settings.accessKeyID, secret: secret)
        temporary.forget()
    }

    func renewRefused(_ request: HTTPRequest, isOver: Bool, at now: BootInstant) -> Bool {
        temporary.renewRefused(request.credential, isOver: isOver, at: now)
    }
}
