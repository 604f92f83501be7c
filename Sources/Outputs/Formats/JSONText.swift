internal import Model

/// Builds JSON as bytes, without checking its structure.
struct JSONText {
    private(set) var bytes: [UInt8] = []

    init(capacity: Int = 0) { bytes.reserveCapacity(capacity) }

    /// Appends text that is already JSON.
    mutating func raw(_ text: StaticString) {
        bytes.append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    mutating func raw(_ json: some Collection<UInt8>) { bytes.append(contentsOf: json) }

    mutating func number(_ number: some BinaryInteger) { bytes.append(contentsOf: String(number).utf8) }

    mutating func string(_ text: String) { string(text.utf8) }

    /// Appends UTF-8 as a string, in quotes and escaped.
    mutating func string(_ text: some Collection<UInt8>) {
        if text.withContiguousStorageIfAvailable({ JSONString.append($0, to: &bytes) }) == nil {
            Array(text).withUnsafeBufferPointer { JSONString.append($0, to: &bytes) }
        }
    }

    /// Appends a text as it is escaped within a string, without the quotes.
    mutating func inside(_ text: String) {
        var quoted = JSONText()
        quoted.string(text)
        raw(quoted.bytes.dropFirst().dropLast())
    }

    /// Appends text that is already JSON, and then a string.
    mutating func raw(_ text: StaticString, string value: String) {
        raw(text)
        string(value)
    }

    /// Appends a member with a string value, and a comma.
    mutating func member(_ name: String, _ value: String) {
        string(name)
        raw(":", string: value)
        raw(",")
    }

    /// Appends the end of an object or list, without the comma after its last part.
    mutating func close(_ end: StaticString) {
        if bytes.last == UInt8(ascii: ",") {
            bytes.removeLast()
        }
        raw(end)
    }
}
