/// Distinguishes a machine from its copies: an image that is started twice gets two ids.
///
/// Source: machine-id(5). A container has its own, or none.
public enum MachineID {
    /// The id; nil where there is none, or not yet.
    ///
    /// - Parameter root: below which it is looked for; empty but in tests.
    public static func read(root: String = "") -> String? {
        let text = HostFile.read("\(root)/etc/machine-id").map { String($0.prefix { !$0.isWhitespace }) }
        guard let text, text.utf8.count == 32, text.allSatisfy(\.isHexDigit) else { return nil }
        return text.lowercased()
    }
}
