internal import Model

/// Values of parts of a line.
enum RawJSON {
    /// The bytes of a range.
    @inline(__always)
    static func bytes(_ base: UnsafePointer<UInt8>, _ range: Range<Int>) -> UnsafeBufferPointer<UInt8> {
        UnsafeBufferPointer(start: base + range.lowerBound, count: range.count)
    }

    /// The text between two quotes, as UTF-8 without escapes.
    static func decoded(_ base: UnsafePointer<UInt8>, _ text: Range<Int>) -> [UInt8] {
        JSONString.decoded(bytes(base, text))
    }

    /// The value of a range; null if it is nested too deeply.
    static func value(_ base: UnsafePointer<UInt8>, _ range: Range<Int>) -> JSONValue {
        // The line is JSON already. What can still fail is depth and numbers beyond a double, which no macro
        // gives.
        (try? JSONValue(parsing: Array(bytes(base, range)))) ?? .null
    }
}
