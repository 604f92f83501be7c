internal import CScan
internal import Glibc
internal import Model

/// Where a member lies in a line, in bytes from its beginning.
struct RawMember {
    /// The text of its name, quotes excluded.
    var name: Range<Int>
    /// Whether its name has escapes in it.
    var isEscaped: Bool
    /// Its value, quotes included.
    var value: Range<Int>
}

/// Walks over the members of an object in a line that the events' pass has accepted.
///
/// It does not validate: that was done. It works on a pointer because each event that rules look into goes through it; all
/// it loads lies before `end`.
struct RawWalk {
    let base: UnsafePointer<UInt8>
    let end: Int
    private var position: Int

    /// - Parameter start: where the object's opening bracket stands.
    init(_ base: UnsafePointer<UInt8>, from start: Int, to end: Int) {
        self.base = base
        self.end = end
        position = start + 1
    }

    /// The next member; nil after the last one.
    @inline(__always)
    mutating func next() -> RawMember? {
        guard var member = nextName() else { return nil }
        position = RawWalk.valueEnd(base, position, end)
        member.value = member.value.lowerBound..<max(member.value.lowerBound, position)
        return member
    }

    /// The next member, of whose value only the beginning is known; nil after the last one. `skipValue` or `goOn` comes
    /// before the next one.
    @inline(__always)
    mutating func nextName() -> RawMember? {
        skipSpace()
        if position < end, base[position] == UInt8(ascii: ",") {
            position += 1
            skipSpace()
        }
        guard position < end, base[position] == UInt8(ascii: "\"") else { return nil }
        var isEscaped = false
        let name = position + 1
        position = RawWalk.stringEnd(base, name, end, &isEscaped)
        let nameEnd = position - 1
        skipSpace()
        position += 1  // the colon
        skipSpace()
        return RawMember(name: name..<max(name, nameEnd), isEscaped: isEscaped, value: position..<position)
    }

    /// Goes over the value whose name came last.
    @inline(__always)
    mutating func skipValue() { position = RawWalk.valueEnd(base, position, end) }

    /// Goes on at an offset after the value whose name came last.
    @inline(__always)
    mutating func goOn(at offset: Int) { position = offset }

    /// The offset after the value that was gone over last.
    @inline(__always) var offset: Int { position }

    /// The offset after the object's closing bracket, once there is no member more.
    @inline(__always)
    var objectEnd: Int { min(position + 1, end) }

    @inline(__always)
    private mutating func skipSpace() {
        while position < end, base[position] <= 0x20 { position += 1 }
    }

    /// The offset after the closing quote of a string whose text begins at `start`.
    @inline(__always)
    static func stringEnd(_ base: UnsafePointer<UInt8>, _ start: Int, _ end: Int, _ isEscaped: inout Bool) -> Int {
        var p = start
        while p < end {
            if p + 16 <= end {
                let plain = Int(cscan_plain(base + p))
                p += plain
                if plain == 16 { continue }
            }
            switch base[p] {
            case UInt8(ascii: "\""): return p + 1
            case UInt8(ascii: "\\"):
                isEscaped = true
                p += 2
            default: p += 1
            }
        }
        return end
    }

    /// The offset after the value that begins at `start`.
    @inline(__always)
    static func valueEnd(_ base: UnsafePointer<UInt8>, _ start: Int, _ end: Int) -> Int {
        guard start < end else { return end }
        var ignored = false
        switch base[start] {
        case UInt8(ascii: "\""): return stringEnd(base, start + 1, end, &ignored)
        case UInt8(ascii: "{"), UInt8(ascii: "["): return nestedEnd(base, start, end)
        default:
            var p = start
            while p < end, !isScalarEnd(base[p]) { p += 1 }
            return p
        }
    }

    static func elements(_ base: UnsafePointer<UInt8>, _ list: Range<Int>) -> [Range<Int>] {
        var found: [Range<Int>] = []
        var position = list.lowerBound + 1
        while position < list.upperBound - 1 {
            let byte = base[position]
            if byte <= 0x20 || byte == UInt8(ascii: ",") {
                position += 1
                continue
            }
            let end = valueEnd(base, position, list.upperBound - 1)
            found.append(position..<end)
            position = max(end, position + 1)
        }
        return found
    }

    private static func nestedEnd(_ base: UnsafePointer<UInt8>, _ start: Int, _ end: Int) -> Int {
        var depth = 0
        var p = start
        var ignored = false
        while p < end {
            switch base[p] {
            case UInt8(ascii: "{"), UInt8(ascii: "["): depth += 1
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                depth -= 1
                if depth == 0 { return p + 1 }
            case UInt8(ascii: "\""):
                p = stringEnd(base, p + 1, end, &ignored)
                continue
            default: break
            }
            p += 1
        }
        return end
    }

    @inline(__always)
    private static func isScalarEnd(_ byte: UInt8) -> Bool {
        byte <= 0x20 || byte == UInt8(ascii: ",") || byte == UInt8(ascii: "}") || byte == UInt8(ascii: "]")
    }
}

/// What parts of a line mean.
enum RawJSON {
    /// Whether a member has that name.
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

    /// The last member of that name in the object that begins at `start`.
    static func find(
        _ name: [UInt8], in base: UnsafePointer<UInt8>, from start: Int, to end: Int
    ) -> RawMember? {
        guard start < end, base[start] == UInt8(ascii: "{") else { return nil }
        var walk = RawWalk(base, from: start, to: end)
        var found: RawMember?
        while let member = walk.next() {
            if hasName(member, name, in: base) { found = member }
        }
        return found
    }

    /// The text between two quotes, as UTF-8 with its escapes resolved.
    static func decoded(_ base: UnsafePointer<UInt8>, _ text: Range<Int>) -> [UInt8] {
        JSONString.decoded(UnsafeBufferPointer(start: base + text.lowerBound, count: text.count))
    }

    /// The value that lies there; null for what is nested too deeply to be looked into.
    static func value(_ base: UnsafePointer<UInt8>, _ range: Range<Int>) -> JSONValue {
        let bytes = Array(UnsafeBufferPointer(start: base + range.lowerBound, count: range.count))
        // The line is JSON already; what is left to fail is depth and numbers beyond a double, which are nobody's macro.
        return (try? JSONValue(parsing: bytes)) ?? .null
    }
}
