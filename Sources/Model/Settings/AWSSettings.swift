/// How requests to AWS are signed: `[destination.aws]`, and part of `[destination.s3]`.
public struct AWSSettings: Sendable, Equatable {
    /// Where credentials come from: the settings, the environment, the role of the machine (`instance`)
    /// or the container, or a token for a role (`webIdentity`).
    package enum Credentials: String, Sendable, CaseIterable {
        case key, environment, instance, container
        case webIdentity = "web_identity"
    }

    /// The region that requests are signed for; not empty if requests are signed.
    package var region = ""
    /// The service that requests are signed for; `es` is OpenSearch Service.
    package var service = "es"
    package var credentials = Credentials.key
    /// The key for `Credentials.key`.
    package var accessKeyID = ""
    package var secret = SecretSetting()
    /// ARN of a role to assume with the credentials; nil to use them as they are.
    package var assumeRole: String?
    /// External id that the owner of the role requires; nil if none is required.
    package var externalID: String?

    package init() {}

    /// Keys of the section that are required and not set.
    package var missing: [String] {
        [
            ("region", region.isEmpty), ("access_key_id", credentials == .key && accessKeyID.isEmpty),
            ("secret_access_key", credentials == .key && secret.source == nil),
        ].filter(\.1).map(\.0)
    }
}
