internal import EventLoops
internal import Glibc
internal import Model

/// What a request is signed with.
struct S3Credentials: Sendable, Equatable {
    var accessKeyID: String
    var secret: Secret
    /// Goes with temporary credentials.
    var sessionToken: Secret?
    /// When they end; nil: never by themselves.
    var expires: Timestamp?

    /// How long before their end temporary credentials are renewed. Amazon offers new ones at least 5 minutes before.
    static let margin = Duration.seconds(300)

    /// Whether they are to be renewed by now.
    func isDue(_ now: Timestamp) -> Bool { expires.map { now + S3Credentials.margin >= $0 } ?? false }

    /// Whether they are of no use any more.
    func isOver(_ now: Timestamp) -> Bool { expires.map { now >= $0 } ?? false }

    /// What the environment holds.
    ///
    /// - Throws: `OutputError` with code `invalidSetting` when it holds none.
    static func environment(
        _ variable: (String) -> String? = { getenv($0).map { String(cString: $0) } }
    ) throws(OutputError) -> S3Credentials {
        func value(_ name: String) -> String? { variable(name).flatMap { $0.isEmpty ? nil : $0 } }
        guard let id = value("AWS_ACCESS_KEY_ID"), let secret = value("AWS_SECRET_ACCESS_KEY") else {
            throw OutputError(
                .invalidSetting,
                "credentials = \"environment\", and AWS_ACCESS_KEY_ID or AWS_SECRET_ACCESS_KEY is not in the agent's environment"
            )
        }
        return S3Credentials(
            accessKeyID: id, secret: Secret(secret), sessionToken: value("AWS_SESSION_TOKEN").map { Secret($0) })
    }
}

extension S3Credentials {
    /// What the metadata service answers for a role.
    ///
    /// - Returns: nil when it is no such document.
    /// Source: Amazon EC2 User Guide, "Retrieve security credentials from instance metadata".
    init?(metadata body: [UInt8]) {
        guard let document = JSONSlice(body[...]), document["Code"]?.string.map({ $0 == "Success" }) ?? true,
            let id = document["AccessKeyId"]?.string, let secret = document["SecretAccessKey"]?.string,
            S3Credentials.isPlain(id), S3Credentials.isPlain(secret)
        else { return nil }
        let token = document["Token"]?.string
        if let token, !S3Credentials.isPlain(token) { return nil }
        accessKeyID = id
        self.secret = Secret(secret)
        sessionToken = token.map { Secret($0) }
        expires = document["Expiration"]?.string.flatMap { EventView.time($0) }
    }

    /// Whether a text can be part of a header.
    private static func isPlain(_ text: String) -> Bool {
        (1...8192).contains(text.utf8.count) && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
    }
}
