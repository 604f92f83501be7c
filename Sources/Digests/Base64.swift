/// Base64 with padding, as keys and signatures are written. One form only: what is decoded encodes to the same text.
///
/// Source: RFC 4648, section 4.
public enum Base64 {
    private static let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    /// The text of the bytes.
    public static func encode(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        text.reserveCapacity((bytes.count + 2) / 3 * 4)
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let piece = bytes[start..<min(start + 3, bytes.count)]
            var bits = 0
            for byte in piece { bits = bits << 8 | Int(byte) }
            bits <<= 8 * (3 - piece.count)
            for place in 0..<4 {
                text.append(place <= piece.count ? digits[bits >> (18 - 6 * place) & 63] : UInt8(ascii: "="))
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// - Returns: nil when the text is not what `encode` would write.
    public static func decode(_ text: some StringProtocol) -> [UInt8]? {
        let characters = Array(text.utf8)
        guard characters.count % 4 == 0 else { return nil }
        var bytes: [UInt8] = []
        for start in stride(from: 0, to: characters.count, by: 4) {
            let isLast = start + 4 == characters.count
            let padding = isLast ? characters[start..<start + 4].reversed().prefix { $0 == UInt8(ascii: "=") }.count : 0
            guard padding <= 2 else { return nil }
            var bits = 0
            for character in characters[start..<start + 4 - padding] {
                guard let digit = digits.firstIndex(of: character) else { return nil }
                bits = bits << 6 | digit
            }
            bits <<= 6 * padding
            for place in 0..<3 - padding { bytes.append(UInt8(bits >> (16 - 8 * place) & 255)) }
        }
        return encode(bytes) == String(text) ? bytes : nil
    }

    /// The text with the signs for addresses, without padding. Source: RFC 4648, section 5.
    public static func encodeForURL(_ bytes: [UInt8]) -> String {
        let text = encode(bytes).utf8.filter { $0 != UInt8(ascii: "=") }.map { byte -> UInt8 in
            switch byte {
            case UInt8(ascii: "+"): UInt8(ascii: "-")
            case UInt8(ascii: "/"): UInt8(ascii: "_")
            default: byte
            }
        }
        return String(decoding: text, as: UTF8.self)
    }
}
