internal import Model

/// `[destination.aws]`: signs requests for an AWS service with Signature Version 4. The struct is in `Model`,
/// because `Outputs` uses it.
///
/// The signature covers region and service, so a wrong one is answered with 403. Neither has a default: a
/// guess would only fail later.
/// Source: https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html
extension AWSSettings: SettingsSection {
    // Credentials are also settings of buckets: see `S3Settings`.
    static let entries: [Entry<AWSSettings>] =
        [
            .setting(
                "region", \.region, AWSSettings.nameType("region").standingForNothing(""),
                "The region that requests are signed for. In [destination.aws] it turns signing on; in"
                    + " [destination.s3] servers without regions accept any, often us-east-1.",
                example: "\"eu-central-1\""),
            .setting(
                "service", \.service, AWSSettings.nameType("service"),
                "The service that requests are signed for: es (OpenSearch Service), aoss (OpenSearch "
                    + "Serverless) and others."
            ),
        ] + credentialEntries

    /// Settings of credentials, which `[destination.s3]` has, too: both sign with Signature Version 4.
    static let credentialEntries: [Entry<AWSSettings>] =
        [
            .setting(
                "credentials", \.credentials, .choice,
                "key: the settings below; environment: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, "
                    + "AWS_SESSION_TOKEN; instance: the machine's role, by its metadata service (IMDSv2); "
                    + "container: the container's role (ECS, EKS Pod Identity), and web_identity: a service "
                    + "account's (EKS), as the environment says."),
            .setting(
                "access_key_id", \.accessKeyID, .text().standingForNothing(""), "The id of the agent's key.",
                example: "\"AKIA…\""),
            .pair(
                "assume_role",
                .init(
                    "role", \.assumeRole,
                    optional: .checked("role", mustBe: "a role's name: arn:aws:iam::ACCOUNT:role/NAME") {
                        $0.hasPrefix("arn:") && $0.utf8.count <= 2048
                            && $0.hasOnlyLettersDigits(and: ":/+=,.@_-")
                    }),
                .init("external_id", \.externalID, optional: .text()),
                "A role to assume with these credentials, for example for another account's bucket, and the"
                    + " external id that its owner may require.",
                example: "\"arn:aws:iam::123456789012:role/events\""),
            .setting("external_id", \.externalID, optional: .text(), "Now assume_role.external_id.")
                .renamed(to: "assume_role.external_id"),
        ]
        + Entry.secret(
            "secret_access_key", \.secret.source, file: \.secret.file, credential: \.secret.credential,
            "The secret part of the key.", example: "archive.key")
}

extension AWSSettings {
    /// The name of a region or a service. It becomes part of a host name and of the signature, so only
    /// letters, digits and hyphens are allowed.
    static func nameType(_ what: String) -> ValueType<String> {
        .checked(what, mustBe: "a \(what)'s name: small letters, digits and -") { name in
            (1...64).contains(name.utf8.count)
                && name.allSatisfy { $0.isASCII && ($0.isLowercase || $0.isNumber) || $0 == "-" }
        }
    }
}
