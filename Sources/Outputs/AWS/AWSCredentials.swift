internal import EventLoops
internal import Model

struct AWSCredentials: Expiring, Equatable {
    var accessKeyID: String
    var secret: Secret
    /// Goes with temporary credentials.
    var sessionToken: Secret?
    var expires: Timestamp?

    func lifetime(from now: Timestamp) -> Duration? { expires.map { $0 - now } }

    /// Amazon offers new ones at least 5 minutes before the end.
    func margin(of lifetime: Duration) -> Duration { .seconds(300) }

    /// - Parameter scope: `aws:amz:REGION:SERVICE`.
    func signature(scope: String) -> AWSSignature {
        AWSSignature(scope: scope, accessKeyID: accessKeyID, secret: secret)
    }

    var tokenHeaders: [String] { sessionToken.map { ["x-amz-security-token: \($0.revealed)"] } ?? [] }
}

extension AWSCredentials {
    /// What a service on the machine answers for a role; nil when it is no such document.
    ///
    /// Source: Amazon EC2 User Guide, "Retrieve security credentials from instance metadata".
    init?(document body: [UInt8]) {
        guard let document = JSONSlice(body[...]), document["Code"]?.string.map({ $0 == "Success" }) ?? true else {
            return nil
        }
        self.init(
            document["AccessKeyId"]?.string, document["SecretAccessKey"]?.string, document["Token"]?.string,
            document["Expiration"]?.string)
    }

    /// What the token service answers; nil when it holds no credentials.
    init?(tokenService body: [UInt8]) {
        func element(_ name: String) -> String? { S3Answer.element(name, in: body, atMost: 8192) }
        guard let token = element("SessionToken") else { return nil }
        self.init(element("AccessKeyId"), element("SecretAccessKey"), token, element("Expiration"))
    }

    private init?(_ id: String?, _ secret: String?, _ token: String?, _ expires: String?) {
        guard let id, let secret, ([id, secret] + (token.map { [$0] } ?? [])).allSatisfy(AWSCredentials.isPlain) else {
            return nil
        }
        accessKeyID = id
        self.secret = Secret(secret)
        sessionToken = token.map { Secret($0) }
        self.expires = expires.flatMap { EventView.time($0) }
    }

    private static func isPlain(_ text: String) -> Bool {
        (1...8192).contains(text.utf8.count) && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
    }
}
