internal import Model

/// `[destination.tls]`: the certificates to trust and to present. The struct is in `Model`, because `Outputs`
/// uses it.
extension TLSOptions: SettingsSection {
    static let entries: [Entry<TLSOptions>] = [
        .setting(
            "ca_file", \.caFile, optional: .path,
            "Certificates to trust instead of the system's (PEM); reread when it changes.",
            example: "\"/etc/spoolship/ca.pem\""),
        .pair(
            "certificate", .init("file", \.certificateFile, optional: .path),
            .init("key_file", \.keyFile, optional: .path),
            "The agent's certificate, if the receiver asks for one, and its key (PEM).",
            example: "{ file = \"/etc/spoolship/client.pem\", key_file = \"/etc/spoolship/client.key\" }"),
        .setting("certificate_file", \.certificateFile, optional: .path, "Now certificate.file.")
            .renamed(to: "certificate.file"),
        .setting("key_file", \.keyFile, optional: .path, "Now certificate.key_file.")
            .renamed(to: "certificate.key_file"),
        .setting(
            // A list, so that a receiver can get a new key without an outage: its hash is added here first.
            "pinned_keys", \.pinnedKeys, .list(of: pinnedKeyType, unique: true),
            "The receiver must have one of these public keys; keep a spare in the list.",
            example: "[\"sha256//47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\"]"),
        .setting(
            "minimum_version", \.minimumVersion, .choice,
            "1.3 refuses older receivers; with 1.2 it is still used if the receiver offers it."),
        .setting(
            "allow_common_name", \.allowsCommonName, .boolean,
            "true also trusts a certificate that names the receiver in its CN only, as RFC 9525 forbids:"
                + " for old servers."),
    ]
}

extension TLSOptions {
    /// The hash of a public key (SHA-256 of its SubjectPublicKeyInfo), in curl's form for
    /// CURLOPT_PINNEDPUBLICKEY.
    static var pinnedKeyType: ValueType<String> {
        .checked(
            "public key hash", range: "sha256//BASE64",
            mustBe:
                "sha256// and the base64 of 32 bytes, as `openssl dgst -sha256 -binary | base64` prints it"
        ) { $0.isPinnedKey }
    }
}
