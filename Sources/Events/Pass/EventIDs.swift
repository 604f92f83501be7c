internal import EventLoops
internal import Glibc
internal import Model

/// Makes the ids of events that have none: UUIDv7, each greater than the one before.
///
/// Within a millisecond the 74 random bits count up by one from a random start. So neighbours share most of their text,
/// which the compression of a chunk is glad of, and the next id costs a changed digit, not sixteen random bytes.
/// Source: RFC 9562, section 6.2, method 2.
struct EventIDs: ~Copyable {
    static let length = 36
    private let text: UnsafeMutablePointer<UInt8>
    private var millisecond: UInt64 = 0

    init() {
        text = .allocate(capacity: EventIDs.length)
        text.initialize(repeating: UInt8(ascii: "0"), count: EventIDs.length)
        for index in [8, 13, 18, 23] { text[index] = UInt8(ascii: "-") }
    }

    deinit { text.deallocate() }

    /// Moves on to a time. A clock that was set back changes nothing: the ids count on.
    mutating func begin(at now: Timestamp, using random: inout some RandomNumberGenerator) {
        let current = UInt64(clamping: now.milliseconds) & 0xFFFF_FFFF_FFFF
        guard current > millisecond else { return }
        millisecond = current
        // The highest random bit is left zero: room to count.
        let high = current << 16 | 0x7000 | random.next() & 0x7FF
        let low = 0x8000_0000_0000_0000 | random.next() >> 2
        UUIDv7(high: high, low: low).write(to: UnsafeMutableRawBufferPointer(start: text, count: EventIDs.length))
    }

    /// Writes the next id.
    ///
    /// The text already is that of the next one, and is counted on after it was copied: a copy of what has just been changed
    /// would wait until the change has reached the cache.
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

    /// The digit before, the variant's and the dashes left out; the version's digit is never reached.
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
