internal import Model

/// Texts of JSON strings that the scanner has found to be correct: how long they are, how they are written.
enum JSONText {
    /// The value of a hexadecimal digit; 16 or more for any other byte.
    @inline(__always)
    static func hexDigit(_ c: UInt8) -> UInt8 {
        let digit = c &- UInt8(ascii: "0")
        if digit < 10 { return digit }
        let letter = (c | 0x20) &- UInt8(ascii: "a")
        return letter < 6 ? letter + 10 : 0xFF
    }

    /// Where to cut a text so that at most `limit` UTF-16 code units are left, never between the halves of a
    /// surrogate pair or inside an escape.
    ///
    /// - Returns: the number of bytes to keep; nil if the text is not longer than the limit.
    static func cut(_ text: UnsafeBufferPointer<UInt8>, toUnits limit: Int) -> Int? {
        // No character has more UTF-16 code units than bytes, escaped or not.
        guard text.count > limit else { return nil }
        var units = 0
        var index = 0
        while index < text.count {
            let c = text[index]
            var length = 1
            var width = 1
            if c == .backslash {
                length = 2
                if text[index + 1] == UInt8(ascii: "u") {
                    length = 6
                    if let unit = JSONString.unit(text, index), unit & 0xFC00 == 0xD800 {
                        length = 12
                        width = 2
                    }
                }
            } else if c >= 0xF0 {
                length = 4
                width = 2
            } else if c >= 0xE0 {
                length = 3
            } else if c >= 0x80 {
                length = 2
            }
            if units + width > limit { return index }
            units += width
            index += length
        }
        return nil
    }

    /// A string as JSON text with its quotes; control characters, quotes and backslashes are escaped.
    static func quoted(_ text: String) -> [UInt8] {
        var result: [UInt8] = []
        var text = text
        text.withUTF8 { JSONString.append($0, to: &result) }
        return result
    }
}
