/// How requests to AWS are signed: `[destination.aws]`, and part of `[destination.s3]`.
public struct AWSSettings: Sendable, Equatable {
    /// Where credentials come from: settings, environment, the machine's or container's role, or a token for a role.
    package enum Credentials: String, Sendable, CaseIterable {
        case key, environment, instance, container
        case webIdentity = "web_identity"
    }

    package var region = ""
    package var service = "es"
    package var credentials = Credentials.key
    package var accessKeyID = ""
    package var secret = SecretSetting()
    package var assumeRole: String?
    package var externalID: String?

    package init() {}

    /// What is missing, as keys of its section.
    package var missing: [String] {
        [
            ("region", region.isEmpty), ("access_key_id", credentials == .key && accessKeyID.isEmpty),
            ("secret_access_key_file", credentials == .key && secret.source == nil),
        ].filter(\.1).map(\.0)
    }
}
