/// Checks whether a text is one JSON object, with the same scanner as the pass over an event.
public struct ObjectCheck: Sendable {
    package init() {}

    /// Where the object's closing bracket is; nil when the text is anything else than one object with white space around it.
    ///
    /// - Parameter text: from `start` to its end, where a line feed stands. Line breaks count as white space.
    public func end(of text: [UInt8], from start: Int) -> Int? {
        text.withUnsafeBufferPointer { text in
            guard let base = text.baseAddress, text.count > start, text[text.count - 1] == .lineFeed else { return nil }
            var scanner = JSONScanner()
            guard let end = scanner.scanObject(base, from: start, to: text.count) else { return nil }
            let close = end - 1
            // bounded: `end` is within the text.
            return text[end...].allSatisfy { $0 == .lineFeed || $0 == 0x20 || $0 == 0x09 || $0 == 0x0D } ? close : nil
        }
    }
}
