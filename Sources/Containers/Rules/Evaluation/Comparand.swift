internal import Model

/// The value that a condition compares with, in each form that comparisons need.
///
/// Its text is in storage of another owner: for a constant, of the compiled container.
struct Comparand {
    /// The value as text, in small letters if the condition ignores case.
    let text: UnsafeBufferPointer<UInt8>
    /// The value as a number, if it is a number or a text that spells one exactly.
    let number: Number?
    /// The type of the value.
    let kind: Kind

    /// The types of values. A text that only spells a number is a string.
    enum Kind { case null, string, number, bool, nested }

    /// Whether the value is neither null nor nested.
    var isScalar: Bool { kind != .null && kind != .nested }

    /// A comparand.
    ///
    /// - Parameter text: the value as text, in small letters if the condition ignores case.
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
        if case .value(let own) = value, let inexact = Number(inexact: own) {
            number = inexact
        } else {
            number = Number(text)
        }
    }

    /// A value as text, folded if wanted.
    static func text(of value: JSONValue, ignoreCase: Bool) -> [UInt8] {
        let spelled = Array((value.string ?? value.description).utf8)
        return ignoreCase ? spelled.withUnsafeBufferPointer { folded($0) } : spelled
    }

    /// A text for comparisons that ignore case: each code point folded by itself (simple case folding).
    ///
    /// So σ, ς and Σ are equal, as are ß and ẞ, but ß and ss are not.
    static func folded(_ text: UnsafeBufferPointer<UInt8>) -> [UInt8] {
        if text.allSatisfy({ $0 < 0x80 }) {
            return text.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }
        }
        var folded = String.UnicodeScalarView()
        for scalar in String(decoding: text, as: UTF8.self).unicodeScalars {
            folded.append(self.folded(scalar))
        }
        return Array(String(folded).utf8)
    }

    /// A code point, folded. Source: Unicode, CaseFolding.txt, status C and S: the small letter of the
    /// capital, if both are one code point.
    static func folded(_ scalar: Unicode.Scalar) -> Unicode.Scalar {
        // U+0131, the dotless i, has a capital, but is not folded to its small letter.
        if scalar == "\u{131}" { return scalar }
        func single(_ mapping: String) -> Unicode.Scalar? {
            let scalars = mapping.unicodeScalars
            return scalars.count == 1 ? scalars.first : nil
        }
        let capital = single(scalar.properties.uppercaseMapping) ?? scalar
        return single(capital.properties.lowercaseMapping) ?? scalar
    }
}
