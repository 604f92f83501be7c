public import EventLoops

/// An id that sorts by the time at which it was made: 48 bits of milliseconds, a counter, then random
/// bits.
///
/// Consecutive ids share most of their text, so events compress better than with random ids. Source:
/// RFC 9562, section 5.7 and section 6.2, method 1. https://www.rfc-editor.org/rfc/rfc9562
public struct UUIDv7: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// The first eight bytes, big-endian: time, version, counter.
    public let high: UInt64
    /// The last eight bytes, big-endian: variant, random bits.
    public let low: UInt64

    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// Whether the left id was made earlier, if the same generator made both.
    public static func < (left: UUIDv7, right: UUIDv7) -> Bool {
        (left.high, left.low) < (right.high, right.low)
    }

    /// The sixteen bytes in order.
    public var bytes: [UInt8] {
        (0..<16).map { UInt8(truncatingIfNeeded: ($0 < 8 ? high : low) >> (56 - 8 * UInt64($0 % 8))) }
    }

    /// An id from its sixteen bytes; nil for any other number of bytes.
    public init?(bytes: some Collection<UInt8>) {
        guard bytes.count == 16 else { return nil }
        high = bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
        low = bytes.suffix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// The usual text: 36 characters, lower case.
    public var description: String {
        String(unsafeUninitializedCapacity: 36) { buffer in
            write(to: UnsafeMutableRawBufferPointer(buffer))
            return 36
        }
    }

    /// An id from its usual text in either case; nil for any other text.
    public init?(_ text: some StringProtocol) {
        guard let made = UUIDv7(bytes: Hexadecimal.bytes(String(text).filter { $0 != "-" })),
            made.description == text.lowercased()
        else { return nil }
        self = made
    }

    /// Writes the usual text, 36 bytes, to a buffer of at least that size.
    public func write(to buffer: UnsafeMutableRawBufferPointer) {
        precondition(buffer.count >= 36, "an id's text takes 36 bytes")
        var place = 0
        for digit in 0..<32 {
            // The dashes stand before the digits 8, 12, 16 and 20.
            if digit >= 8, digit <= 20, digit % 4 == 0 {
                buffer[place] = UInt8(ascii: "-")
                place += 1
            }
            let half = digit < 16 ? high : low
            let value = Int(truncatingIfNeeded: half >> UInt64(60 - 4 * (digit % 16))) & 15
            buffer[place] = Hexadecimal.digits[value]
            place += 1
        }
    }
}

/// Makes ids that always increase, even if the clock is set back.
public struct UUIDv7Generator: Sendable {
    /// Time of the last id; ahead of the clock after many ids in a millisecond.
    private var millisecond: UInt64 = 0
    /// Counter of the last id, 12 bits.
    private var counter: UInt64 = 0

    package init() {}

    /// The next id.
    ///
    /// Within a millisecond a 12-bit counter increases from a random start in its lower half. While the
    /// clock is set back, ids keep the last millisecond. When the counter is used up, the id takes the
    /// next millisecond.
    /// - Parameter random: source of the 62 random bits: the kernel in the agent, a seed in tests.
    public mutating func next(at now: Timestamp, using random: inout some RandomNumberGenerator) -> UUIDv7 {
        let current = UInt64(clamping: now.milliseconds) & 0xFFFF_FFFF_FFFF
        if current <= millisecond, counter < 0xFFF {
            counter += 1
        } else {
            millisecond = max(current, millisecond + 1)
            counter = random.next() & 0x7FF
        }
        return UUIDv7(
            high: millisecond << 16 | 0x7000 | counter,
            low: 0x8000_0000_0000_0000 | random.next() >> 2)
    }
}
