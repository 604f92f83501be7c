internal import EventLoops
internal import Model

/// An access key of AWS, either permanent or issued for a role.
struct AWSCredentials: Expiring, Equatable {
    var accessKeyID: String
    var secret: Secret
    /// Token that every request with temporary credentials must carry; nil for a permanent key.
    var sessionToken: Secret?
    /// Expiry in the time of day; nil for a permanent key.
    var expires: Timestamp?

    /// Time from `now` until the expiry, which AWS gives as a date.
    func lifetime(from now: Timestamp) -> Duration? { expires.map { $0 - now } }

    /// Five minutes: AWS has new credentials ready at least that long before the old ones expire.
    func margin(of lifetime: Duration) -> Duration { .seconds(300) }

    /// What libcurl needs to sign a request.
    ///
    /// - Parameter scope: `aws:amz:REGION:SERVICE`.
    func signature(scope: String) -> AWSSignature {
        AWSSignature(scope: scope, accessKeyID: accessKeyID, secret: secret)
    }

    /// The header with the session token; empty for a permanent key.
    var tokenHeaders: [String] { sessionToken.map { ["x-amz-security-token: \($0.revealed)"] } ?? [] }
}

extension AWSCredentials {
    /// Reads the credentials that a service on the machine returns for a role; nil if the body is another
    /// document.
    ///
    /// Source: Amazon EC2 User Guide, "Retrieve security credentials from instance metadata".
    init?(document body: [UInt8]) {
        guard let document = JSONSlice(body[...]), document["Code"]?.string.map({ $0 == "Success" }) ?? true
        else {
            return nil
        }
        self.init(
            document["AccessKeyId"]?.string, document["SecretAccessKey"]?.string, document["Token"]?.string,
            document["Expiration"]?.string)
    }

    /// Reads the answer of the token service, which is XML; nil if it contains no credentials.
    init?(tokenService body: [UInt8]) {
        func element(_ name: String) -> String? { S3Answer.element(name, in: body, atMost: 8192) }
        guard let token = element("SessionToken") else { return nil }
        self.init(element("AccessKeyId"), element("SecretAccessKey"), token, element("Expiration"))
    }

    /// Checks and combines the parts; nil if one is missing or not plain.
    private init?(_ id: String?, _ secret: String?, _ token: String?, _ expires: String?) {
        guard let id, let secret,
            ([id, secret] + (token.map { [$0] } ?? [])).allSatisfy(AWSCredentials.isPlain)
        else {
            return nil
        }
        accessKeyID = id
        self.secret = Secret(secret)
        sessionToken = token.map { Secret($0) }
        self.expires = expires.flatMap { EventView.time($0) }
    }

    /// Whether a text may be put into a header: at most 8 KiB of printable ASCII without blanks.
    private static func isPlain(_ text: String) -> Bool {
        (1...8192).contains(text.utf8.count) && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
    }
}
