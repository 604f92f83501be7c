/// Severities of words that were read before: a log has few such words, and looking a word up costs more than
/// finding it in the line.
struct SeverityMemo {
    private struct Entry {
        /// The word's bytes, the last one lowest.
        let word: UInt64
        let count: Int
        let reading: Severity.Reading
        /// Nil if the word does not name a severity.
        let severity: Severity?
    }

    /// Lengths of words that are remembered. The meaning of a single digit may depend on another member.
    static let lengths = 2...8

    /// Entries by the upper bits of their words' hashes.
    private var entries = [Entry?](repeating: nil, count: 16)

    /// The severity of a word of two to eight bytes in a member that is read like that.
    mutating func severity(of text: UnsafeBufferPointer<UInt8>, as reading: Severity.Reading) -> Severity? {
        var word: UInt64 = 0
        for byte in text { word = word &<< 8 | UInt64(byte) }
        let slot = Int(truncatingIfNeeded: (word &* 0x9E37_79B9_7F4A_7C15) &>> 60)
        if let known = entries[slot], known.word == word, known.count == text.count,
            known.reading == reading
        {
            return known.severity
        }
        let severity = Severity(text: String(decoding: text, as: UTF8.self), as: reading, isGELF: false)
        entries[slot] = Entry(word: word, count: text.count, reading: reading, severity: severity)
        return severity
    }
}
