/// Checks whether a text is one JSON object, with the same scanner as the pass over an event.
package struct ObjectCheck: ~Copyable {
    private var scanner = JSONScanner()

    package init() {}

    /// Where the object's closing bracket is; nil when the text is anything else than one object with white space around it.
    ///
    /// - Parameter text: ends with a line feed. Line breaks count as white space.
    package mutating func end(of text: UnsafeRawBufferPointer) -> Int? {
        guard let base = text.baseAddress?.assumingMemoryBound(to: UInt8.self), text.last == .lineFeed,
            let end = scanner.scanObject(base, from: 0, to: text.count)
        else { return nil }
        // bounded: `end` is within the text.
        return text[end...].allSatisfy { $0 == .lineFeed || $0 == 0x20 || $0 == 0x09 || $0 == 0x0D } ? end - 1 : nil
    }
}
