/// Searching by bytes. The standard library's `contains` and `replacing` would link the regular
/// expression library, 1.5 MB.
extension String {
    /// Whether this text contains another one.
    public func holds(_ text: String) -> Bool {
        utf8.indices.contains { utf8[$0...].starts(with: text.utf8) }
    }

    /// This text with each occurrence of `old`, which must not be empty, replaced.
    public func replacingAll(_ old: String, with new: String) -> String {
        var result: [UInt8] = []
        var rest = Array(utf8)[...]
        while let first = rest.first {
            let isFound = rest.starts(with: old.utf8)
            result += isFound ? Array(new.utf8) : [first]
            rest = rest.dropFirst(isFound ? old.utf8.count : 1)
        }
        return String(decoding: result, as: UTF8.self)
    }
}

extension [UInt8] {
    /// Whether a name matches a pattern with `*` (any bytes). Only the last star is backtracked to, so
    /// the time is at most proportional to the product of both lengths, even for a hostile pattern.
    ///
    /// - Parameter hasMarks: whether `?` matches any single byte; otherwise it matches itself.
    public func fits(_ pattern: [UInt8], hasMarks: Bool = false) -> Bool {
        var offset = 0
        var next = 0
        var star: (pattern: Int, name: Int)?
        while offset < count {
            if next < pattern.count, pattern[next] == UInt8(ascii: "*") {
                star = (next, offset)
                next += 1
            } else if next < pattern.count,
                pattern[next] == self[offset] || hasMarks && pattern[next] == UInt8(ascii: "?")
            {
                offset += 1
                next += 1
            } else if let last = star {
                // The last star matches one more byte.
                star = (last.pattern, last.name + 1)
                offset = last.name + 1
                next = last.pattern + 1
            } else {
                return false
            }
        }
        return pattern[next...].allSatisfy { $0 == UInt8(ascii: "*") }
    }
}
