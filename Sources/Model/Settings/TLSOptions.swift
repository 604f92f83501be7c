/// How the agent verifies a destination, and how it authenticates to it.
public struct TLSOptions: Sendable, Equatable {
    /// The oldest version of TLS to accept.
    package enum Version: String, Sendable, CaseIterable {
        case tls12 = "1.2"
        case tls13 = "1.3"
    }

    /// Trusted certificates in PEM; nil trusts those of the system. Read again when the file changes.
    public var caFile: String?
    /// The agent's certificate with its chain, in PEM, for destinations that request one. Read again
    /// when the file changes.
    public var certificateFile: String?
    /// The private key of the certificate, in PEM without a password; nil if it is in the same file.
    public var keyFile: String?
    /// Public keys that the destination may have: `sha256//` and the Base64 of the SHA-256 of the key
    /// in DER. Empty accepts any key with a valid certificate. A second one allows a change of keys.
    public var pinnedKeys: [String] = []
    /// Whether a certificate without subjectAltName may identify the server by its common name. Off by
    /// default, because RFC 9525 forbids it.
    package var allowsCommonName = false
    /// The oldest version that is accepted; 1.3 is used if the server offers it.
    package var minimumVersion = Version.tls12

    package init() {}
}
