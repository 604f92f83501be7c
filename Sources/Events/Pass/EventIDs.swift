internal import EventLoops
internal import Glibc
internal import Model

/// Makes ids for events that have none: UUIDv7, each greater than the one before.
///
/// Within a millisecond the 74 random bits count up by one from a random start (RFC 9562, section 6.2, method
/// 2). So neighbouring ids share most of their text, which lets a chunk compress better, and the next id
/// costs one changed digit instead of sixteen random bytes.
struct EventIDs: ~Copyable {
    /// Length of the text: 32 digits and 4 dashes.
    static let length = 36
    /// Text of the id that `write` hands out next.
    private let text: UnsafeMutablePointer<UInt8>
    /// Milliseconds since 1970 of the time part.
    private var millisecond: UInt64 = 0

    init() {
        text = .allocate(capacity: EventIDs.length)
        text.initialize(repeating: UInt8(ascii: "0"), count: EventIDs.length)
        for index in [8, 13, 18, 23] { text[index] = UInt8(ascii: "-") }
    }

    deinit { text.deallocate() }

    /// Moves on to a time. If the clock was set back, nothing changes and the ids count on: a smaller time
    /// part would break their order.
    mutating func begin(at now: Timestamp, using random: inout some RandomNumberGenerator) {
        let current = UInt64(clamping: now.milliseconds) & 0xFFFF_FFFF_FFFF
        guard current > millisecond else { return }
        millisecond = current
        // The highest of the random bits is left zero, so that counting up does not overflow into the time
        // part.
        let high = current << 16 | 0x7000 | random.next() & 0x7FF
        let low = 0x8000_0000_0000_0000 | random.next() >> 2
        UUIDv7(high: high, low: low).write(
            to: UnsafeMutableRawBufferPointer(start: text, count: EventIDs.length))
    }

    /// Writes the next id, `length` bytes.
    ///
    /// The text is incremented after the copy, not before: a copy of bytes that were just stored one at a
    /// time has to wait until these stores have reached the cache (no store forwarding).
    @inline(__always)
    mutating func write(to cursor: UnsafeMutablePointer<UInt8>) {
        memcpy(cursor, text, EventIDs.length)
        var index = EventIDs.length - 1
        while true {
            let c = text[index]
            if c == UInt8(ascii: "9") {
                text[index] = UInt8(ascii: "a")
                break
            }
            if c != UInt8(ascii: "f") {
                text[index] = c + 1
                break
            }
            text[index] = UInt8(ascii: "0")
            index = EventIDs.before(index)
        }
    }

    /// Index of the digit before, skipping dashes and the variant's digit. Before the first random digit (15)
    /// comes the last one (35), so that the version's digit is never changed; in practice the carry ends
    /// earlier, because the highest random bit begins as zero.
    @inline(never)
    private static func before(_ index: Int) -> Int {
        switch index {
        case 24: 22
        case 20: 17
        case 15: 35
        default: index - 1
        }
    }
}
