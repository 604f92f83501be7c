internal import CRE2

/// A regular expression of RE2, found in time linear in the text; unanchored: `^` and `$` tie it to the ends.
final class Expression: @unchecked Sendable {
    // Never changed after init, and RE2 lets any thread match at any time.
    private let compiled: OpaquePointer

    /// What one expression may take, in bytes: its program and the automata that matching builds. RE2 refuses what does not
    /// fit, and throws automata away that grow too large: slower then, still linear.
    static let memory: Int64 = 256 << 10

    /// The pairs of bytes that each text has in which it is found; see `TextPairs`.
    let requiredPairs: TextPairs

    /// - Throws: `ContainerError` with code `expression` and RE2's reason.
    init(_ text: String, ignoreCase: Bool, at path: String) throws(ContainerError) {
        var message = [CChar](repeating: 0, count: 256)
        let length = text.utf8.count
        guard let made = cre2_compile(text, length, ignoreCase, Expression.memory, &message, message.count) else {
            let reason = String(decoding: message.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            throw ContainerError(.expression, at: path, "the regular expression cannot be used: \(reason)")
        }
        compiled = made
        requiredPairs = TextPairs(bits: cre2_required_pairs(text, length, ignoreCase, Expression.memory))
    }

    deinit { cre2_free(compiled) }

    /// Where the expression is found first, from a place on.
    func find(in text: [UInt8], from: Int) -> Range<Int>? {
        var (start, end) = (0, 0)
        let isFound = text.withUnsafeBytes { bytes in
            cre2_find(compiled, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), bytes.count, from, &start, &end)
        }
        return isFound ? start..<end : nil
    }

    func finds(in text: UnsafeBufferPointer<UInt8>) -> Bool {
        guard let start = text.baseAddress else { return cre2_finds(compiled, "", 0) }
        return start.withMemoryRebound(to: CChar.self, capacity: text.count) { cre2_finds(compiled, $0, text.count) }
    }
}
