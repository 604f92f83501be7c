internal import CRE2

/// The pairs of neighbouring bytes in a text, as a set of 64 bits. Many pairs share a bit, and capitals count
/// as small letters.
///
/// A text that contains a part has all pairs of the part, and a text that an expression matches has those
/// that the expression requires. So most conditions that do not hold are decided by two numbers, without a
/// search.
struct TextPairs: Equatable {
    /// The set: bit n is 1 if the text has one of the pairs that share this bit.
    let bits: UInt64

    /// No pairs: nothing is required.
    static let none = TextPairs(bits: 0)

    /// A set with these bits.
    init(bits: UInt64) { self.bits = bits }

    /// The pairs of a text that is searched; all pairs if the text is long or not ASCII, so that nothing is
    /// excluded.
    init(of text: UnsafeBufferPointer<UInt8>) {
        bits = text.baseAddress.map { cre2_pairs($0, text.count) } ?? 0
    }

    /// The pairs that a part requires; none if they would exclude nothing.
    init(requiredBy part: UnsafeBufferPointer<UInt8>) {
        let pairs = TextPairs(of: part)
        bits = ~pairs.bits == 0 ? 0 : pairs.bits
    }

    /// Whether a text with these pairs cannot contain a part that requires the given pairs.
    @inline(__always)
    func lacks(_ required: TextPairs) -> Bool { required.bits & ~bits != 0 }
}
