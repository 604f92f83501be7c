internal import Glibc

/// A slice of a line: a pointer and a length, without the bounds checks of `UnsafeBufferPointer`, which each
/// byte of each line would pay for. Debug builds assert the bounds.
///
/// It owns nothing: it is valid only while the block that the line is in stays in memory.
struct Bytes {
    /// The first byte; never to be dereferenced if `count` is 0.
    let start: UnsafePointer<UInt8>
    /// Length in bytes.
    let count: Int

    /// An empty slice. Its pointer is not nil and refers to nothing.
    static var none: Bytes { Bytes(UnsafePointer(bitPattern: 8).unsafelyUnwrapped, 0) }

    /// A slice of `count` bytes.
    @inline(__always)
    init(_ start: UnsafePointer<UInt8>, _ count: Int) {
        assert(count >= 0)
        self.start = start
        self.count = count
    }

    /// The bytes of a buffer; an empty slice if the buffer has no address.
    @inline(__always)
    init(_ raw: UnsafeRawBufferPointer) {
        if let base = raw.baseAddress {
            self.init(base.assumingMemoryBound(to: UInt8.self), raw.count)
        } else {
            self = Bytes.none
        }
    }

    /// The address after the last byte.
    @inline(__always) var end: UnsafePointer<UInt8> { start + count }
    @inline(__always) var isEmpty: Bool { count == 0 }
    /// The bytes as a collection.
    var buffer: UnsafeBufferPointer<UInt8> { UnsafeBufferPointer(start: start, count: count) }
    /// The first byte; nil if the text is empty.
    var first: UInt8? { count > 0 ? start[0] : nil }
    /// The last byte; nil if the text is empty.
    var last: UInt8? { count > 0 ? start[count - 1] : nil }

    /// The byte at an offset, which must be inside.
    @inline(__always)
    subscript(_ index: Int) -> UInt8 {
        assert(index >= 0 && index < count)
        return start[index]
    }

    /// The slice without its first `length` bytes; empty if it has fewer.
    @inline(__always)
    func dropping(_ length: Int) -> Bytes { Bytes(start + min(length, count), max(count - length, 0)) }

    /// The first `length` bytes, or all if there are fewer.
    @inline(__always)
    func prefix(_ length: Int) -> Bytes { Bytes(start, min(length, count)) }

    /// Offset of the first such byte, or nil. `memchr` compares many bytes at a time.
    @inline(__always)
    func firstIndex(of byte: UInt8) -> Int? {
        memchr(start, Int32(byte), count).map { UnsafeRawPointer($0) - UnsafeRawPointer(start) }
    }

    /// Offset of the last such byte, or nil.
    func lastIndex(of byte: UInt8) -> Int? {
        var index = count - 1
        while index >= 0 {
            if start[index] == byte { return index }
            index -= 1
        }
        return nil
    }

    /// Whether the slice begins with a text.
    @inline(__always)
    func hasPrefix(_ text: StaticString) -> Bool {
        count >= text.utf8CodeUnitCount && memcmp(start, text.utf8Start, text.utf8CodeUnitCount) == 0
    }

    /// Whether the slice ends with a text.
    func hasSuffix(_ text: StaticString) -> Bool {
        let length = text.utf8CodeUnitCount
        return count >= length && memcmp(end - length, text.utf8Start, length) == 0
    }

    /// Whether the slice is exactly a text.
    @inline(__always)
    func equals(_ text: StaticString) -> Bool { count == text.utf8CodeUnitCount && hasPrefix(text) }

    /// Offset of a text, searched from the left; nil if it is not there.
    func firstIndex(of text: StaticString) -> Int? {
        var from = 0
        while let index = dropping(from).firstIndex(of: text.utf8Start[0]) {
            if dropping(from + index).hasPrefix(text) { return from + index }
            from += index + 1
        }
        return nil
    }

    /// Offset of a text, searched from the right; nil if it is not there.
    // Search only where the whole text would fit; after a first byte that does not match, continue left of
    // that byte.
    func lastIndex(of text: StaticString) -> Int? {
        let length = text.utf8CodeUnitCount
        var left = count
        while left >= length {
            guard let index = Bytes(start, left - length + 1).lastIndex(of: text.utf8Start[0]) else {
                return nil
            }
            if dropping(index).hasPrefix(text) { return index }
            left = index + length - 1
        }
        return nil
    }

    /// The slice without blanks at both ends. Tabs stay.
    var trimmed: Bytes {
        var from = 0
        var to = count
        while from < to, start[from] == UInt8(ascii: " ") { from += 1 }
        while to > from, start[to - 1] == UInt8(ascii: " ") { to -= 1 }
        return Bytes(start + from, to - from)
    }

    /// Whether all bytes are digits, and there is at least one.
    var isDigits: Bool { count > 0 && buffer.allSatisfy { $0 &- 0x30 < 10 } }

    /// Whether the slice is a number by JSON's grammar (RFC 8259, section 6): no leading zero, no plus sign,
    /// digits on both sides of the point. Otherwise the object would not be JSON.
    var isNumber: Bool {
        var index = 0
        if index < count, start[index] == UInt8(ascii: "-") {
            index += 1
        }
        let whole = digits(from: index)
        guard whole > 0, whole == 1 || start[index] != UInt8(ascii: "0") else { return false }
        index += whole
        if index < count, start[index] == UInt8(ascii: ".") {
            let fraction = digits(from: index + 1)
            guard fraction > 0 else { return false }
            index += 1 + fraction
        }
        if index < count, start[index] | 0x20 == UInt8(ascii: "e") {
            index += 1
            if index < count, start[index] == UInt8(ascii: "+") || start[index] == UInt8(ascii: "-") {
                index += 1
            }
            let exponent = digits(from: index)
            guard exponent > 0 else { return false }
            index += exponent
        }
        return index == count
    }

    /// The slice from the beginning of a piece of it to its own end.
    func endingAt(of piece: Bytes) -> Bytes { Bytes(piece.start, end - piece.start) }

    /// The line without a carriage return at its end: line ends of Windows are CR and LF.
    @inline(__always)
    var withoutReturn: Bytes { last == 0x0D ? prefix(count - 1) : self }

    /// A copy whose lines end with LF; nil if none of them ends with CR and LF.
    var withLineFeedsOnly: [UInt8]? {
        guard firstIndex(of: 0x0D) != nil else { return nil }
        var copy: [UInt8] = []
        copy.reserveCapacity(count)
        for index in 0..<count where self[index] != 0x0D || dropping(index + 1).first != 0x0A {
            copy.append(self[index])
        }
        return copy.count < count ? copy : nil
    }

    /// The text without the backquotes around it, in which statements put names.
    var unquoted: Bytes {
        count > 1 && first == UInt8(ascii: "`") && last == UInt8(ascii: "`")
            ? dropping(1).prefix(count - 2) : self
    }

    /// Number of digits from an offset on.
    @inline(__always)
    private func digits(from index: Int) -> Int {
        var end = index
        while end < count, start[end] &- 0x30 < 10 { end += 1 }
        return end - index
    }
}
