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
    package mutating func text(of time: Timestamp) -> ArraySlice<UInt8> { bytes[..<setText(of: time)] }

    /// Appends the text of a time. Unlike a slice it counts no references, and each record has a time.
    package mutating func append(_ time: Timestamp, to buffer: inout LineBuffer) {
        let count = setText(of: time)
        bytes.withUnsafeBytes { buffer.append(UnsafeRawBufferPointer(start: $0.baseAddress, count: count)) }
    }

    /// Writes the text of a time at the beginning of `bytes`; returns its length.
    private mutating func setText(of time: Timestamp) -> Int {
        let (second, rest) = time.nanoseconds.floored(by: 1_000_000_000)
        if second != self.second {
            self.second = second
            bytes = Array(time.description.utf8) + [UInt8](repeating: 0, count: 6)
        }
        let digits = rest % 1_000_000 == 0 ? 3 : rest % 1000 == 0 ? 6 : 9
        var left = digits == 3 ? rest / 1_000_000 : digits == 6 ? rest / 1000 : rest
        bytes.withUnsafeMutableBufferPointer { text in
            var offset = 20 + digits
            text[offset] = UInt8(ascii: "Z")
            while offset > 20 {
                offset -= 1
                // bounded: the remainder of a division by ten.
                text[offset] = UInt8(ascii: "0") + UInt8(left % 10)
                left /= 10
            }
        }
        return 21 + digits
    }
}
