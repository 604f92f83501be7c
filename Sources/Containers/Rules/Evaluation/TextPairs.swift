internal import CRE2

/// Which pairs of neighbouring bytes a text holds, a bit each: many pairs share one, and capitals count as small letters.
///
/// A text that holds a part, or in which an expression is found, has all pairs of the part, or those that the expression
/// cannot do without. So most of what is not there is told by a look at two numbers, instead of a search each.
struct TextPairs: Equatable {
    let bits: UInt64

    /// None: nothing is asked for.
    static let none = TextPairs(bits: 0)

    init(bits: UInt64) { self.bits = bits }

    /// The pairs of a text that is looked through; all of them when it is long, or not ASCII.
    init(of text: UnsafeBufferPointer<UInt8>) {
        bits = text.baseAddress.map { cre2_pairs($0, text.count) } ?? 0
    }

    /// The pairs of a part that is looked for; none when nothing can be told by them.
    init(requiredBy part: UnsafeBufferPointer<UInt8>) {
        let pairs = TextPairs(of: part)
        bits = ~pairs.bits == 0 ? 0 : pairs.bits
    }

    /// Whether a text with these pairs has none of what needs those.
    @inline(__always)
    func lacks(_ required: TextPairs) -> Bool { required.bits & ~bits != 0 }
}
