/// A text that must not be shown: a token, a password.
///
/// Its description, its reflection and what is interpolated from it show the last characters at most; the text itself
/// is had by asking for it.
public struct Secret: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
    private let text: String

    /// A secret of that text.
    public init(_ text: String) { self.text = text }

    /// The text itself: for the one place that sends it.
    public var revealed: String { text }

    /// Stars and the last characters: a quarter of them, at most 8 (ac24).
    public var description: String { "****" + text.suffix(min(8, text.count / 4)) }

    /// Shows what the description shows.
    public var customMirror: Mirror { Mirror(reflecting: description) }
}

/// Where a secret is kept.
public enum SecretSource: Sendable, Hashable {
    /// In the configuration file.
    case inline(Secret)
    /// In a file of its own.
    case file(String)
    /// In a systemd credential of that name.
    case credential(String)
}
