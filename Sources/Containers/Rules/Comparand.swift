internal import Model

/// What a condition compares with, in each form that a predicate may need.
///
/// Its text is somebody else's storage: of the compiled container for a constant.
struct Comparand {
    /// The text that spells it, in small letters where capitals do not matter.
    let text: UnsafeBufferPointer<UInt8>
    /// The number that it is, or that its text spells.
    let number: Number?
    let isNull: Bool
    let isString: Bool
    /// Whether it is a string, a number or a truth value.
    let isScalar: Bool

    /// - Parameter text: `Comparand.text` of the same value.
    init(_ value: JSONValue, _ text: UnsafeBufferPointer<UInt8>) {
        self.text = text
        number =
            switch value {
            case .integer(let number): .integer(number)
            case .double(let number): .double(number)
            case .string(let string): Array(string.utf8).withUnsafeBufferPointer { Number($0) }
            default: nil
            }
        isNull = value == .null
        isString = value.string != nil
        isScalar = isString || value.number != nil || value.bool != nil
    }

    /// The number, if it is one and no text.
    @inline(__always) var numberValue: Number? { isString ? nil : number }

    /// The text that spells a value, in small letters if wanted.
    static func text(of value: JSONValue, ignoreCase: Bool) -> [UInt8] {
        let spelled = Array((value.string ?? value.description).utf8)
        return ignoreCase ? spelled.withUnsafeBufferPointer { folded($0) } : spelled
    }

    /// A text in small letters.
    static func folded(_ text: UnsafeBufferPointer<UInt8>) -> [UInt8] {
        if text.allSatisfy({ $0 < 0x80 }) { return text.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 } }
        return Array(String(decoding: text, as: UTF8.self).lowercased().utf8)
    }
}
