package import EventLoops

/// Writes times as RFC 3339 text in UTC, with three, six or nine digits after the point: as many as the time
/// has.
///
/// Most times are in the same second as the one before, whose text is kept.
package struct TimestampWriter {
    /// The second, since 1970, of the text.
    private var second = Int64.min
    /// Text of the last time, with room for nine digits and the `Z`.
    private var bytes: [UInt8] = []

    package init() {}

    /// The text of a time.
    package mutating func text(of time: Timestamp) -> ArraySlice<UInt8> {
        let (second, rest) = time.nanoseconds.floored(by: 1_000_000_000)
        if second != self.second {
            self.second = second
            bytes = Array(time.description.utf8) + [UInt8](repeating: 0, count: 6)
        }
        let digits = rest % 1_000_000 == 0 ? 3 : rest % 1000 == 0 ? 6 : 9
        var left = digits == 3 ? rest / 1_000_000 : digits == 6 ? rest / 1000 : rest
        for offset in (20..<20 + digits).reversed() {
            // bounded: the remainder of a division by ten.
            bytes[offset] = UInt8(ascii: "0") + UInt8(left % 10)
            left /= 10
        }
        bytes[20 + digits] = UInt8(ascii: "Z")
        return bytes[...(20 + digits)]
    }
}
