internal import Glibc
internal import Model

/// A body while it is written: bytes that only grow, or shrink to an earlier end.
///
/// An array would check bounds and unique ownership for each of the many short pieces that a format writes.
/// It is not `LineBuffer` of Events, which keeps its memory between blocks: a body is written once, and its
/// short pieces have to be inlined, which functions of another module are not.
struct BodyBuffer: ~Copyable {
    /// First byte; moves when the buffer grows.
    private(set) var start: UnsafeMutablePointer<UInt8>
    private(set) var count = 0
    private var capacity: Int
    /// Whether the memory is the buffer's own; false for memory of an array that is being made.
    private var ownsMemory: Bool

    /// - Parameter capacity: bytes that fit without growing.
    init(capacity: Int) {
        self.capacity = max(capacity, 64)
        start = .allocate(capacity: self.capacity)
        ownsMemory = true
    }

    private init(in memory: UnsafeMutablePointer<UInt8>, capacity: Int) {
        self.capacity = capacity
        start = memory
        ownsMemory = false
    }

    deinit {
        if ownsMemory {
            start.deallocate()
        }
    }

    /// An array of what `write` appends. Bodies are large: written elsewhere, they would have to be copied.
    ///
    /// - Parameters:
    ///   - capacity: bytes that fit; a body that is longer is copied.
    ///   - write: gets an empty buffer, and returns it.
    static func array<Failure: Error>(
        capacity: Int, _ write: (consuming BodyBuffer) throws(Failure) -> BodyBuffer
    ) throws(Failure) -> [UInt8] {
        var failure: Failure?
        var moved: [UInt8]?
        let capacity = max(capacity, 64)
        let body = [UInt8](unsafeUninitializedCapacity: capacity) { memory, count in
            guard let base = memory.baseAddress else { return }
            do throws(Failure) {
                let out = try write(BodyBuffer(in: base, capacity: capacity))
                if out.ownsMemory {
                    moved = out.array
                } else {
                    count = out.count
                }
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        return moved ?? body
    }

    /// The bytes as an array of their own.
    var array: [UInt8] { Array(UnsafeBufferPointer(start: start, count: count)) }

    /// The bytes; valid until the buffer changes.
    var bytes: UnsafeBufferPointer<UInt8> { UnsafeBufferPointer(start: start, count: count) }

    /// Makes room for `more` bytes after those in the buffer.
    @inline(__always)
    mutating func reserve(_ more: Int) {
        if capacity - count < more {
            grow(more)
        }
    }

    /// Forgets the bytes from an offset on.
    @inline(__always)
    mutating func cut(to count: Int) { self.count = min(count, self.count) }

    /// Place of the next byte, for a caller that has reserved the room and calls `wrote` afterwards.
    @inline(__always) var cursor: UnsafeMutablePointer<UInt8> { start + count }

    /// Counts bytes that were written at `cursor`.
    @inline(__always)
    mutating func wrote(_ bytes: Int) { count &+= bytes }

    @inline(__always)
    mutating func byte(_ byte: UInt8) {
        reserve(1)
        start[count] = byte
        count &+= 1
    }

    @inline(__always)
    mutating func append(_ source: UnsafePointer<UInt8>, _ length: Int) {
        // Short pieces are copied in steps of constant length, which need no call; what they copy too much
        // is written over.
        reserve(length &+ 16)
        let target = start + count
        if length <= 16, length >= 8 {
            let from = UnsafeRawPointer(source)
            let to = UnsafeMutableRawPointer(target)
            let last = length &- 8
            let end = from.loadUnaligned(fromByteOffset: last, as: UInt64.self)
            to.storeBytes(of: from.loadUnaligned(as: UInt64.self), as: UInt64.self)
            to.storeBytes(of: end, toByteOffset: last, as: UInt64.self)
        } else {
            memcpy(target, source, length)
        }
        count &+= length
    }

    mutating func append(_ bytes: UnsafeBufferPointer<UInt8>) {
        if let start = bytes.baseAddress {
            append(start, bytes.count)
        }
    }

    mutating func append(_ text: String) {
        var text = text
        text.withUTF8 { append($0) }
    }

    @inline(__always)
    mutating func append(_ text: StaticString) { append(text.utf8Start, text.utf8CodeUnitCount) }

    /// The numbers from 00 to 99.
    private static let pairs: StaticString = """
        0001020304050607080910111213141516171819\
        2021222324252627282930313233343536373839\
        4041424344454647484950515253545556575859\
        6061626364656667686970717273747576777879\
        8081828384858687888990919293949596979899
        """

    /// Appends a number in decimal digits.
    mutating func number(_ value: Int64) {
        reserve(24)
        var rest = value.magnitude
        var digits = 1
        var limit: UInt64 = 10
        while digits < 19, rest >= limit {
            digits += 1
            limit *= 10
        }
        if value < 0 {
            byte(UInt8(ascii: "-"))
        }
        // From the end, two digits at a time.
        var index = start + count + digits
        while rest >= 100 {
            index -= 2
            memcpy(index, BodyBuffer.pairs.utf8Start + 2 * Int(truncatingIfNeeded: rest % 100), 2)
            rest /= 100
        }
        if rest >= 10 {
            memcpy(index - 2, BodyBuffer.pairs.utf8Start + 2 * Int(truncatingIfNeeded: rest), 2)
        } else {
            // bounded: less than ten.
            index[-1] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest)
        }
        count += digits
    }

    /// Appends UTF-8 as it is escaped within a JSON string, without the quotes.
    mutating func escaped(_ text: UnsafeBufferPointer<UInt8>) {
        // In pieces, because the room is for a text of control characters only.
        let piece = 4096
        var index = 0
        while index < text.count {
            let end = min(index + piece, text.count)
            reserve((end - index) * JSONString.longestEscape + 16)
            count += JSONString.escape(UnsafeBufferPointer(rebasing: text[index..<end]), to: start + count)
            index = end
        }
    }

    /// Appends the content of a JSON string, with its escapes resolved.
    mutating func decoded(_ text: UnsafeBufferPointer<UInt8>) {
        reserve(text.count + JSONString.decodedExcess)
        count += JSONString.decode(text, to: start + count)
    }

    /// Moves the bytes from an offset on by a few bytes, forward or back, within room that is reserved.
    mutating func move(from offset: Int, by distance: Int) {
        reserve(max(distance, 0))
        memmove(start + offset + distance, start + offset, count - offset)
        count += distance
    }

    /// At least doubles the memory, so that appending costs constant time on average.
    @inline(never)
    private mutating func grow(_ more: Int) {
        let larger = max(capacity * 2, count + more)
        let moved = UnsafeMutablePointer<UInt8>.allocate(capacity: larger)
        memcpy(moved, start, count)
        if ownsMemory {
            start.deallocate()
        }
        start = moved
        ownsMemory = true
        capacity = larger
    }
}
