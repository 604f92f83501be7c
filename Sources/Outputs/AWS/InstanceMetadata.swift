internal import EventLoops
internal import Model

/// Asks the instance metadata service for the credentials of the machine's role.
///
/// A session token first (IMDSv2), then the role's name, then its credentials: three small requests, which take
/// milliseconds where there is such a service and end within seconds where there is none.
///
/// Source: Amazon EC2 User Guide, "Use the Instance Metadata Service to access instance metadata".
struct InstanceMetadata {
    private static let path = "/latest/meta-data/iam/security-credentials/"

    private let service: CredentialService

    /// - Throws: `OutputError`: the address is none.
    init(endpoint: String, on loop: EventLoop) throws(OutputError) {
        service = try CredentialService("the instance metadata service", nearby: endpoint, on: loop)
    }

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
            "the role's credentials", .get, InstanceMetadata.path + role, headers, read: AWSCredentials.init(document:))
    }

    private func text(
        _ what: String, _ method: HTTPRequest.Method, _ path: String, _ headers: [String] = []
    ) async throws(CredentialFailure) -> String {
        try await service.ask(what, method, path, headers) { body in
            // It becomes part of the next request.
            (1...4096).contains(body.count) && body.allSatisfy { $0 >= 0x20 && $0 < 0x7F || $0 == 0x0A }
                ? String(decoding: body, as: UTF8.self) : nil
        }
    }
}

/// Asks the agent of a container's host for the credentials of the container's role (ECS, EKS Pod Identity).
///
/// Source: AWS SDKs and Tools Reference Guide, "Container credential provider".
struct ContainerCredentials {
    private let service: CredentialService
    private let token: SecretSource?

    /// - Throws: `OutputError`: the address is none, or leaves the machine in plain text.
    init(url: String, token: SecretSource?, on loop: EventLoop) throws(OutputError) {
        guard let address = HTTPAddress(url), address.scheme == "https" || ContainerCredentials.isNear(address) else {
            throw OutputError(
                .invalidSetting, "AWS_CONTAINER_CREDENTIALS_FULL_URI is neither https nor an address of this machine")
        }
        service = try CredentialService("the container's credential service", nearby: url, on: loop)
        self.token = token
    }

    func credentials() async throws(CredentialFailure) -> AWSCredentials {
        var headers: [String] = []
        if let source = token, let token = try relaying(try SecretProvider(source).current, CredentialFailure.init) {
            headers.append("Authorization: \(token.revealed)")
        }
        return try await service.ask(
            "the role's credentials", .get, "", headers, read: AWSCredentials.init(document:))
    }

    private static func isNear(_ address: HTTPAddress) -> Bool {
        address.isLoopback || ["169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"].contains(address.host)
    }
}
