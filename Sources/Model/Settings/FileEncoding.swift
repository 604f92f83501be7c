/// The encoding of a text file that is not UTF-8.
public enum FileEncoding: String, Sendable, CaseIterable {
    case utf16le = "utf-16le"
    case utf16be = "utf-16be"
    /// ISO 8859-1: each byte is the character with its number.
    case latin1
}
