internal import Model

/// What a condition compares with, in each form that a predicate may need.
///
/// Its text is somebody else's storage: of the compiled container for a constant.
struct Comparand {
    /// The text that spells it, in small letters where capitals do not matter.
    let text: UnsafeBufferPointer<UInt8>
    /// The number that it is, or that its text spells; the text tells its digits.
    let number: Number?
    let kind: Kind

    /// A number is none that a text only spells.
    enum Kind { case null, string, number, bool, nested }

    var isScalar: Bool { kind != .null && kind != .nested }

    /// - Parameter text: what spells it, in small letters where capitals do not matter.
    init(_ value: MacroValue, _ text: UnsafeBufferPointer<UInt8>) {
        self.text = text
        switch value {
        case .null, .value(.null): kind = .null
        case .text, .value(.string): kind = .string
        case .number, .value(.integer), .value(.double): kind = .number
        case .bool, .value(.bool): kind = .bool
        case .nested, .value: kind = .nested
        }
        guard kind == .string || kind == .number else {
            number = nil
            return
        }
        if case .value(let own) = value, let held = Number(held: own) { number = held } else { number = Number(text) }
    }

    /// The text that spells a value, folded if wanted.
    static func text(of value: JSONValue, ignoreCase: Bool) -> [UInt8] {
        let spelled = Array((value.string ?? value.description).utf8)
        return ignoreCase ? spelled.withUnsafeBufferPointer { folded($0) } : spelled
    }

    /// A text by which texts are compared where capitals do not matter: each of its code points by itself (simple folding).
    ///
    /// So σ, ς and Σ are the same, ß and ẞ too, but not ß and ss.
    static func folded(_ text: UnsafeBufferPointer<UInt8>) -> [UInt8] {
        if text.allSatisfy({ $0 < 0x80 }) { return text.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 } }
        var folded = String.UnicodeScalarView()
        for scalar in String(decoding: text, as: UTF8.self).unicodeScalars { folded.append(self.folded(scalar)) }
        return Array(String(folded).utf8)
    }

    /// Source: Unicode, CaseFolding.txt, C and S: the small letter of the capital, where both are one code point.
    static func folded(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
        // The dotless one has a capital without folding to its small letter.
        if scalar == "\u{131}" { return scalar }
        func single(_ mapping: String) -> Unicode.Scalar? {
            let scalars = mapping.unicodeScalars
            return scalars.count == 1 ? scalars.first : nil
        }
        let capital = single(scalar.properties.uppercaseMapping) ?? scalar
        return single(capital.properties.lowercaseMapping) ?? scalar
    }
}
