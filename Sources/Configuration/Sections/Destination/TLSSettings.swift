/// `[destination.tls]`: whom to trust, and how to prove who we are.
public struct TLSSettings: Sendable, Equatable {
    /// The oldest version of TLS that is spoken.
    public enum MinimumVersion: String, SettingChoice {
        /// TLS 1.2.
        case tls12 = "1.2"
        /// TLS 1.3.
        case tls13 = "1.3"
    }

    /// Certificates to trust; nil for the system's.
    public var caFile: String?
    /// The client's certificate.
    public var certificateFile: String?
    /// The client's key.
    public var keyFile: String?
    /// Public keys of which the server must have one.
    public var pinnedKeys: [String] = []
    /// The oldest version that is spoken.
    public var minimumVersion = MinimumVersion.tls12

    /// The system's certificates, no client certificate, no pins.
    public init() {}
}

extension TLSSettings: SettingsSection {
    static let entries: [Entry<TLSSettings>] = [
        .setting(
            "ca_file", \.caFile, optional: .path,
            "Certificates to trust instead of the system's (PEM); read again when it changes.",
            example: "\"/etc/spoolship/ca.pem\""),
        .setting(
            "certificate_file", \.certificateFile, optional: .path,
            "Our certificate, when the receiver asks for one (PEM).",
            example: "\"/etc/spoolship/client.pem\""),
        .setting("key_file", \.keyFile, optional: .path, "Its key (PEM).", example: "\"/etc/spoolship/client.key\""),
        .setting(
            "pinned_keys", \.pinnedKeys, .list(of: .pinnedKey, unique: true),
            "Public keys of which the receiver must have one; keep a spare one in the list.",
            example: "[\"sha256//47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\"]"),
        .setting(
            "minimum_version", \.minimumVersion, .choice,
            "1.3 refuses older receivers; it is spoken where offered anyway."),
    ]
}
