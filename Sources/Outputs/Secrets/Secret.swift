/// A word that must not be seen: it shows nothing of itself wherever text is made of it.
public struct Secret: Sendable, Equatable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The secret itself; for the request only.
    let text: String

    /// A secret of that text.
    public init(_ text: String) { self.text = text }

    /// What logs may show: `(secret)`.
    public var description: String { "(secret)" }
    /// What debuggers may show: `(secret)`.
    public var debugDescription: String { "(secret)" }
    /// Nothing for `dump` to walk into.
    public var customMirror: Mirror { Mirror(self, children: []) }
}

/// Where a secret is kept.
public enum SecretSource: Sendable, Equatable {
    /// In the configuration itself.
    case inline(Secret)
    /// Alone in a file; a line feed at its end does not count.
    case file(String)
    /// Under this name in the directory that systemd passes as `$CREDENTIALS_DIRECTORY`.
    case credential(String)
}
