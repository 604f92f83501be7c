internal import CScan
internal import Glibc

/// JSON text that is being written, and the memory that it is in, which is reused from record to record so
/// that no line allocates.
///
/// It knows escapes and UTF-8, but neither members nor times; what it holds is JSON only if its caller writes
/// the parts in their order. It is not copyable because it owns its storage.
struct JSONBuffer: ~Copyable {
    /// The buffer of the text; owned, and replaced when it grows.
    private var storage: UnsafeMutablePointer<UInt8>
    /// Size of `storage` in bytes.
    private var capacity: Int
    /// The end of what is written, where the next byte goes. Whoever writes there has reserved the
    /// room before.
    var out: UnsafeMutablePointer<UInt8>
    /// End of the memory that may be loaded while texts of the current record are copied, 16 bytes at a time.
    /// Without it the copy of the last value could read beyond the block, into a page that is not mapped.
    private(set) var readable: UnsafePointer<UInt8>
    /// Whether bytes were not UTF-8 and became U+FFFD since `begin`.
    private(set) var isRepaired = false

    /// Storage beyond 64 KiB is given back before the next record, so that one huge line does not keep its
    /// memory.
    private static let keptCapacity = 1 << 16

    /// Storage at the beginning. Each app has a buffer, also for JSON, which never needs it.
    private static let firstCapacity = 256

    /// An empty buffer.
    init() {
        capacity = JSONBuffer.firstCapacity
        storage = .allocate(capacity: capacity)
        out = storage
        readable = UnsafePointer(storage)
    }

    deinit { storage.deallocate() }

    /// The text so far. Valid until the next change.
    var bytes: UnsafeBufferPointer<UInt8> { UnsafeBufferPointer(start: storage, count: out - storage) }

    /// The current length. `goBack(to:)` drops what was written after it.
    @inline(__always) var mark: Int { out - storage }

    /// Drops what was written after a mark.
    mutating func goBack(to mark: Int) { out = storage + mark }

    // MARK: Objects

    /// Begins an object, and drops the text before.
    ///
    /// - Parameter end: end of the memory that may be loaded around the values that follow.
    mutating func begin(readableTo end: UnsafePointer<UInt8>) {
        if capacity > JSONBuffer.keptCapacity {
            storage.deallocate()
            capacity = 4096
            storage = .allocate(capacity: capacity)
        }
        readable = end
        isRepaired = false
        storage[0] = UInt8(ascii: "{")
        out = storage + 1
    }

    /// Ends the object, and adds a line feed and `padding` others that do not count.
    mutating func end(padding: Int) {
        reserve(2 + padding)
        closeObject()
        memset(out, 0x0A, 1 + padding)
        out += 1
    }

    /// Begins an object as the value of the name before.
    mutating func openObject() { append(UInt8(ascii: ":"), UInt8(ascii: "{")) }

    /// Turns the last comma into a brace, or adds a brace if the object is empty.
    mutating func closeObject() {
        reserve(2)
        if out[-1] == UInt8(ascii: ",") {
            out[-1] = UInt8(ascii: "}")
        } else {
            out[0] = UInt8(ascii: "}")
            out += 1
        }
    }

    // MARK: Pieces

    /// Writes a constant name, its quotes and its colon.
    @inline(__always)
    mutating func name(_ name: StaticString) {
        let length = name.utf8CodeUnitCount
        reserve(length + 4)
        out[0] = UInt8(ascii: "\"")
        memcpy(out + 1, name.utf8Start, length)
        out[length + 1] = UInt8(ascii: "\"")
        out[length + 2] = UInt8(ascii: ":")
        out += length + 3
    }

    /// Writes the colon after a name.
    mutating func colon() { append(UInt8(ascii: ":")) }

    /// Writes the comma after a member.
    @inline(__always)
    mutating func comma() { append(UInt8(ascii: ",")) }

    @inline(__always)
    private mutating func append(_ byte: UInt8) {
        reserve(1)
        out[0] = byte
        out += 1
    }

