/// A text is searched for another one by bytes: `contains` and `replacing` of the standard library bring its regular expressions into
/// the binary, 1.5 MB.
extension String {
    /// Whether the text is in this one.
    public func holds(_ text: String) -> Bool { utf8.indices.contains { utf8[$0...].starts(with: text.utf8) } }

    /// This text with another one for each occurrence of one that is not empty.
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
