internal import CRE2

/// Which pairs of neighbouring bytes a text has, a bit each. Many pairs share a bit, and capitals count as
/// small letters.
///
/// A text that contains a part has all pairs of the part, and a text that an expression matches has those
/// that the expression requires. So most conditions that do not hold are decided by two numbers, without a
/// search.
struct TextPairs: Equatable {
    /// The bits.
    let bits: UInt64

    /// No pairs: nothing is required.
    static let none = TextPairs(bits: 0)

    /// Pairs of some bits.
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

    /// Whether a text with these pairs cannot have what requires those.
    @inline(__always)
    func lacks(_ required: TextPairs) -> Bool { required.bits & ~bits != 0 }
}