    @inline(__always)
    private mutating func append(_ first: UInt8, _ second: UInt8) {
        reserve(2)
        out[0] = first
        out[1] = second
        out += 2
    }

    /// Writes bytes that are JSON already.
    mutating func raw(_ bytes: [UInt8]) {
        bytes.withUnsafeBytes { copy(Bytes($0)) }
    }

    /// Writes a constant text, as it is.
    @inline(__always)
    mutating func append(_ text: StaticString) {
        copy(Bytes(text.utf8Start, text.utf8CodeUnitCount))
    }

    /// Copies a name by the fixed length `shortCopy`, beyond its end. The memory after it must be readable.
    @inline(__always)
    mutating func copyName(_ name: Bytes) {
        reserve(name.count + JSONBuffer.shortCopy)
        guard name.count <= JSONBuffer.shortCopy else {
            copy(name)
            return
        }
        // A fixed length costs two instructions, a variable length a call.
        memcpy(out, name.start, JSONBuffer.shortCopy)
        out += name.count
    }

    /// Length of a copy with a fixed length, 32 bytes: more than nearly all names have, and compiled without
    /// a call. So each name's memory must have 32 readable bytes, however short the name is.
    static let shortCopy = 32

    /// Copies bytes as they are.
    @inline(__always)
    mutating func copy(_ bytes: Bytes) {
        reserve(bytes.count)
        memcpy(out, bytes.start, bytes.count)
        out += bytes.count
    }

    /// Copies a value of at most 16 bytes by one load and one store, if that many bytes are readable there;
    /// else by `memcpy` of the exact length.
    @inline(__always)
    mutating func copyShort(_ value: Bytes) {
        guard value.count <= 16, readable - value.start >= 16 else {
            copy(value)
            return
        }
        reserve(16)
        memcpy(out, value.start, 16)
        out += value.count
    }

    // MARK: Texts

    /// Ends a name that was begun with `openString`.
    mutating func closeName() { append(UInt8(ascii: "\""), UInt8(ascii: ":")) }

    /// Begins a text: its opening quote. `content` may follow several times, and then `closeString` or
    /// `closeName`.
    @inline(__always)
    mutating func openString() { append(UInt8(ascii: "\"")) }

    /// Ends a text that is a value: its quote and the comma.
    @inline(__always)
    mutating func closeString() { append(UInt8(ascii: "\""), UInt8(ascii: ",")) }

    /// Writes a whole text: quotes and escaped content.
    @inline(__always)
    mutating func string(_ text: Bytes) {
        openString()
        content(text)
        append(UInt8(ascii: "\""))
    }

    /// Writes the content of a text, escaped. Plain bytes are copied 16 at a time; quotes, backslashes,
    /// control characters and bytes beyond ASCII go through `special`.
    @inline(__always)
    mutating func content(_ text: Bytes) {
        // A control character takes six bytes, which is the most; and each copy writes 16 bytes, however many
        // count.
        reserve(text.count * 6 + 16)
        var p = text.start
        let end = text.end
        while p < end {
            let left = end - p
            if readable - p >= 16 {
                let stops = cscan_stops(p)
                memcpy(out, p, 16)
                let plain = min(Int((stops | 0x10000).trailingZeroBitCount), left)
                p += plain
                out += plain
                guard plain < 16, p < end else { continue }
                let byte = p.pointee
                // Quotes are by far the most frequent: six in a line of an access log.
                if byte == 0x22 || byte == 0x5C {
                    out[0] = 0x5C
                    out[1] = byte
                    out += 2
                    p += 1
                } else {
                    special(&p, end)
                }
            } else if p.pointee >= 0x20, p.pointee < 0x80, p.pointee != 0x22, p.pointee != 0x5C {
                out[0] = p.pointee
                p += 1
                out += 1
            } else {
                special(&p, end)
            }
        }
    }

