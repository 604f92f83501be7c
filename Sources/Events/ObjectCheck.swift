/// Checks whether a text is one JSON object, with the scanner that reads events, and which members it has.
package struct ObjectCheck: ~Copyable {
    private var scanner = JSONScanner()
    /// Scanner slot of each name that was given to `init`.
    private let slots: [Int?]

    /// - Parameter names: members whose positions the scanner notes, so that `has` answers without scanning
    ///   the object again.
    package init(_ names: [String]) {
        let watched = WatchedNames(names)
        scanner.watch(watched)
        slots = names.map { watched.slot(of: Array($0.utf8)) }
    }

    /// Offset of the object's closing brace; nil unless the text is one object with white space around it.
    ///
    /// - Parameter text: must end with a line feed. Line breaks count as white space.
    package mutating func end(of text: UnsafeRawBufferPointer) -> (offset: Int, hasLineBreaks: Bool)? {
        guard let base = text.baseAddress?.assumingMemoryBound(to: UInt8.self), text.last == .lineFeed,
            let end = scanner.scanObject(base, from: 0, to: text.count)
        else { return nil }
        // bounded: `end` is within the text.
        let isAlone = text[end...].allSatisfy { $0 == .lineFeed || $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }
        return isAlone ? (end - 1, scanner.hasLineBreaks) : nil
    }

    /// Whether the object that was checked has a member: the one at `index` among the names, or any other.
    /// Its text must still be in memory.
    package func has(_ index: Int?, _ name: @autoclosure () -> [UInt8]) -> Bool {
        if let index, let slot = slots[index] { return scanner.has(slot: slot) }
        return RawWalk.find(name(), in: scanner.base, from: scanner.open, to: scanner.close + 1) != nil
    }

    /// Whether all members of that name have this value, written in the same way.
    package func hasOnly(_ value: ArraySlice<UInt8>, _ name: [UInt8]) -> Bool {
        var walk = RawWalk(scanner.base, from: scanner.open, to: scanner.close + 1)
        while let member = walk.next() {
            let own = UnsafeBufferPointer(start: scanner.base, count: member.value.upperBound)[member.value]
            if member.isNamed(name, in: scanner.base), !value.elementsEqual(own) { return false }
        }
        return true
    }
}
