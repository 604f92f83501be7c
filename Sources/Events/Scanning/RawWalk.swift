// Public, because only public functions are inlined elsewhere.
public import CScan
internal import Glibc
internal import Model

/// Range of a member, as offsets from the beginning of the text.
public struct RawMember {
    /// Text of its name, without quotes.
    public var name: Range<Int>
    /// Whether its name has escapes in it.
    public var isEscaped: Bool
    /// The member's value, quotes included.
    public var value: Range<Int>

    @inlinable
    init(name: Range<Int>, isEscaped: Bool, value: Range<Int>) {
        self.name = name
        self.isEscaped = isEscaped
        self.value = value
    }

    /// Whether the member has this name, however the name is spelled.
    package func isNamed(_ name: [UInt8], in base: UnsafePointer<UInt8>) -> Bool {
        if isEscaped {
            return JSONString.decoded(
                UnsafeBufferPointer(start: base + self.name.lowerBound, count: self.name.count))
                == name
        }
        return self.name.count == name.count && memcmp(base + self.name.lowerBound, name, name.count) == 0
    }
}

/// Walks over the members of an object in JSON text that was validated, such as a line that the pass has
/// accepted.
///
/// It neither validates nor recurses. Whatever the text is, it loads only bytes before `end` and takes linear
/// time, so a wrong text gives a wrong walk and no crash. It works on a pointer, because each event that
/// rules look into goes through it.
public struct RawWalk {
    /// The text, and the offset of its end.
    @usableFromInline let base: UnsafePointer<UInt8>
    @usableFromInline let end: Int
    /// Offset of the next byte to read.
    @usableFromInline var position: Int

    /// - Parameter start: where the object's opening bracket stands.
    @inlinable
    public init(_ base: UnsafePointer<UInt8>, from start: Int, to end: Int) {
        self.base = base
        self.end = end
        position = start + 1
    }

    /// The next member with its whole value; nil after the last one.
    @inlinable @inline(__always)
    package mutating func next() -> RawMember? {
        guard var member = nextName() else { return nil }
        position = RawWalk.valueEnd(base, position, end)
        member.value = member.value.lowerBound..<max(member.value.lowerBound, position)
        return member
    }

    /// The next member; of its value only the beginning is known. Nil after the last one. Call `skipValue` or
    /// `goOn` before the next call.
    @inlinable @inline(__always)
    public mutating func nextName() -> RawMember? {
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

    /// Steps over the value of the last name.
    @inlinable @inline(__always)
    public mutating func skipValue() { position = RawWalk.valueEnd(base, position, end) }

    /// Continues at an offset that the caller has found: the one after the value of the last name.
    @inlinable @inline(__always)
    public mutating func goOn(at offset: Int) { position = offset }

    /// The offset after the last value that was stepped over.
    @inlinable @inline(__always) public var offset: Int { position }

    /// The offset after the object's closing brace, once there are no more members.
    @inlinable @inline(__always)
    public var objectEnd: Int { min(position + 1, end) }

    @inlinable @inline(__always)
    mutating func skipSpace() {
        while position < end, base[position] <= 0x20 { position += 1 }
    }

    /// The offset after the closing quote of a string whose text begins at `start`. Sets `isEscaped` if there
    /// is an escape in it.
    @inlinable @inline(__always)
    package static func stringEnd(
        _ base: UnsafePointer<UInt8>, _ start: Int, _ end: Int, _ isEscaped: inout Bool
    )
        -> Int
    {
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
    @inlinable @inline(__always)
    public static func valueEnd(_ base: UnsafePointer<UInt8>, _ start: Int, _ end: Int) -> Int {
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

    /// The values of the list at these offsets, brackets included.
    package static func elements(_ base: UnsafePointer<UInt8>, _ list: Range<Int>) -> [Range<Int>] {
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

    /// The offset after the object or list that begins at `start`. Brackets of both kinds count alike: the
    /// text was validated.
    @usableFromInline
    static func nestedEnd(_ base: UnsafePointer<UInt8>, _ start: Int, _ end: Int) -> Int {
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

    /// Whether a byte ends a number or a literal.
    @inlinable @inline(__always)
    static func isScalarEnd(_ byte: UInt8) -> Bool {
        byte <= 0x20 || byte == UInt8(ascii: ",") || byte == UInt8(ascii: "}") || byte == UInt8(ascii: "]")
    }

    /// The last member of a name in the object that begins at `start`; nil if there is no such member, or no
    /// object.
    package static func find(
        _ name: [UInt8], in base: UnsafePointer<UInt8>, from start: Int, to end: Int
    ) -> RawMember? {
        guard start < end, base[start] == .openBrace else { return nil }
        var walk = RawWalk(base, from: start, to: end)
        var found: RawMember?
        while let member = walk.next() {
            if member.isNamed(name, in: base) {
                found = member
            }
        }
        return found
    }
}
