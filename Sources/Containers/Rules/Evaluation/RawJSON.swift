internal import Model

/// What parts of a line mean.
enum RawJSON {
    @inline(__always)
    static func bytes(_ base: UnsafePointer<UInt8>, _ range: Range<Int>) -> UnsafeBufferPointer<UInt8> {
        UnsafeBufferPointer(start: base + range.lowerBound, count: range.count)
    }

    /// The text between two quotes, as UTF-8 with its escapes resolved.
    static func decoded(_ base: UnsafePointer<UInt8>, _ text: Range<Int>) -> [UInt8] {
        JSONString.decoded(bytes(base, text))
    }

    /// The value that is there; null for what is nested too deeply to be looked into.
    static func value(_ base: UnsafePointer<UInt8>, _ range: Range<Int>) -> JSONValue {
        // The line is JSON already; what is left to fail is depth and numbers beyond a double, which are nobody's macro.
        (try? JSONValue(parsing: Array(bytes(base, range)))) ?? .null
    }
}
