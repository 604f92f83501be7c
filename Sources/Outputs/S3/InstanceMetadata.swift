internal import EventLoops
internal import Model

/// Asks the instance metadata service for the credentials of the machine's role.
///
/// A session token first (IMDSv2), then the role's name, then its credentials: three small requests, which take
/// milliseconds where there is such a service and end within seconds where there is none. The service is on the machine's
/// own link: no proxy is used.
///
/// Source: Amazon EC2 User Guide, "Use the Instance Metadata Service to access instance metadata".
struct InstanceMetadata {
    private static let path = "/latest/meta-data/iam/security-credentials/"

    private let client: HTTPClient
    private let endpoint: String

    /// - Throws: `OutputError`: the address is none.
    init(endpoint: String, on loop: EventLoop) throws(OutputError) {
        var options = HTTPOptions(url: endpoint)
        options.proxy = .none
        // The service speaks plain HTTP by definition; its address is link-local.
        options.allowPlainHTTP = true
        options.connectTimeout = .seconds(2)
        options.requestTimeout = .seconds(5)
        options.connectionAge = .seconds(10)
        try options.check()
        client = try HTTPClient(
            on: loop, settings: TransferSettings(options: options, tls: try TLSMaterial(options.tls).contents))
        self.endpoint = endpoint.hasSuffix("/") ? String(endpoint.dropLast()) : endpoint
    }

    /// The credentials as they are now.
    ///
    /// - Throws: a `Failure` that says which of the requests failed, and how.
    func credentials() async throws(MetadataFailure) -> S3Credentials {
        let token = try await text(
            "a session token", .put, "/latest/api/token", ["X-aws-ec2-metadata-token-ttl-seconds: 300"])
        let headers = ["X-aws-ec2-metadata-token: \(token)"]
        let roles = try await text("the machine's role", .get, InstanceMetadata.path, headers)
        guard let role = roles.split(whereSeparator: \.isNewline).first,
            role.hasOnlyLettersDigits(and: "+=,.@_-")
        else {
            throw MetadataFailure(
                kind: .protocolViolation, "the instance metadata service names no role; give the machine one")
        }
        let body = try await ask("the role's credentials", .get, InstanceMetadata.path + role, headers)
        guard let credentials = S3Credentials(metadata: body) else {
            throw MetadataFailure(
                kind: .protocolViolation, "what the instance metadata service answered is no credentials")
        }
        return credentials
    }

    private func text(
        _ what: String, _ method: HTTPRequest.Method, _ path: String, _ headers: [String]
    ) async throws(MetadataFailure) -> String {
        let body = try await ask(what, method, path, headers)
        // It becomes part of the next request.
        guard (1...4096).contains(body.count), body.allSatisfy({ $0 >= 0x20 && $0 < 0x7F || $0 == 0x0A }) else {
            throw MetadataFailure(
                kind: .protocolViolation, "what the instance metadata service answered is not \(what)")
        }
        return String(decoding: body, as: UTF8.self)
    }

    private func ask(
        _ what: String, _ method: HTTPRequest.Method, _ path: String, _ headers: [String]
    ) async throws(MetadataFailure) -> [UInt8] {
        let request = HTTPRequest(method: method, url: endpoint + path, headers: headers, body: [], answerLimit: 65_536)
        switch await client.perform(request) {
        case .failed(let failure), .noRoute(let failure):
            throw MetadataFailure(
                kind: failure.kind,
                "no credentials: cannot ask the instance metadata service for \(what): \(failure.message)")
        case .answered(let answer):
            guard answer.status == 200, answer.isWhole else {
                throw MetadataFailure(
                    kind: .status,
                    "no credentials: the instance metadata service answered \(answer.status) when asked for \(what)")
            }
            return answer.body
        }
    }
}

/// Why there are no credentials.
struct MetadataFailure: Error {
    let failure: Failure

    init(kind: Failure.Kind, _ message: String) { failure = Failure(kind: kind, message: message) }
}
