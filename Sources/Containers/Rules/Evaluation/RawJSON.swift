internal import Events
internal import Glibc
internal import Model

/// What parts of a line mean.
enum RawJSON {
    @inline(__always)
    static func hasName(_ member: RawMember, _ name: [UInt8], in base: UnsafePointer<UInt8>) -> Bool {
        if member.isEscaped || name.last ?? 0 >= 0xFD { return isName(decoded(base, member.name), name) }
        return member.name.count == name.count && memcmp(base + member.name.lowerBound, name, name.count) == 0
    }

    /// Behind a name: all names that begin so are meant. No byte of UTF-8.
    static let anyEnd: UInt8 = 0xFF

    /// Whether a member's name is that of a path.
    static func isName(_ member: some Collection<UInt8>, _ name: [UInt8]) -> Bool {
        if name == PathSteps.anyName { return true }
        return name.last == anyEnd ? member.starts(with: name.dropLast()) : member.elementsEqual(name)
    }

    @inline(__always)
    static func bytes(_ base: UnsafePointer<UInt8>, _ range: Range<Int>) -> UnsafeBufferPointer<UInt8> {
        UnsafeBufferPointer(start: base + range.lowerBound, count: range.count)
    }

    /// The text between two quotes, as UTF-8 with its escapes resolved.
    static func decoded(_ base: UnsafePointer<UInt8>, _ text: Range<Int>) -> [UInt8] {
        JSONString.decoded(bytes(base, text))
    }

    /// The value that is there; null for what is nested too deeply to be looked into.
    static func value(_ base: UnsafePointer<UInt8>, _ range: Range<Int>) -> JSONValue {
        // The line is JSON already; what is left to fail is depth and numbers beyond a double, which are nobody's macro.
        (try? JSONValue(parsing: Array(bytes(base, range)))) ?? .null
    }
}
