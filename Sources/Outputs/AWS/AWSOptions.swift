public import EventLoops
internal import Glibc
public import Model

/// Whom requests to AWS are signed for. Plain values; the agent's settings are mapped to them.
public struct AWSOptions: Sendable, Equatable {
    /// Where credentials come from.
    public enum Source: Sendable, Equatable {
        /// A key of its own for the agent: its id, and where its secret is kept. A secret in a file is read again when
        /// the file changes.
        case key(id: String, secret: SecretSource)
        /// A key with a session token, as of the start.
        case session(id: String, secret: Secret, token: Secret?)
        /// The role of the machine, from the instance metadata service (IMDSv2) at this address.
        case instance(endpoint: String)
        /// The role of the container, from the service at this address.
        case container(url: String, token: SecretSource?)
        /// A role for the token in a file, which the token service takes.
        case webIdentity(role: String, tokenFile: String)
    }

    /// A role that is taken on with other credentials.
    public struct Role: Sendable, Equatable {
        /// Its name: `arn:aws:iam::123456789012:role/events`.
        public var arn: String
        /// What its owner asks for beside that; nil for nothing.
        public var externalID: String?

        package init(arn: String, externalID: String? = nil) {
            self.arn = arn
            self.externalID = externalID
        }
    }

    /// The region that requests are signed for, such as `eu-central-1`.
    public var region: String
    /// The service that they are signed for: `s3`, `es`.
    public var service: String
    /// Where credentials come from.
    public var source: Source
    /// The role that is taken on with them; nil: they are used as they are.
    public var role: Role?
    /// The token service's address; nil: Amazon's in the region.
    public var tokenService: String?

    package init(region: String, service: String, source: Source) {
        self.region = region
        self.service = service
        self.source = source
    }
}

extension AWSOptions.Source {
    /// Where the secret is kept that these settings name.
    var secret: SecretSource? { if case .key(_, let secret) = self { secret } else { nil } }

    /// What the environment holds of one kind of credentials, under the names that all tools of AWS know.
    ///
    /// - Throws: `OutputError` with code `invalidSetting` when it holds none.
    /// Source: AWS SDKs and Tools Reference Guide, "Environment variables list".
    public static func environment(
        _ variable: (String) -> String? = AWSOptions.variable
    ) throws(OutputError) -> AWSOptions.Source {
        let names = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]
        let found = try AWSOptions.require(names, "environment", variable)
        return .session(
            id: found[0], secret: Secret(found[1]), token: variable("AWS_SESSION_TOKEN").map { Secret($0) })
    }

    /// The machine's role, by the service whose address may be in the environment.
    public static func instance(_ variable: (String) -> String? = AWSOptions.variable) -> AWSOptions.Source {
        .instance(endpoint: variable("AWS_EC2_METADATA_SERVICE_ENDPOINT") ?? "http://169.254.169.254")
    }

    /// The container's role, by the service that the environment names.
    ///
    /// - Throws: `OutputError` with code `invalidSetting` when it names none.
    public static func container(
        _ variable: (String) -> String? = AWSOptions.variable
    ) throws(OutputError) -> AWSOptions.Source {
        let token =
            variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE").map { SecretSource.file($0) }
            ?? variable("AWS_CONTAINER_AUTHORIZATION_TOKEN").map { .inline(Secret($0)) }
        if let path = variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") {
            return .container(url: "http://169.254.170.2\(path)", token: token)
        }
        let url = try AWSOptions.require(["AWS_CONTAINER_CREDENTIALS_FULL_URI"], "container", variable)[0]
        return .container(url: url, token: token)
    }

    /// The role and the token's file that the environment names, as EKS sets it for a service account.
    ///
    /// - Throws: `OutputError` with code `invalidSetting` when it names none.
    public static func webIdentity(
        _ variable: (String) -> String? = AWSOptions.variable
    ) throws(OutputError) -> AWSOptions.Source {
        let found = try AWSOptions.require(
            ["AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE"], "web_identity", variable)
        return .webIdentity(role: found[0], tokenFile: found[1])
    }
}

extension AWSOptions {
    /// A variable of the agent's environment; nil when it is not set or empty.
    public static func variable(_ name: String) -> String? {
        getenv(name).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
    }

    fileprivate static func require(
        _ names: [String], _ setting: String, _ variable: (String) -> String?
    ) throws(OutputError) -> [String] {
        let found = names.compactMap { variable($0) }
        guard found.count == names.count else {
            throw OutputError(
                .invalidSetting,
                "credentials = \"\(setting)\", and \(names.joined(separator: " or ")) is not in the agent's environment"
            )
        }
        return found
    }
}
