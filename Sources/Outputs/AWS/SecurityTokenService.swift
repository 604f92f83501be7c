internal import EventLoops
internal import Model

/// Asks AWS for the credentials of a role.
///
/// Source: AWS Security Token Service API Reference, AssumeRole and AssumeRoleWithWebIdentity.
struct SecurityTokenService {
    private let service: CredentialService
    private let region: String
    private let session: String

    /// It is reached through the destination's proxy, with its authorities; AWS's logs call this agent `session`.
    init(
        _ endpoint: String, region: String, session: String, _ connection: HTTPOptions, on loop: EventLoop
    ) throws(OutputError) {
        service = try CredentialService(
            "AWS's token service", connection.beside(EndpointURL(endpoint), caFile: connection.settings.tls.caFile),
            on: loop)
        self.region = region
        self.session = session
    }

    /// The credentials of a role that `base` takes on; `externalID` is what its owner asks for beside its name.
    func assume(
        _ role: String, externalID: String?, with base: AWSCredentials
    ) async throws(CredentialFailure) -> AWSCredentials {
        let external = externalID.map { [(name: "ExternalId", value: $0)] } ?? []
        return try await ask(
            "AssumeRole", of: role, external, base.tokenHeaders,
            base.signature(scope: "aws:amz:\(region):sts"))
    }

    /// The credentials of a role that a token of an identity provider stands for, as Kubernetes has it in a file.
    func exchange(tokenOf file: String, for role: String) async throws(CredentialFailure) -> AWSCredentials {
        // It is replaced every few hours, and read when it is needed.
        let token = try relaying(try SecretProvider(.file(file)).current, CredentialFailure.init)
        return try await ask(
            "AssumeRoleWithWebIdentity", of: role, [(name: "WebIdentityToken", value: token?.revealed ?? "")])
    }

    private func ask(
        _ action: String, of role: String, _ arguments: [(name: String, value: String)], _ headers: [String] = [],
        _ signature: AWSSignature? = nil
    ) async throws(CredentialFailure) -> AWSCredentials {
        let form =
            [("Action", action), ("Version", "2011-06-15"), ("RoleArn", role), ("RoleSessionName", session)] + arguments
        return try await service.ask(
            "the credentials of \(role)", .post, "/", headers, form: form, signature: signature,
            words: S3Answer.errorCode, read: AWSCredentials.init(tokenService:))
    }
}
