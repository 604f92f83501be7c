public import EventLoops
internal import Glibc
public import Model

/// How batches become objects in one bucket. Plain values; the agent's settings are mapped to them.
public struct S3Options: Sendable, Equatable {
    /// Where the credentials come from.
    public enum CredentialSource: Sendable, Equatable {
        /// A key of its own for the agent: its id, and where its secret is kept. A secret in a file is read again when
        /// the file changes.
        case key(id: String, secret: SecretSource)
        /// `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and, if it is set, `AWS_SESSION_TOKEN`, as of the start.
        case environment
        /// The role of the machine, from the instance metadata service (IMDSv2) at this address; renewed before it
        /// expires.
        case instance(endpoint: String)
    }

    /// The bucket's name.
    public var bucket: String
    /// The region that requests are signed for, such as `eu-central-1`.
    public var region: String
    /// The service's address without the bucket; nil: Amazon's in that region.
    public var endpoint: String?
    /// Whether the bucket is in the path (`https://host/bucket/key`), as MinIO and Ceph have it by default, and not in
    /// the host's name.
    public var usesPathStyle = false
    /// What an object is called.
    public var key: ObjectKey
    /// The storage class; nil for the bucket's default.
    public var storageClass: String?
    /// Encryption by the server; nil for the bucket's default.
    public var encryption: S3Encryption?
    /// Whether an object that exists is left as it is (`If-None-Match: *`); default yes. Without it a repeat replaces the
    /// object by the same events. Off for servers that do not know the condition.
    public var neverOverwrites = true
    /// Where the credentials come from.
    public var credentials: CredentialSource
    /// How requests are made: TLS, proxy, times, compression. Its `url`, headers and authorization are not used.
    public var http: HTTPOptions

    /// A bucket in a region, with the defaults for the rest.
    public init(
        bucket: String, region: String, endpoint: String? = nil, key: ObjectKey = ObjectKey.standard,
        credentials: CredentialSource
    ) {
        self.bucket = bucket
        self.region = region
        self.endpoint = endpoint
        self.key = key
        self.credentials = credentials
        http = HTTPOptions(url: "")
    }

    /// Where the machine's role is asked for: `AWS_EC2_METADATA_SERVICE_ENDPOINT`, or the link-local address.
    public static var metadataEndpoint: String {
        getenv("AWS_EC2_METADATA_SERVICE_ENDPOINT").map { String(cString: $0) } ?? "http://169.254.169.254"
    }

    /// How the bucket is connected to, for a try.
    ///
    /// - Throws: `OutputError` with code `invalidSetting`.
    public func connection() throws(OutputError) -> HTTPOptions {
        var options = http
        options.url = try baseURL()
        return options
    }

    /// The address that keys are added to; it ends with a slash.
    ///
    /// - Throws: `OutputError` with code `invalidSetting`.
    func baseURL() throws(OutputError) -> String {
        let text = endpoint ?? "https://s3.\(region).amazonaws.com"
        guard let address = HTTPAddress(text), address.scheme == "https" || address.scheme == "http",
            address.query == nil, !address.hasCredentials
        else {
            throw OutputError(.invalidSetting, "the endpoint is no address of the form https://host")
        }
        let base = text.hasSuffix("/") ? String(text.dropLast()) : text
        if usesPathStyle { return "\(base)/\(HTTPAddress.escape(bucket))/" }
        let scheme = "\(address.scheme)://"
        return "\(scheme)\(bucket).\(base.dropFirst(scheme.count))/"
    }
}
