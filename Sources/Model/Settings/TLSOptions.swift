/// How the agent verifies a destination, and how it authenticates to it.
public struct TLSOptions: Sendable, Equatable {
    package enum Version: String, Sendable, CaseIterable {
        case tls12 = "1.2"
        case tls13 = "1.3"
    }

    /// The certificates that are trusted, in PEM; nil trusts the system's. Read again when it changes.
    public var caFile: String?
    /// The agent's own certificate with its chain, in PEM, for destinations that ask for one. Read again when it changes.
    public var certificateFile: String?
    /// The private key of `certificateFile`, in PEM and without a password; nil when it is in the same file.
    public var keyFile: String?
    /// The public keys that the destination may have, as `sha256//` and the Base64 of the SHA-256 of the key in DER;
    /// empty accepts any that the certificates vouch for. More than one makes a change of keys possible.
    public var pinnedKeys: [String] = []
    /// The least version that is spoken; 1.3 is spoken where it is offered.
    package var minimumVersion = Version.tls12

    package init() {}
}
