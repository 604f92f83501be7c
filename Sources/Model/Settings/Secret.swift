/// A text that must not be shown: a token, a password.
///
/// Description, reflection and interpolation hide it; only `revealed` returns it. So a secret cannot
/// reach a log by accident.
public struct Secret: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
    private let text: String

    package init(_ text: String) { self.text = text }

    /// The text itself, for the code that sends it.
    public var revealed: String { text }

    /// The text shown in place of a secret.
    public static let mask = "****"

    /// The text for logs and debuggers.
    public var description: String { "(secret)" }
    /// Hides the text from `dump`.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// Where a secret is kept.
public enum SecretSource: Sendable, Hashable {
    /// The secret itself, written in the configuration.
    case inline(Secret)
    /// The whole content of a file; a line feed at its end is not part of the secret.
    case file(String)
    /// A systemd credential: the file of this name in `$CREDENTIALS_DIRECTORY` (systemd.exec(5),
    /// LoadCredential=).
    case credential(String)
}

/// A secret that a destination may have: in the configuration itself, in a file, or in a systemd
/// credential. Configurations with the old keys may give it in several ways, which is a mistake.
public struct SecretSetting: Sendable, Equatable {
    package var inline: Secret?
    package var file: String?
    package var credential: String?

    package init() {}

    /// All ways in which it is given.
    package var sources: [SecretSource] {
        [inline.map { .inline($0) }, file.map { .file($0) }, credential.map { .credential($0) }]
            .compactMap(\.self)
    }

    /// Where the secret is kept; nil if it is not set.
    public var source: SecretSource? {
        get { file.map { .file($0) } ?? credential.map { .credential($0) } ?? inline.map { .inline($0) } }
        set {
            switch newValue {
            case .inline(let secret): inline = secret
            case .file(let path): file = path
            case .credential(let name): credential = name
            case nil: self = SecretSetting()
            }
        }
    }
}
