/// The value of a macro in the form that conditions compare: its text, and the number that the text spells.
///
/// Made once for each event and macro, however many conditions use it. It has no references, whose counting
/// would cost more than the comparison.
struct ComparedValue {
    /// The types of values.
    enum Kind: UInt8 {
        case null, text, number
        /// An object or a list, for which no condition holds.
        case nested
    }

    /// Type of the value.
    var kind = Kind.null
    /// Whether the text is in the evaluation's own storage, not in the line.
    var isOwn = false
    /// Whether `number` is known.
    var isNumberKnown = false
    /// Whether the folded text is known.
    var isFolded = false
    /// Offset of the text.
    var start = 0
    /// Length of the text.
    var count = 0
    /// The first eight bytes of the text as a number, filled with zeros. Most comparisons end with it.
    var head: UInt64 = 0
    /// The pairs of bytes of the text; see `TextPairs`.
    var pairs = TextPairs.none
    /// Whether `pairs` is known.
    var arePairsKnown = false
    /// Offset of the folded text, in the evaluation's own storage.
    var foldedStart = 0
    /// Length of the folded text.
    var foldedCount = 0
    /// The number, if a double compares exactly as it does; otherwise not a number.
    var exact = Double.nan
    /// The number that the text spells; nil if it is not a number, or not known yet.
    var number: Number?

    /// The first eight bytes of a text as a number, filled with zeros.
    static func head(of text: UnsafeBufferPointer<UInt8>) -> UInt64 {
        if text.count >= 8 {
            return UInt64(littleEndian: UnsafeRawBufferPointer(text).loadUnaligned(as: UInt64.self))
        }
        var head: UInt64 = 0
        for (offset, byte) in text.enumerated() { head |= UInt64(byte) << UInt64(offset * 8) }
        return head
    }
}
