public import EventLoops
public import Model

/// How batches become objects in one bucket. Plain values; the agent's settings are mapped to them.
public struct S3Options: Sendable, Equatable {
    /// The bucket's name.
    public var bucket: String
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
    /// Whom requests are signed for, and in which region.
    public var aws: AWSOptions
    /// How requests are made: TLS, proxy, times, compression. Its `url`, headers and authorization are not used.
    public var http: HTTPOptions

    /// A bucket, with the defaults for the rest.
    public init(bucket: String, endpoint: String? = nil, key: ObjectKey = ObjectKey.standard, aws: AWSOptions) {
        self.bucket = bucket
        self.endpoint = endpoint
        self.key = key
        self.aws = aws
        http = HTTPOptions(url: "")
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
        let text = endpoint ?? "https://s3.\(aws.region).amazonaws.com"
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
