internal import Digests
internal import EventLoops
internal import Glibc
internal import Model

/// Adds what AWS needs to sign a request (libcurl signs it), and keeps the credentials for it valid: from
/// the settings, the environment, the machine's role, the container's role, or a token that Kubernetes
/// provides.
final class AWSSigner: RequestAuthorizer {
    private let settings: AWSSettings
    /// `aws:amz:REGION:SERVICE`.
    private let scope: String
    /// Requests credentials from a service on the machine or by web identity; nil if they are given.
    private let source: (() async throws(CredentialFailure) -> AWSCredentials)?
    /// Exchanges credentials for those of another role; nil if no role is to be assumed.
    private let tokenService: SecurityTokenService?
    /// Credentials of the settings or the environment; nil if a service issues them.
    private var given: AWSCredentials?
    /// The latest issued credentials.
    private let temporary = Temporary<AWSCredentials>()

    /// Finds the source of credentials that the settings name. Connects to nothing.
    ///
    /// - Parameters:
    ///   - installID: becomes a part of the session's name, which AWS's logs show.
    ///   - connection: how the destination is reached; the token service is reached through the same proxy
    ///     and verified with the same authorities.
    ///   - environment: a variable of the environment; nil if it is not set or empty.
    /// - Throws: `OutputError` if an address is not valid, or the environment lacks what the settings
    ///   expect there.
    ///
    /// Source: AWS SDKs and Tools Reference Guide, "Environment variables list".
    init(
        _ settings: AWSSettings, service: String, installID: String?, _ connection: HTTPOptions,
        on loop: EventLoop,
        environment variable: (String) -> String? = AWSSigner.variable
    ) throws(OutputError) {
        self.settings = settings
        scope = "aws:amz:\(settings.region):\(service)"
        func require(_ name: String) throws(OutputError) -> String {
            if let value = variable(name) { return value }
            throw OutputError(
                .invalidSetting,
                "credentials = \"\(settings.credentials.rawValue)\", and \(name) is not in the agent's environment"
            )
        }
        var tokenService: SecurityTokenService?
        if settings.assumeRole != nil || settings.credentials == .webIdentity {
            let endpoint = variable("AWS_ENDPOINT_URL_STS") ?? "https://sts.\(settings.region).amazonaws.com"
            tokenService = try SecurityTokenService(
                endpoint, region: settings.region,
                session: installID.map { "spoolship-\($0)" } ?? "spoolship",
                connection, on: loop)
        }
        self.tokenService = tokenService
        switch settings.credentials {
        case .key: source = nil
        case .environment:
            source = nil
            given = AWSCredentials(
                accessKeyID: try require("AWS_ACCESS_KEY_ID"),
                secret: Secret(try require("AWS_SECRET_ACCESS_KEY")),
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
            let role = try require("AWS_ROLE_ARN")
            let file = try require("AWS_WEB_IDENTITY_TOKEN_FILE")
            source = tokenService.map { service in
                { () async throws(CredentialFailure) in try await service.exchange(tokenOf: file, for: role) }
            }
        }
    }

    /// A variable of the agent's environment; nil if it is not set or empty.
    static func variable(_ name: String) -> String? {
        getenv(name).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
    }

    func authorize(
        _ request: inout HTTPRequest, checksum: [UInt8]?, _ time: any TimeSource
    ) async throws(CredentialFailure) {
        let credentials: AWSCredentials
        if source != nil || tokenService != nil {
            let given = try await temporary.current(time) { () throws(CredentialFailure) in
                try await renewed()
            }
            credentials = given.value
            request.credential = given.number
        } else {
            credentials = try base()
        }
        // S3 requires this header; no service refuses it.
        request.headers.append(
            "x-amz-content-sha256: \(Hexadecimal.text(checksum ?? SHA256.bytes(request.body)))")
        request.headers += credentials.tokenHeaders
        request.signature = credentials.signature(scope: scope)
    }

    /// Requests credentials, and exchanges them for those of the role to assume, if one is set.
    private func renewed() async throws(CredentialFailure) -> AWSCredentials {
        let base = if let source { try await source() } else { try base() }
        guard let role = settings.assumeRole, let tokenService else { return base }
        return try await tokenService.assume(role, externalID: settings.externalID, with: base)
    }

    /// The given credentials; throws if the secret's file has not been read yet.
    private func base() throws(CredentialFailure) -> AWSCredentials {
        guard let given else { throw CredentialFailure(kind: .local, "there are no credentials") }
        return given
    }

    /// Uses another secret key; sessions that were requested with the old key are dropped.
    func use(_ secret: Secret?) {
        guard settings.credentials == .key, let secret else { return }
        given = AWSCredentials(accessKeyID: settings.accessKeyID, secret: secret)
        temporary.forget()
    }

    func dropIssued() { temporary.renewNext() }

    func renewRefused(_ request: HTTPRequest, isOver: Bool, at now: BootInstant) -> Bool {
        temporary.renewRefused(request.credential, isOver: isOver, at: now)
    }
}
