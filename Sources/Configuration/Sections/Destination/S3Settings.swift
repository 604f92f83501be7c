internal import Model

/// `[destination.s3]`: the bucket, the names of objects, and the credentials. The struct is in `Model`,
/// because `Outputs` uses it.
///
/// Credentials are keys of `[destination.s3]` itself, with the names that they have in `[destination.aws]`:
/// both sign with Signature Version 4.
extension S3Settings: SettingsSection {
    static let entries: [Entry<S3Settings>] =
        bucketEntries + AWSSettings.credentialEntries.map { $0.inside(\.aws).listedElsewhere() }

    /// The bucket and its objects.
    private static let bucketEntries: [Entry<S3Settings>] = [
        .pair(
            "bucket", .init("name", \.bucket, S3Settings.bucketNameType.standingForNothing("")),
            .init("path_style", \.pathStyle, .boolean),
            "The bucket; it must exist. path_style = true addresses it as https://host/bucket/key, the"
                + " default of MinIO and Ceph; false as https://bucket.host/key.",
            example: "\"events\""),
        .setting("path_style", \.pathStyle, .boolean, "Now bucket.path_style.")
            .renamed(to: "bucket.path_style"),
        .setting(
            "region", \.aws.region, AWSSettings.nameType("region").standingForNothing(""),
            "The bucket's region; servers without regions accept any, often us-east-1.",
            example: "\"eu-central-1\""
        ).listedElsewhere(),
        .pair(
            "key", .init("name", \.key, .template(.key)),
            .init("if_none_match", \.ifNoneMatch, .boolean),
            "The name of an object: {date} and {hour} (UTC) of its oldest event's acceptance, {install_id},"
                + " {destination}, {priority}, {batch_id}; .jsonl, .jsonl.gz or .jsonl.zst is added. With "
                + "{app}, {level}, {name}, {member:PATH}, {event_date} or {event_hour} a batch becomes an "
                + "object for each value. An existing object is not written again; if_none_match = false is "
                + "for servers that do not support the condition (they answer 501): a repeat then replaces "
                + "the object with the same events."
        ),
        .setting("if_none_match", \.ifNoneMatch, .boolean, "Now key.if_none_match.")
            .renamed(to: "key.if_none_match"),
        .pair(
            "storage", .init("class", \.storageClass, optional: S3Settings.storageClassType),
            .init("encryption", \.serverSideEncryption, optional: .choice),
            "The storage class of objects, and their encryption by the server; by default the bucket's,"
                + " which may name your key.",
            example: "{ class = \"STANDARD_IA\", encryption = \"aws:kms\" }"),
        .setting(
            "storage_class", \.storageClass, optional: S3Settings.storageClassType, "Now storage.class."
        ).renamed(to: "storage.class"),
        .setting(
            "server_side_encryption", \.serverSideEncryption, optional: .choice, "Now storage.encryption."
        ).renamed(to: "storage.encryption"),
    ]
}

extension S3Settings {
    /// The name of a bucket. Source: Amazon S3 User Guide, "General purpose bucket naming rules".
    static var bucketNameType: ValueType<String> {
        .checked(
            "bucket name",
            mustBe: "a bucket's name: 3 to 63 small letters, digits, - and ., a letter or digit at each end"
        ) { name in
            (3...63).contains(name.utf8.count) && name.allSatisfy { isSmall($0) || $0 == "-" || $0 == "." }
                && name.first.map(isSmall) == true && name.last.map(isSmall) == true
        }
    }

    /// A storage class. It becomes a header of each request, so it must not have other characters. New
    /// classes of Amazon and those of other servers are accepted.
    static var storageClassType: ValueType<String> {
        .checked("storage class", mustBe: "a storage class: capitals, digits and _") { name in
            (1...64).contains(name.utf8.count)
                && name.allSatisfy { $0.isASCII && ($0.isUppercase || $0.isNumber || $0 == "_") }
        }
    }

    /// Whether a character is a small letter or a digit.
    private static func isSmall(_ character: Character) -> Bool {
        character.isASCII && (character.isLowercase || character.isNumber)
    }
}
