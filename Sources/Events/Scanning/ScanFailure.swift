/// Why a text is not one JSON object: what is wrong, and at which byte.
struct ScanFailure: Equatable {
    /// What is wrong, as a sentence for a person in which `%` stands for the byte; never content.
    enum Code: String, CaseIterable {
        /// White space only. Not a fault of a line: the verdict is `blank`.
        case blank = "the text is blank"
        case cutShort = "the text ends too early, at byte %"
        case expectedValue = "expected a value at byte %"
        case expectedName = "expected a member's name in double quotes at byte %"
        case expectedColon = "expected a colon at byte %"
        case expectedCommaOrEnd = "expected a comma or a closing bracket at byte %"
        /// A number that RFC 8259 does not allow, such as `01`, `1.`, `.5`, `+1`, `1e` or `NaN`.
        case badNumber = "not a JSON number at byte %"
        case controlCharacter = "a control character that is not escaped inside a string at byte %"
        case badEscape = "not a JSON escape at byte %"
        case loneSurrogate = "half a surrogate pair at byte %"
        /// Incomplete sequences, overlong forms, surrogates, or code points beyond U+10FFFF.
        case notUTF8 = "not UTF-8 at byte %"
        case byteOrderMark = "a byte-order mark at byte %; write UTF-8 without one"
        case tooDeep = "nested too deeply at byte %"
        case trailingText = "text after the end of the object at byte %"
        case notAnObject = "a JSON value, but not an object, at byte %"

        /// Whether a text with this failure at its end may only have been cut: more bytes could make it
        /// right.
        var mayBeTheEnd: Bool {
            switch self {
            case .expectedValue, .expectedName, .expectedColon, .expectedCommaOrEnd, .controlCharacter,
                .badNumber,
                .badEscape:
                true
            default: false
            }
        }
    }

    let code: Code
    /// Offset of the failure from the beginning of the text that was scanned.
    let byte: Int

    var message: String {
        code.rawValue.split(separator: "%", omittingEmptySubsequences: false).joined(separator: "\(byte)")
    }
}
