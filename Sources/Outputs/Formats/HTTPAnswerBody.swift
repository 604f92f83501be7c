/// What a format may read of an answer. Hostile.
public struct HTTPAnswerBody: Sendable, Equatable {
    /// The status.
    public let status: Int
    /// The beginning of the body, at most `answerLimit` bytes.
    public let bytes: [UInt8]
    /// Whether that is all of it.
    public let isWhole: Bool

    /// The beginning as text, at most 1 KiB, without control characters.
    var excerpt: String { AnswerReader.excerpt(bytes) }
}
