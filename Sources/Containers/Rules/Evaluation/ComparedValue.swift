/// What a macro gave, in the form that conditions compare: bytes that spell it, and the number that they spell.
///
/// Worked out once for each event and macro, whatever the number of conditions. Without references.
struct ComparedValue {
    enum Kind: UInt8 {
        case null, text, number
        /// An object or an array: holds no condition.
        case nested
    }

    var kind = Kind.null
    /// Whether the bytes are in the evaluation's own storage instead of in the line.
    var isOwn = false
    var isNumberKnown = false
    /// Whether the text in small letters is known.
    var isFolded = false
    var start = 0
    var count = 0
    /// The first eight bytes as one number; shorter texts are filled up with zeros.
    var head: UInt64 = 0
    /// The pairs of its text, once they are known.
    var pairs = TextPairs.none
    var arePairsKnown = false
    /// The text in small letters, in the evaluation's own storage.
    var foldedStart = 0
    var foldedCount = 0
    /// The number that the text spells, once it is known and where a double compares just as it does; else not a number.
    var exact = Double.nan
    /// The number that the text spells; nil for none.
    var number: Number?

    static func head(of text: UnsafeBufferPointer<UInt8>) -> UInt64 {
        if text.count >= 8 { return UInt64(littleEndian: UnsafeRawBufferPointer(text).loadUnaligned(as: UInt64.self)) }
        var head: UInt64 = 0
        for (place, byte) in text.enumerated() { head |= UInt64(byte) << UInt64(place * 8) }
        return head
    }
}
