internal import EventLoops
internal import Model

/// Requests the credentials of the machine's role from the EC2 instance metadata service.
///
/// Three small requests: a session token (IMDSv2), the role's name, its credentials. They take milliseconds
/// on EC2, and end within seconds on other machines.
///
/// Source: Amazon EC2 User Guide, "Use the Instance Metadata Service to access instance metadata".
struct InstanceMetadata {
    /// Path under which the service names the role and its credentials.
    private static let path = "/latest/meta-data/iam/security-credentials/"

    private let service: CredentialService

    /// - Throws: `OutputError` if the address is not valid.
    init(endpoint: String, on loop: EventLoop) throws(OutputError) {
        service = try CredentialService("the instance metadata service", nearby: endpoint, on: loop)
    }

    /// The role's credentials. The role's name comes from outside and becomes a part of an address, so only
    /// the characters that IAM allows are accepted.
    func credentials() async throws(CredentialFailure) -> AWSCredentials {
        let token = try await text(
            "a session token", .put, "/latest/api/token", ["X-aws-ec2-metadata-token-ttl-seconds: 300"])
        let headers = ["X-aws-ec2-metadata-token: \(token)"]
        let roles = try await text("the machine's role", .get, InstanceMetadata.path, headers)
        guard let role = roles.split(whereSeparator: \.isNewline).first,
            role.hasOnlyLettersDigits(and: "+=,.@_-")
        else {
            throw CredentialFailure(
                kind: .protocolViolation, "the instance metadata service names no role; give the machine one")
        }
        return try await service.ask(
            "the role's credentials", .get, InstanceMetadata.path + role, headers,
            read: AWSCredentials.init(document:))
    }

    /// Requests a short text.
    private func text(
        _ what: String, _ method: HTTPRequest.Method, _ path: String, _ headers: [String] = []
    ) async throws(CredentialFailure) -> String {
        try await service.ask(what, method, path, headers) { body in
            // The text becomes a part of the next request: it must not contain control characters.
            (1...4096).contains(body.count) && body.allSatisfy { $0 >= 0x20 && $0 < 0x7F || $0 == 0x0A }
                ? String(decoding: body, as: UTF8.self) : nil
        }
    }
}

/// Requests the credentials of the container's role from the agent of its host (ECS, EKS Pod Identity).
///
/// Source: AWS SDKs and Tools Reference Guide, "Container credential provider".
struct ContainerCredentials {
    private let service: CredentialService
    /// Token that the service asks for; nil if the environment names none.
    private let token: SecretSource?

    /// - Throws: `OutputError` if the address is not valid, or is plain HTTP to another machine: the answer
    ///   contains secrets.
    init(url: String, token: SecretSource?, on loop: EventLoop) throws(OutputError) {
        guard let address = HTTPAddress(url),
            address.scheme == "https" || ContainerCredentials.isNear(address)
        else {
            throw OutputError(
                .invalidSetting,
                "AWS_CONTAINER_CREDENTIALS_FULL_URI is neither https nor an address of this machine")
        }
        service = try CredentialService("the container's credential service", nearby: url, on: loop)
        self.token = token
    }

    /// The role's credentials. The token's file is read for each request, because its content is replaced.
    func credentials() async throws(CredentialFailure) -> AWSCredentials {
        var headers: [String] = []
        if let source = token,
            let token = try relaying(try SecretProvider(source).current, CredentialFailure.init)
        {
            headers.append("Authorization: \(token.revealed)")
        }
        return try await service.ask(
            "the role's credentials", .get, "", headers, read: AWSCredentials.init(document:))
    }

    /// Whether an address is on this machine: loopback, or an address that ECS or EKS reserve for it.
    private static func isNear(_ address: HTTPAddress) -> Bool {
        address.isLoopback || ["169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"].contains(address.host)
    }
}
