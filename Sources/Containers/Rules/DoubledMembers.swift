internal import Events

/// Objects in which a member's name occurs more than once. Readers choose the first value or the last, so a
/// search for a person's events must look at all of them.
enum DoubledMembers {
    /// Most lines that are made of one line. A line that needs more counts as found.
    private static let mostVariants = 64
    /// Replaces each byte of a name that is not chosen. JSON allows it, and no condition names it.
    private static let masked: UInt8 = 0x7F

    /// Whether a judge accepts a line that has one of the values of each doubled member. Not called with the
    /// line as it is: the caller has judged that.
    static func contains(_ line: [UInt8], _ judge: (UnsafeBufferPointer<UInt8>) -> Bool) -> Bool {
        guard let names = doubledNames(in: line) else { return false }
        var left = mostVariants
        return search(line, names, &left, judge)
    }

    /// Chooses each occurrence of a name in turn, and looks for further doubled names.
    private static func search(
        _ line: [UInt8], _ names: [Range<Int>], _ left: inout Int,
        _ judge: (UnsafeBufferPointer<UInt8>) -> Bool
    ) -> Bool {
        for chosen in names {
            left -= 1
            guard left >= 0 else { return true }
            var variant = line
            for name in names where name != chosen {
                for offset in name { variant[offset] = masked }
            }
            if let more = doubledNames(in: variant) {
                if search(variant, more, &left, judge) { return true }
            } else if variant.withUnsafeBufferPointer(judge) {
                return true
            }
        }
        return false
    }

    /// Ranges of a name that occurs more than once in an object of the line; nil if no name does.
    private static func doubledNames(in line: [UInt8]) -> [Range<Int>]? {
        line.withUnsafeBufferPointer { text in
            guard let base = text.baseAddress, text.first == UInt8(ascii: "{") else { return nil }
            var objects = [0]
            while let start = objects.popLast() {
                var occurrences: [[UInt8]: [Range<Int>]] = [:]
                var doubled: [UInt8]?
                var walk = RawWalk(base, from: start, to: text.count)
                while let member = walk.next() {
                    if base[member.value.lowerBound] == UInt8(ascii: "{") {
                        objects.append(member.value.lowerBound)
                    }
                    let name = RawJSON.decoded(base, member.name)
                    guard name.contains(where: { $0 != masked }) else { continue }
                    occurrences[name, default: []].append(member.name)
                    if occurrences[name]?.count == 2, doubled == nil {
                        doubled = name
                    }
                }
                if let doubled { return occurrences[doubled] }
            }
            return nil
        }
    }
}
