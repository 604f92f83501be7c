package import Model

/// `[destination.s3]`: which bucket, what objects are called, and who writes them.
public struct S3Settings: Sendable, Equatable {
    /// Where the credentials come from.
    public enum Credentials: String, SettingChoice {
        /// From these settings.
        case key
        /// From the agent's environment.
        case environment
        /// From the machine's role.
        case instance
    }

    package var bucket: String?
    package var region: String?
    package var pathStyle = false
    /// The template of an object's key.
    public var key = "spoolship/dt={date}/hour={hour}/{install_id}/{batch_id}"
    package var ifNoneMatch = true
    package var storageClass: String?
    package var serverSideEncryption: S3Encryption?
    package var credentials = Credentials.key
    package var accessKeyID: String?
    package var secret = SecretSetting()

    /// What is missing, as keys below `[[destination]]`.
    var missing: [String] {
        var keys = (bucket == nil ? ["s3.bucket"] : []) + (region == nil ? ["s3.region"] : [])
        if credentials == .key {
            if accessKeyID == nil { keys.append("s3.access_key_id") }
            if secret.source == nil { keys.append("s3.secret_access_key_file") }
        }
        return keys
    }
}

extension S3Settings: SettingsSection {
    static let entries: [Entry<S3Settings>] =
        bucketEntries
        + Entry.secret(
            "secret_access_key", inline: (\.secret.inline, "The key itself. Better: secret_access_key_file."),
            file: \.secret.file, credential: \.secret.credential, "the key", example: ("…", "archive.key"))

    private static let bucketEntries: [Entry<S3Settings>] = [
        .setting("bucket", \.bucket, optional: .bucketName, "The bucket; it must exist.", example: "\"events\""),
        .setting(
            "region", \.region, optional: .regionName,
            "The bucket's region; servers that have none take any, often us-east-1.", example: "\"eu-central-1\""),
        .setting(
            "path_style", \.pathStyle, .boolean,
            "true: https://host/bucket/key, as MinIO and Ceph have it by default; false: https://bucket.host/key."),
        .setting(
            "key", \.key, .text(),
            "What an object is called: {date} and {hour} (UTC) of when its oldest event was accepted, {install_id},"
                + " {destination}, {priority}, {batch_id}; .jsonl, .jsonl.gz or .jsonl.zst is added."),
        .setting(
            "if_none_match", \.ifNoneMatch, .boolean,
            "An object that exists is not written again. false for servers that do not know the condition (they answer"
                + " 501): a repeat then replaces the object by the same events."),
        .setting(
            "storage_class", \.storageClass, optional: .storageClassName, "The storage class; by default the bucket's.",
            example: "\"STANDARD_IA\""),
        .setting(
            "server_side_encryption", \.serverSideEncryption, optional: .choice,
            "Encryption by the server; by default the bucket's, which may name a key of yours.", example: "\"aws:kms\""),
        .setting(
            "credentials", \.credentials, .choice,
            "key: the settings below; environment: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN; instance:"
                + " the machine's role, by its metadata service (IMDSv2)."),
        .setting(
            "access_key_id", \.accessKeyID, optional: .text(), "The id of the agent's key.", example: "\"AKIA…\""),
    ]
}

extension ValueType where Value == String {
    /// Source: Amazon S3 User Guide, "General purpose bucket naming rules".
    static var bucketName: ValueType {
        checked(
            "bucket name",
            mustBe: "a bucket's name: 3 to 63 small letters, digits, - and ., a letter or digit at each end"
        ) { name in
            (3...63).contains(name.utf8.count) && name.allSatisfy { isSmall($0) || $0 == "-" || $0 == "." }
                && name.first.map(isSmall) == true && name.last.map(isSmall) == true
        }
    }

    /// A region: it becomes part of a host's name and of the signature.
    static var regionName: ValueType {
        checked("region", mustBe: "a region's name: small letters, digits and -") { name in
            (1...64).contains(name.utf8.count) && name.allSatisfy { isSmall($0) || $0 == "-" }
        }
    }

    /// A storage class: it becomes a header.
    static var storageClassName: ValueType {
        checked("storage class", mustBe: "a storage class: capitals, digits and _") { name in
            (1...64).contains(name.utf8.count)
                && name.allSatisfy { $0.isASCII && ($0.isUppercase || $0.isNumber || $0 == "_") }
        }
    }

    private static func isSmall(_ character: Character) -> Bool {
        character.isASCII && (character.isLowercase || character.isNumber)
    }
}
