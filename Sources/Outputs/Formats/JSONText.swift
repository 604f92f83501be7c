internal import Model

/// Writes JSON into bytes.
struct JSONText {
    private(set) var bytes: [UInt8] = []

    init(capacity: Int = 0) { bytes.reserveCapacity(capacity) }

    /// Appends text that is JSON already.
    mutating func raw(_ text: StaticString) {
        bytes.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    mutating func raw(_ json: some Collection<UInt8>) { bytes.append(contentsOf: json) }

    mutating func number(_ number: some BinaryInteger) { bytes.append(contentsOf: String(number).utf8) }

    mutating func string(_ text: String) { string(text.utf8) }

    /// Appends a string of UTF-8, in quotes, escaped.
    mutating func string(_ text: some Collection<UInt8>) {
        if text.withContiguousStorageIfAvailable({ JSONString.append($0, to: &bytes) }) == nil {
            Array(text).withUnsafeBufferPointer { JSONString.append($0, to: &bytes) }
        }
    }

    /// Appends text that is JSON already, and a string behind it.
    mutating func raw(_ text: StaticString, string value: String) {
        raw(text)
        string(value)
    }

    /// Appends a member of an object whose value is a string, and a comma.
    mutating func member(_ name: String, _ value: String) {
        string(name)
        raw(":", string: value)
        raw(",")
    }

    /// Appends what ends objects and lists; the comma behind the last of their parts is taken back.
    mutating func close(_ end: StaticString) {
        if bytes.last == UInt8(ascii: ",") { bytes.removeLast() }
        raw(end)
    }
}
