/// Checks whether a text is one JSON object, with the same scanner as the pass over an event, and which members it has.
package struct ObjectCheck: ~Copyable {
    private var scanner = JSONScanner()
    private let slots: [Int?]

    /// - Parameter names: the members that are found on the way. Beyond some forty the scanner has no room.
    package init(_ names: [String]) {
        let watched = WatchedNames(names)
        scanner.watch(watched)
        slots = names.map { watched.slot(of: Array($0.utf8)) }
    }

    /// Where the object's closing bracket is; nil when the text is anything else than one object with white space around it.
    ///
    /// - Parameter text: ends with a line feed. Line breaks count as white space.
    package mutating func end(of text: UnsafeRawBufferPointer) -> (place: Int, hasLineBreaks: Bool)? {
        guard let base = text.baseAddress?.assumingMemoryBound(to: UInt8.self), text.last == .lineFeed,
            let end = scanner.scanObject(base, from: 0, to: text.count)
        else { return nil }
        // bounded: `end` is within the text.
        let isAlone = text[end...].allSatisfy { $0 == .lineFeed || $0 == 0x20 || $0 == 0x09 || $0 == 0x0D }
        return isAlone ? (end - 1, scanner.hasLineBreaks) : nil
    }

    /// Whether the object that was checked, and is still there, has a member: the one at this place of `names`, or any other.
    package func has(_ place: Int?, _ name: @autoclosure () -> [UInt8]) -> Bool {
        if let place, let slot = slots[place] { return scanner.present & 1 << UInt64(slot) != 0 }
        return RawWalk.find(name(), in: scanner.base, from: scanner.open, to: scanner.close + 1) != nil
    }

    /// Whether all its members of that name have this value, written in the same way.
    package func hasOnly(_ value: ArraySlice<UInt8>, _ name: [UInt8]) -> Bool {
        var walk = RawWalk(scanner.base, from: scanner.open, to: scanner.close + 1)
        while let member = walk.next() {
            let own = UnsafeBufferPointer(start: scanner.base, count: member.value.upperBound)[member.value]
            if member.isNamed(name, in: scanner.base), !value.elementsEqual(own) { return false }
        }
        return true
    }
}
