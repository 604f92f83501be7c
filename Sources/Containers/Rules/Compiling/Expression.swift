internal import CRE2

/// A regular expression of RE2, which matches in time linear in the text. Not anchored: `^` and `$` refer to
/// the ends.
final class Expression: @unchecked Sendable {
    // Unchecked: never changed after `init`, and RE2 lets any thread match at any time.
    private let compiled: OpaquePointer

    /// Memory limit of an expression, 256 KiB, for its program and the automata that matching builds. RE2
    /// refuses a program that does not fit, and drops automata that grow too large, which is slower, but
    /// still linear.
    static let memory: Int64 = 256 << 10

    /// The pairs of bytes that each text has in which it matches; see `TextPairs`.
    let requiredPairs: TextPairs

    /// Compiles an expression.
    ///
    /// - Throws: `expression` with RE2's reason.
    init(_ text: String, ignoreCase: Bool, at path: String) throws(ContainerError) {
        var message = [CChar](repeating: 0, count: 256)
        let length = text.utf8.count
        guard let made = cre2_compile(text, length, ignoreCase, Expression.memory, &message, message.count)
        else {
            let reason = String(
                decoding: message.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            throw ContainerError(.expression, at: path, "the regular expression cannot be used: \(reason)")
        }
        compiled = made
        requiredPairs = TextPairs(bits: cre2_required_pairs(text, length, ignoreCase, Expression.memory))
    }

    deinit { cre2_free(compiled) }

    /// The first match at or after an offset.
    func find(in text: [UInt8], from: Int) -> Range<Int>? {
        var start = 0
        var end = 0
        let isFound = text.withUnsafeBytes { bytes in
            cre2_find(
                compiled, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), bytes.count, from, &start,
                &end)
        }
        return isFound ? start..<end : nil
    }

    /// Whether the expression matches in a text.
    func finds(in text: UnsafeBufferPointer<UInt8>) -> Bool {
        guard let start = text.baseAddress else { return cre2_finds(compiled, "", 0) }
        return start.withMemoryRebound(to: CChar.self, capacity: text.count) {
            cre2_finds(compiled, $0, text.count)
        }
    }
}
