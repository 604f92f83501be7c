/// Text from outside (paths, names, answers), made safe to show to a person.
///
/// A control character in a file name can clear a terminal, colour a line or reverse its direction. All
/// places that show such text (log, commands, status page, readiness) escape it here, so that they
/// agree on what is harmless.
public enum PrintableText {
    /// Whether a character appears as itself: it is neither a control, a direction mark or another
    /// invisible format character, nor a line separator, nor a character whose look depends on the font
    /// (private use, unassigned).
    public static func isPrintable(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned:
            false
        default: true
        }
    }

    /// The text with each character that is not printable escaped as in JSON: `\u001b`, or two UTF-16
    /// units beyond U+FFFF.
    ///
    /// - Parameter kept: characters to keep although they are controls, such as the line feed of a text
    ///   with several lines.
    public static func escaped(_ text: String, keeping kept: Set<Unicode.Scalar> = []) -> String {
        // Most text is printable ASCII. The check avoids a look-up of the Unicode category for each
        // character.
        if text.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) { return text }
        var result = ""
        for scalar in text.unicodeScalars {
            if isPrintable(scalar) || kept.contains(scalar) {
                result.unicodeScalars.append(scalar)
            } else {
                result += escape(of: scalar)
            }
        }
        return result
    }

    /// A character escaped as in JSON.
    public static func escape(of scalar: Unicode.Scalar) -> String {
        String(scalar).utf16.map { "\\u" + $0.digits(4, radix: 16) }.joined()
    }
}
