internal import EventLoops
internal import Model

/// Marks for coloured parts of a text, from the code that composes the text to the program that writes it
/// to a terminal.
///
/// The text contains names and paths from outside, so the writer escapes every control character. A style
/// can therefore not be an escape sequence: it is a printable mark with a random key of 128 bits, which no
/// file name can contain except by a guess. The program that writes draws the key, and sends it to the
/// agent with its request.
package struct StyleMarks: Sendable {
    /// 32 hexadecimal digits.
    package let key: String

    /// Codes that a mark may have (ECMA-48, "Select Graphic Rendition").
    private static let codes = ["0", "1", "2", "31", "32", "33"]

    /// Marks with a new key.
    package init() {
        var random = SystemRandomNumberGenerator()
        key = random.next().digits(16, radix: 16) + random.next().digits(16, radix: 16)
    }

    /// Marks with a key from a request; nil unless it has the form of one that `init()` draws.
    package init?(key: String) {
        guard key.utf8.count == 32, key.allSatisfy({ $0.isASCII && $0.isHexDigit }) else { return nil }
        self.key = key
    }

    /// The text between the mark of a style and the mark that ends it.
    package func styled(_ text: String, _ code: String) -> String { mark(code) + text + mark("0") }

    /// The text for a terminal: control characters escaped, then marks replaced by escape sequences.
    package func resolved(_ text: String) -> String {
        let harmless = StyleMarks.harmless(text)
        guard harmless.holds(key) else { return harmless }
        return StyleMarks.codes.reduce(harmless) { $0.replacingAll(mark($1), with: "\u{1B}[\($1)m") }
    }

    /// The text for a file, a pipe or a terminal without colours: control characters escaped.
    package static func harmless(_ text: String) -> String {
        PrintableText.escaped(text, keeping: ["\n", "\t"])
    }

    /// The mark of a code.
    private func mark(_ code: String) -> String { "<\(key) \(code)>" }
}
