/// A text that must not be shown: a token, a password.
///
/// Its descriptions, reflection and interpolations show nothing of it; only an explicit call returns the text.
public struct Secret: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
    private let text: String

    package init(_ text: String) { self.text = text }

    /// The text itself: for the one place that sends it.
    public var revealed: String { text }

    /// What is shown in its place (ac24).
    public static let mask = "****"

    /// What logs and debuggers may show.
    public var description: String { "(secret)" }
    /// Nothing for `dump` to walk into.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// Where a secret is kept.
public enum SecretSource: Sendable, Hashable {
    case inline(Secret)
    /// Alone in a file; a line feed at its end does not count.
    case file(String)
    /// Under this name in the directory that systemd passes as `$CREDENTIALS_DIRECTORY`.
    case credential(String)
}

/// A secret that a destination may have: in the configuration itself, alone in a file, or in a systemd credential.
public struct SecretSetting: Sendable, Equatable {
    package var inline: Secret?
    package var file: String?
    package var credential: String?

    package init() {}

    /// Where it is kept; nil when there is none.
    public var source: SecretSource? {
        file.map { .file($0) } ?? credential.map { .credential($0) } ?? inline.map { .inline($0) }
    }
}
