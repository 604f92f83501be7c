internal import Model

/// Finds numbers of a JSON text that would change by being read, as 0.1000000000000000055 and 1e400.
enum KeptNumbers {
    /// A number that changes by being read.
    struct Lost {
        /// The number as it was spelled.
        let number: String
        /// Offset of its first byte in the text.
        let offset: Int
    }

    /// The value of a text, and the first number that has changed; nil if none has.
    static func read(_ text: [UInt8]) throws(JSONError) -> (value: JSONValue, lost: Lost?) {
        var lost: Lost?
        let value = try JSONValue(parsing: text) { spelled, number in
            if lost == nil, !isKept(spelled, in: number) {
                lost = Lost(number: String(decoding: spelled, as: UTF8.self), offset: spelled.startIndex)
            }
        }
        return (value, lost)
    }

    /// Whether a number, written again, is exactly the number that was spelled.
    private static func isKept(_ spelled: ArraySlice<UInt8>, in number: JSONValue) -> Bool {
        guard let exact = spelled.withUnsafeBufferPointer({ Decimal($0) }) else { return false }
        return number.description.bytes.withUnsafeBufferPointer { Decimal($0)?.order(to: exact) == 0 }
    }
}
