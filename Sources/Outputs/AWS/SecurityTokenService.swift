internal import EventLoops
internal import Model

/// Requests the credentials of a role from AWS's token service.
///
/// Source: AWS Security Token Service API Reference, AssumeRole and AssumeRoleWithWebIdentity.
struct SecurityTokenService {
    private let service: CredentialService
    private let region: String
    /// Name of the sessions; AWS's logs show it.
    private let session: String

    /// The service at an address, reached through the destination's proxy and verified with its
    /// authorities.
    init(
        _ endpoint: String, region: String, session: String, _ connection: HTTPOptions, on loop: EventLoop
    ) throws(OutputError) {
        service = try CredentialService(
            "AWS's token service",
            connection.beside(EndpointURL(endpoint), caFile: connection.settings.tls.caFile),
            on: loop)
        self.region = region
        self.session = session
    }

    /// The credentials of a role that the owner of `base` may assume.
    ///
    /// - Parameter externalID: a word that the role's owner demands besides the role's name; nil for none.
    func assume(
        _ role: String, externalID: String?, with base: AWSCredentials
    ) async throws(CredentialFailure) -> AWSCredentials {
        let external = externalID.map { [(name: "ExternalId", value: $0)] } ?? []
        return try await ask(
            "AssumeRole", of: role, external, base.tokenHeaders,
            base.signature(scope: "aws:amz:\(region):sts"))
    }

    /// The credentials of a role in exchange for a token of an identity provider, which Kubernetes keeps in
    /// a file.
    func exchange(tokenOf file: String, for role: String) async throws(CredentialFailure) -> AWSCredentials {
        // Kubernetes replaces the token every few hours, so the file is read for each request.
        let token = try relaying(try SecretProvider(.file(file)).current, CredentialFailure.init)
        return try await ask(
            "AssumeRoleWithWebIdentity", of: role, [(name: "WebIdentityToken", value: token?.revealed ?? "")])
    }

    /// Makes a request of the service's query API.
    private func ask(
        _ action: String, of role: String, _ arguments: [(name: String, value: String)],
        _ headers: [String] = [],
        _ signature: AWSSignature? = nil
    ) async throws(CredentialFailure) -> AWSCredentials {
        let form =
            [("Action", action), ("Version", "2011-06-15"), ("RoleArn", role), ("RoleSessionName", session)]
            + arguments
        return try await service.ask(
            "the credentials of \(role)", .post, "/", headers, form: form, signature: signature,
            words: S3Answer.errorCode, read: AWSCredentials.init(tokenService:))
    }
}
