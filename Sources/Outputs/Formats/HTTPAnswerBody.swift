/// What a format may read of an answer. Hostile.
public struct HTTPAnswerBody: Sendable, Equatable {
    /// The status.
    public let status: Int
    /// The beginning of the body, at most `answerLimit` bytes.
    public let bytes: [UInt8]
    /// Whether that is all of it.
    public let isWhole: Bool
    /// Whether the answer came to its end, even if it is longer than what is kept of it.
    public let isComplete: Bool

    /// The beginning as text, at most 1 KiB, without control characters.
    var excerpt: String { AnswerReader.excerpt(bytes) }
}
