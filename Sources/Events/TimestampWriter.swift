package import EventLoops

/// Writes times as RFC 3339 text in UTC, with as many digits as they have: three, six or nine after the point.
///
/// Most are of the same second as the one before, whose text is kept.
package struct TimestampWriter {
    private var second = Int64.min
    private var bytes: [UInt8] = []

    package init() {}

    package mutating func text(of time: Timestamp) -> ArraySlice<UInt8> {
        let (second, rest) = time.nanoseconds.floored(by: 1_000_000_000)
        if second != self.second {
            self.second = second
            bytes = Array(time.description.utf8) + [UInt8](repeating: 0, count: 6)
        }
        let digits = rest % 1_000_000 == 0 ? 3 : rest % 1000 == 0 ? 6 : 9
        var left = digits == 3 ? rest / 1_000_000 : digits == 6 ? rest / 1000 : rest
        for place in (20..<20 + digits).reversed() {
            // bounded: the rest of a division by ten.
            bytes[place] = UInt8(ascii: "0") + UInt8(left % 10)
            left /= 10
        }
        bytes[20 + digits] = UInt8(ascii: "Z")
        return bytes[...(20 + digits)]
    }
}
