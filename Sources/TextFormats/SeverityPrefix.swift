/// PostgreSQL's `LOG:  message`. Its levels are translated in some languages, so any word counts; the two
/// blanks after the colon are the same everywhere.
struct SeverityPrefix {
    /// The level's word, in the language of PostgreSQL's messages.
    let word: Bytes
    /// The text after the level.
    let message: Bytes

    /// Reads the prefix; nil if the text does not begin with one. A level of 40 bytes or more is not one.
    init?(_ text: Bytes) {
        var length = 0
        while length < min(text.count, 40), text[length] > 0x20, text[length] != UInt8(ascii: ":") {
            length += 1
        }
        guard length > 0, text.dropping(length).hasPrefix(":  ") else { return nil }
        word = text.prefix(length)
        message = text.dropping(length + 3)
    }
}
