/// Why a text is not one JSON object: what, and at which byte.
public struct ScanFailure: Sendable, Equatable {
    /// What is wrong. Each has one sentence in `message`.
    public enum Code: String, Sendable, CaseIterable {
        /// Nothing but white space: not an error of a line.
        case blank
        /// The text ends inside a value.
        case cutShort
        /// Something else is where a value must begin.
        case expectedValue
        /// Something else is where a member's name must begin.
        case expectedName
        /// Something else is where a colon must.
        case expectedColon
        /// Something else is where a comma or the closing bracket must.
        case expectedCommaOrEnd
        /// A number that RFC 8259 does not know: `01`, `1.`, `.5`, `+1`, `1e`, `NaN`.
        case badNumber
        /// A control character inside a string, which must be escaped.
        case controlCharacter
        /// A backslash before a character that it cannot escape.
        case badEscape
        /// An escaped half of a surrogate pair without its other half.
        case loneSurrogate
        /// Bytes that are not UTF-8: cut sequences, overlong forms, surrogates, code points past U+10FFFF.
        case notUTF8
        /// A byte-order mark before the value.
        case byteOrderMark
        /// Brackets nested more deeply than the limit.
        case tooDeep
        /// Text after the end of the value.
        case trailingText
        /// A JSON text that is not an object.
        case notAnObject

        /// Whether a text that goes wrong like that at its end may only have been cut.
        var mayBeTheEnd: Bool {
            switch self {
            case .expectedValue, .expectedName, .expectedColon, .expectedCommaOrEnd, .controlCharacter, .badNumber,
                .badEscape:
                true
            default: false
            }
        }
    }

    /// What is wrong.
    public let code: Code
    /// Where, in bytes from the beginning of the text that was scanned.
    public let byte: Int

    /// One line for a person; never the content.
    public var message: String {
        switch code {
        case .blank: "the text is blank"
        case .cutShort: "the text ends too early, at byte \(byte)"
        case .expectedValue: "expected a value at byte \(byte)"
        case .expectedName: "expected a member's name in double quotes at byte \(byte)"
        case .expectedColon: "expected a colon at byte \(byte)"
        case .expectedCommaOrEnd: "expected a comma or a closing bracket at byte \(byte)"
        case .badNumber: "not a JSON number at byte \(byte)"
        case .controlCharacter: "a control character that is not escaped inside a string at byte \(byte)"
        case .badEscape: "not a JSON escape at byte \(byte)"
        case .loneSurrogate: "half a surrogate pair at byte \(byte)"
        case .notUTF8: "not UTF-8 at byte \(byte)"
        case .byteOrderMark: "a byte-order mark at byte \(byte); write UTF-8 without one"
        case .tooDeep: "nested too deeply at byte \(byte)"
        case .trailingText: "text after the end of the object at byte \(byte)"
        case .notAnObject: "a JSON value, but not an object, at byte \(byte)"
        }
    }
}