    /// Writes one character that is not plain. `content` has reserved the room for it.
    ///
    /// Source: RFC 8259, section 7.
    @inline(never)
    private mutating func special(_ p: inout UnsafePointer<UInt8>, _ end: UnsafePointer<UInt8>) {
        let c = p.pointee
        if c >= 0x80 {
            character(&p, end)
            return
        }
        p += 1
        let short: UInt8 =
            switch c {
            case 0x22, 0x5C: c
            case 0x0A: UInt8(ascii: "n")
            case 0x09: UInt8(ascii: "t")
            case 0x0D: UInt8(ascii: "r")
            default: 0
            }
        out[0] = UInt8(ascii: "\\")
        if short != 0 {
            out[1] = short
            out += 2
            return
        }
        let hex: StaticString = "0123456789abcdef"
        out[1] = UInt8(ascii: "u")
        out[2] = UInt8(ascii: "0")
        out[3] = UInt8(ascii: "0")
        out[4] = hex.utf8Start[Int(c >> 4)]
        out[5] = hex.utf8Start[Int(c & 15)]
        out += 6
    }

    /// Writes one character beyond ASCII, or U+FFFD for bytes that are not UTF-8.
    ///
    /// Source: Unicode 15.0, table 3-7 (well-formed UTF-8 byte sequences): the second byte has a narrower
    /// range after E0, ED, F0 and F4, which excludes overlong forms, surrogates and what is beyond U+10FFFF.
    private mutating func character(_ p: inout UnsafePointer<UInt8>, _ end: UnsafePointer<UInt8>) {
        let c = p.pointee
        var length = 0
        var (low, high): (UInt8, UInt8) = (0x80, 0xBF)
        switch c {
        case 0xC2...0xDF: length = 2
        case 0xE0...0xEF:
            length = 3
            low = c == 0xE0 ? 0xA0 : 0x80
            high = c == 0xED ? 0x9F : 0xBF
        case 0xF0...0xF4:
            length = 4
            low = c == 0xF0 ? 0x90 : 0x80
            high = c == 0xF4 ? 0x8F : 0xBF
        default: break
        }
        var good = 1
        while good < length, p + good < end {
            let next = p[good]
            guard next >= low, next <= high else { break }
            low = 0x80
            high = 0xBF
            good += 1
        }
        if length > 0, good == length {
            memcpy(out, p, length)
            p += length
            out += length
            return
        }
        // A character that is cut off becomes one replacement, as in `String(decoding:as:)`; the bytes of an
        // invalid one are replaced one by one.
        p += good
        isRepaired = true
        out[0] = 0xEF
        out[1] = 0xBF
        out[2] = 0xBD
        out += 3
    }

    /// Writes content without the backslashes before quotes and backslashes. Other backslashes stay: nginx
    /// writes `\x16` for a byte, which is kept as it is.
    mutating func unescape(_ text: Bytes) {
        var left = text
        while let index = left.firstIndex(of: UInt8(ascii: "\\")), index + 1 < left.count {
            let next = left[index + 1]
            guard next == UInt8(ascii: "\"") || next == UInt8(ascii: "\\") else {
                content(left.prefix(index + 2))
                left = left.dropping(index + 2)
                continue
            }
            content(left.prefix(index))
            content(Bytes(left.start + index + 1, 1))
            left = left.dropping(index + 2)
        }
        content(left)
    }

    /// Writes content that is not in the line, but in other memory, of which `count` bytes are readable. The
    /// limit of the line does not apply there.
    mutating func content(_ text: Bytes, readable count: Int) {
        let end = readable
        readable = text.start + count
        content(text)
        readable = end
    }

    // MARK: Storage

    /// Makes room for more bytes. Callers write behind `out` without further checks.
    @inline(__always)
    mutating func reserve(_ more: Int) {
        if storage + capacity - out < more {
            grow(more)
        }
    }

    /// Moves the object to storage of at least twice the size, so that the cost of moving stays linear.
    @inline(never)
    private mutating func grow(_ more: Int) {
        let count = out - storage
        let larger = max(capacity * 2, count + more)
        let moved = UnsafeMutablePointer<UInt8>.allocate(capacity: larger)
        memcpy(moved, storage, count)
        storage.deallocate()
        storage = moved
        capacity = larger
        out = moved + count
    }
}
