internal import Model

/// Whether the numbers of a JSON text are kept as they are spelled.
enum KeptNumbers {
    /// The value of a text, and the first number that reading it has changed; nil for none.
    static func read(_ text: [UInt8]) throws(JSONError) -> (value: JSONValue, lost: String?) {
        var lost: String?
        let value = try JSONValue(parsing: text) { spelled, number in
            if lost == nil, !isKept(spelled, in: number) { lost = String(decoding: spelled, as: UTF8.self) }
        }
        return (value, lost)
    }

    private static func isKept(_ spelled: ArraySlice<UInt8>, in number: JSONValue) -> Bool {
        guard let exact = spelled.withUnsafeBufferPointer({ Decimal($0) }) else { return false }
        return number.description.bytes.withUnsafeBufferPointer { Decimal($0)?.order(to: exact) == 0 }
    }
}
