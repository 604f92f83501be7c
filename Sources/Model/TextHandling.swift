/// What happens to lines that are not JSON.
public enum TextHandling: String, Sendable, CaseIterable {
    case quarantine
    /// Each line is the message of a record.
    case lines
    /// Consecutive lines are the message of one record, such as a traceback.
    case blocks

    /// Most bytes of a block; the next line begins another one.
    public static let mostBlockBytes = 64 << 10
}
